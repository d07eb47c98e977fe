"""Where the checkpoints of a run go, and what happens when one cannot be written."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from halfwidth.errors import BrokenCheckpoint, CannotWrite, InputError, UnknownName
from halfwidth.models.run_state import FIT_SCHEMA
from halfwidth.models.run_status import FitWarning
from halfwidth.state.atomic import put_aside
from halfwidth.state.checkpoint import check_checkpoint_place, checkpoint_mark, read_checkpoint, write_checkpoint
from halfwidth.state.schema import validate


@dataclass(frozen=True)
class Saving:
    """Where checkpoints go, and what to do about one that cannot be written: "error" or "warn"."""

    path: str | os.PathLike[str] | None
    errors: str = "error"
    _own: list[bytes] = field(default_factory=list, compare=False)
    _aside: list[str] = field(default_factory=list, compare=False)

    def __post_init__(self) -> None:
        if self.errors not in ("error", "warn"):
            raise UnknownName.among("checkpoint_errors", str(self.errors), ("error", "warn"))

    def check(self, *, fresh: bool) -> None:
        """Raise, or warn, before the run about a place where no checkpoint can be written.

        A fresh run refuses to replace what an unfinished one has learned, and keeps what a finished one has.
        """
        if self.path is not None:
            self._tried(check_checkpoint_place)
            self._own[:] = [checkpoint_mark(self.path)]
            if fresh and self._own[0]:
                self._aside[:] = [_finished(self.path)]

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
        if self._aside:
            if there:
                aside = put_aside(path, "checkpoint")
                warnings.warn(f"{self._aside[0]}; it is kept as {str(aside)!r}", FitWarning, stacklevel=2)
            self._aside.clear()
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


def _finished(path: str | os.PathLike[str]) -> str:
    """What is said about the checkpoint of a finished run that a fresh one replaces; any other file is refused."""
    name = f"checkpoint {str(path)!r}"
    try:
        state = read_checkpoint(path)
        if state.get("kind") != FIT_SCHEMA.kind:
            raise InputError(f"{name} is there already, and holds a saved model; choose another place")
        validate(state, FIT_SCHEMA, "checkpoint")
    except BrokenCheckpoint as error:
        raise InputError(
            f"{name} is there already, and this run cannot tell what it would replace ({error}); remove the file, or "
            "choose another place"
        ) from error
    rows = f"{state['stream']['position']:,} rows"
    if not state["finished"]:
        raise InputError(
            f"{name} is there already, with a run that stopped after {rows}: go on with it by resume (--resume); to "
            "start again, remove the file, or choose another place"
        )
    return f"{name} held a finished run of {rows}"
