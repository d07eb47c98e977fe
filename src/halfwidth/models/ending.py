"""Signals that end a run between two chunks, with a checkpoint.

The first SIGINT, SIGTERM or SIGHUP is noted, and the run ends at the next chunk; the second ends the process at once.
Handlers are put in place only in the main thread, only for the time of a run, and never over those of somebody else.
Arrow, which would break off a read at a signal, is told to leave signals alone for that time.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from importlib import import_module
from types import FrameType, TracebackType
from typing import Any

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Ending:
    """Notes a signal while a run is under way; a context manager."""

    def __init__(self, wanted: bool) -> None:
        self.received: int | None = None
        self._wanted = wanted and threading.current_thread() is threading.main_thread()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Ending:
        if self._wanted:
            for number in _SIGNALS:
                if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                    self._before[number] = signal.signal(number, self._note)
        if self._before:
            arrow_handles_signals(False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._before:
            arrow_handles_signals(True)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self.received = number


def arrow_handles_signals(wanted: bool) -> None:
    """Let Arrow break off reads at a signal, or not; without Arrow there is nothing to tell."""
    with suppress(ImportError):
        import_module("pyarrow").enable_signal_handlers(wanted)
