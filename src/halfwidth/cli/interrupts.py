"""A run that a signal ends says what is kept, and how to go on."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

_SIGINT = 2


@contextmanager
def interruptible(checkpoint: Path | None) -> Iterator[None]:
    """Turn an interruption of `fit` into a line on stderr and the exit code 128 + signal."""
    from halfwidth.errors import Interrupted

    try:
        yield
    except Interrupted as ended:
        typer.echo(str(ended), err=True)
        raise typer.Exit(128 + ended.signal) from None
    except KeyboardInterrupt:
        kept = f"the last checkpoint stays in {str(checkpoint)!r}: go on with the same arguments and --resume"
        if checkpoint is None or not checkpoint.exists():
            kept = "nothing was kept: with --checkpoint FILE an interrupted run goes on with --resume"
        _end(f"interrupted; {kept}")


@contextmanager
def keeping(folder: Path, go_on: str) -> Iterator[None]:
    """Turn an interruption of a study into a line that says where finished replicates are, and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        _stop_workers()
        _end(f"interrupted; finished replicates are kept in {str(folder)!r}: {go_on} goes on from there")


def _end(line: str) -> None:
    typer.echo(line, err=True)
    raise typer.Exit(128 + _SIGINT) from None


def _stop_workers() -> None:
    """End the worker processes of this one, which leave signals to it."""
    loky = sys.modules.get("joblib.externals.loky")
    if loky is not None:
        loky.get_reusable_executor().shutdown(wait=True, kill_workers=True)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Show warnings of a run as lines on stderr."""

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        typer.echo(f"warning: {message}", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
