"""How far a run is: rows, rows per second and, where the size of the source is known, percent and time left.

In a notebook the line is an output that changes in place; in a terminal it is the last line of stderr; elsewhere, as in
a log, there is a line for every tenth of the source, or every ten seconds where its size is not known.
"""

from __future__ import annotations

import sys
import time as clock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from halfwidth.streams import Stream

Tell = Callable[[int], None]

_BETWEEN = 0.25
_BETWEEN_LINES = 10.0


class Meter:
    """The line that says how far a stream is.

    Parameters
    ----------
    stream : Stream
        What is read; its `share` says how much of it was.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream, self._pass = stream, 1
        self._rows = self._first_rows = stream.position
        self._first_share = stream.share or 0.0
        self._started = self._last = clock.perf_counter()

    def line(self, rows: int) -> str:
        """The line after this many rows of a pass."""
        now = clock.perf_counter()
        if rows < self._rows:
            self._pass, self._started, self._first_rows, self._first_share = self._pass + 1, self._last, 0, 0.0
        self._rows, self._last = rows, now
        seconds, share = max(now - self._started, 1e-3), self._stream.share
        parts = [f"{rows:,} rows", f"{(rows - self._first_rows) / seconds:,.0f} rows/s"]
        if share is not None:
            parts.append(f"{100.0 * share:.0f}%")
            done = share - self._first_share
            if done > 0.0:
                parts.append(f"{duration(seconds * max(1.0 - share, 0.0) / done)} left")
        return ("" if self._pass == 1 else f"pass {self._pass}: ") + ", ".join(parts)


def duration(seconds: float) -> str:
    """A time that somebody waits, in few characters.

    >>> duration(7.2), duration(754.0), duration(9000.0)
    ('7 s', '12 min 34 s', '2 h 30 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


@contextmanager
def shown(progress: bool | Tell | None, stream: Stream) -> Iterator[Tell | None]:
    """What to call with the rows read: the caller's own function, or one that shows a line."""
    if not isinstance(progress, bool):
        yield progress
        return
    if not progress:
        yield None
        return
    meter = Meter(stream)
    with _screen() as (write, pause):
        last, untold = -pause, 0

        def tell(rows: int) -> None:
            nonlocal last, untold
            now = clock.perf_counter()
            untold = rows
            if now - last >= pause:
                last, untold = now, 0
                write(meter.line(rows))

        yield tell
        if untold:
            write(meter.line(untold))


@contextmanager
def _screen() -> Iterator[tuple[Callable[[str], None], float]]:
    """Where lines go, and how many seconds there are between two of them."""
    display = _notebook()
    if display is not None:
        shown_there = display("", display_id=True)
        yield lambda text: shown_there.update(_Line(text)), _BETWEEN
        return
    if not sys.stderr.isatty():
        yield lambda text: print(text, file=sys.stderr, flush=True), _BETWEEN_LINES  # noqa: T201 (a log asked for it)
        return
    from rich.console import Console
    from rich.live import Live

    both = sys.stdout.isatty()  # rows printed on the way go above the line; those that go to a file stay in it
    with Live(console=Console(stderr=True), refresh_per_second=8, transient=True, redirect_stdout=both) as live:
        yield lambda text: live.update(text), _BETWEEN


class _Line:
    """A line of text, as a notebook shows it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _notebook() -> Any:
    """The function that displays in a notebook; None elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from importlib import import_module

    return import_module("IPython.display").display
