"""Where the checkpoints of a run go, and what happens when one cannot be written."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from halfwidth.errors import CannotWrite, UnknownName
from halfwidth.models.run_state import FIT_SCHEMA
from halfwidth.models.run_status import FitWarning
from halfwidth.state.checkpoint import check_checkpoint_place, write_checkpoint
from halfwidth.state.schema import validate


@dataclass(frozen=True)
class Saving:
    """Where checkpoints go, and what to do about one that cannot be written: "error" or "warn"."""

    path: str | os.PathLike[str] | None
    errors: str = "error"

    def __post_init__(self) -> None:
        if self.errors not in ("error", "warn"):
            raise UnknownName.among("checkpoint_errors", str(self.errors), ("error", "warn"))

    def check(self) -> None:
        """Raise, or warn, before the run about a place where no checkpoint can be written."""
        if self.path is not None:
            self._tried(check_checkpoint_place)

    def write(self, state: dict[str, Any]) -> None:
        """Write a checkpoint; the one before it is kept."""
        validate(state, FIT_SCHEMA, "checkpoint")
        self._tried(lambda path: write_checkpoint(path, state, keep_previous=True))

    def _tried(self, write: Callable[[str | os.PathLike[str]], None]) -> None:
        assert self.path is not None
        try:
            write(self.path)
        except CannotWrite as error:
            if self.errors == "error":
                raise
            warnings.warn(f"{error}. The run goes on without it", FitWarning, stacklevel=2)
