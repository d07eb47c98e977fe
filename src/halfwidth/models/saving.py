"""Where the checkpoints of a run go, and what happens when one cannot be written."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from halfwidth.errors import CannotWrite, UnknownName
from halfwidth.models.run_state import FIT_SCHEMA
from halfwidth.models.run_status import FitWarning
from halfwidth.state.checkpoint import check_checkpoint_place, checkpoint_mark, write_checkpoint
from halfwidth.state.schema import validate


@dataclass(frozen=True)
class Saving:
    """Where checkpoints go, and what to do about one that cannot be written: "error" or "warn"."""

    path: str | os.PathLike[str] | None
    errors: str = "error"
    _own: list[bytes] = field(default_factory=list, compare=False)

    def __post_init__(self) -> None:
        if self.errors not in ("error", "warn"):
            raise UnknownName.among("checkpoint_errors", str(self.errors), ("error", "warn"))

    def check(self) -> None:
        """Raise, or warn, before the run about a place where no checkpoint can be written."""
        if self.path is not None:
            self._tried(check_checkpoint_place)
            self._own[:] = [checkpoint_mark(self.path)]

    def write(self, state: dict[str, Any]) -> None:
        """Write a checkpoint; the one before it is kept."""
        validate(state, FIT_SCHEMA, "checkpoint")
        self._tried(lambda path: self._replace(path, state))

    def _replace(self, path: str | os.PathLike[str], state: dict[str, Any]) -> None:
        """Write over the checkpoint that this run found or wrote, never over that of another run."""
        there = checkpoint_mark(path)
        if there and there not in self._own:
            raise CannotWrite(
                f"checkpoint {str(path)!r} was replaced by another process while this run went on; "
                "give each run a checkpoint of its own"
            )
        write_checkpoint(path, state, keep_previous=True)
        self._own[:] = [checkpoint_mark(path)]

    def _tried(self, write: Callable[[str | os.PathLike[str]], None]) -> None:
        assert self.path is not None
        try:
            write(self.path)
        except CannotWrite as error:
            if self.errors == "error":
                raise
            warnings.warn(f"{error}. The run goes on without it", FitWarning, stacklevel=2)
