"""Tables for people, JSON for programs, and progress for those who wait."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from halfwidth.errors import CannotWrite
from halfwidth.state.atomic import check_output, write_output

if TYPE_CHECKING:
    from rich.console import Console

FOLDERS = "Missing folders are made."


def write_json(value: Any, target: Path) -> None:
    """Write JSON to a file, or to stdout when the target is `-`."""
    text = json.dumps(value, indent=2, allow_nan=False)
    if str(target) == "-":
        typer.echo(text)
    else:
        write_output(target, (text + "\n").encode(), "JSON file")


def check_outputs(*targets: Path | None) -> None:
    """Raise before a long run what its outputs would raise after it."""
    for target in targets:
        if target is not None and str(target) != "-":
            check_output(target, "output")
    if sys.stdout is None:
        raise CannotWrite("standard output is closed; give it a place, like > /dev/null")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "", left: int = 1) -> None:
    """A table whose first `left` columns are words and whose others are numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for i, name in enumerate(columns):
        table.add_column(name, justify="left" if i < left else "right", no_wrap=i == 0, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console(160).print(table)


def console(width: int) -> Console:
    """Where tables go: as wide as the terminal, and this wide where there is none."""
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:
            raise  # the error that it is called for; Rich itself would end the process here

    terminal = Output()
    return terminal if terminal.is_terminal else Output(width=width)


def number(value: float | None, digits: int = 3) -> str:
    """A number with so many digits, or a dash for None."""
    return "-" if value is None else f"{value:.{digits}f}"


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on stderr; without a terminal, a plain line at every tenth."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True)) as bar:
            task = bar.add_task(label, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)
        return
    tenths = 0

    def tell(done: int, total: int) -> None:
        nonlocal tenths
        if 10 * done // total > tenths:
            tenths = 10 * done // total
            sys.stderr.write(f"{label}: {done:,} of {total:,}\n")

    yield tell
