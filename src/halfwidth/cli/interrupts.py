"""A run that a signal ends says so in one line, and how to go on."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

_SIGINT = 2


@contextmanager
def interruptible(checkpoint: Path | None) -> Iterator[None]:
    """Turn an interruption into a line on stderr and the exit code 128 + signal."""
    from halfwidth.errors import Interrupted

    try:
        yield
    except Interrupted as ended:
        typer.echo(str(ended), err=True)
        raise typer.Exit(128 + ended.signal) from None
    except KeyboardInterrupt:
        kept = "the last checkpoint stays" if checkpoint is not None else "nothing was kept (use --checkpoint)"
        typer.echo(f"interrupted at once; {kept}", err=True)
        raise typer.Exit(128 + _SIGINT) from None


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Show warnings of a run as lines on stderr."""

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        typer.echo(f"warning: {message}", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
