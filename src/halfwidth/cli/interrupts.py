"""A run that a signal ends says what is kept, and how to go on."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import typer

from halfwidth.errors import Interrupted

P = ParamSpec("P")

_SIGINT = 2
_AT_ONCE = "interrupted"


class Ended(Exception):
    """A command that a signal ended: the line to say, and the exit code 128 + signal."""

    def __init__(self, line: str, code: int) -> None:
        super().__init__(line)
        self.code = code


def answering(command: Callable[P, None]) -> Callable[P, None]:
    """The same command; an interruption becomes `Ended`: typer would end without a word."""

    @wraps(command)
    def answered(*arguments: P.args, **options: P.kwargs) -> None:
        try:
            command(*arguments, **options)
        except KeyboardInterrupt as error:
            ended = _ended(error)
            raise Ended(str(ended), 128 + ended.signal) from None

    return answered


@contextmanager
def interruptible(checkpoint: Path | None) -> Iterator[None]:
    """Let an interruption of `fit` say what was kept, where the run itself does not."""
    try:
        yield
    except KeyboardInterrupt as error:
        if isinstance(error, Interrupted) and str(error) != _AT_ONCE:
            raise
        kept = f"the last checkpoint stays in {str(checkpoint)!r}: go on with the same arguments and --resume"
        if checkpoint is None:
            kept = "nothing was kept: with --checkpoint FILE an interrupted run goes on with --resume"
        elif not checkpoint.exists():
            kept = "nothing was learned yet"
        raise Interrupted(f"interrupted; {kept}", _ended(error).signal) from None


@contextmanager
def keeping(folder: Path, go_on: str) -> Iterator[None]:
    """Let an interruption of a study say where finished replicates are, and how to go on."""
    try:
        yield
    except KeyboardInterrupt as error:
        said = f"interrupted; finished replicates are kept in {str(folder)!r}: {go_on} goes on from there"
        raise Interrupted(said, _ended(error).signal) from None


def _ended(error: KeyboardInterrupt) -> Interrupted:
    return error if isinstance(error, Interrupted) else Interrupted(_AT_ONCE, _SIGINT)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Show warnings of a run as lines on stderr."""

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        typer.echo(f"warning: {message}", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
