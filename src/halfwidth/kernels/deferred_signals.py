"""Signals wait until machine code has taken its arguments, run and returned.

Numba unboxes a `numpy.random.Generator` with calls of Python, and reads their result without a look at whether there is
one. A handler that raises there, as Python's own does for Ctrl-C, ends the process with signal 11. Handlers of Python
are therefore called after a kernel that draws random numbers, and after one was compiled.
"""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGUSR2")
_SIGNALS = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))


class DeferredSignals:
    """Keeps signals that come within its block for their handlers; a context manager for the main thread."""

    __slots__ = ("_before", "_noted")

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._noted: list[int] = []

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return  # handlers of Python run in the main thread only
        try:
            for number in _SIGNALS:
                handler = signal.getsignal(number)
                if callable(handler):
                    self._before[number] = handler
                    signal.signal(number, self._note)
        except BaseException:  # of a signal that came a moment before
            self._put_back()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._put_back()
        for number in self._noted:
            self._before[number](number, sys._getframe(1))

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._noted.append(number)

    def _put_back(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
