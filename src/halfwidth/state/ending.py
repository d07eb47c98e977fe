"""Signals that end a run.

The first SIGINT, SIGTERM or SIGHUP is noted, and the run ends where nothing is half done, such as between two chunks of
a fit; or it raises at once, as SIGINT alone does in Python. The second ends the process, or does what it did before
the run. Handlers are put in place only in the main thread, only for the time of a run, and never over those of
somebody else. Arrow, which would break off a read at a signal, is told to leave alone those that are noted.
"""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any

from halfwidth.errors import Interrupted

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Ending:
    """Answers signals while a run is under way; a context manager.

    Parameters
    ----------
    wanted : bool, default True
        Whether there is anything to do.
    at_once : bool, default False
        Whether the first signal raises `Interrupted`; otherwise it is noted in `received`.
    then_default : bool, default False
        Whether the second signal ends the process, whatever it does; otherwise it is answered as before the run.
    """

    def __init__(self, wanted: bool = True, *, at_once: bool = False, then_default: bool = False) -> None:
        self.received: int | None = None
        self._wanted = wanted and threading.current_thread() is threading.main_thread()
        self._at_once, self._then_default = at_once, then_default
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Ending:
        if self._wanted:
            for number in SIGNALS:
                if _outside(number) in (signal.SIG_DFL, signal.default_int_handler):
                    self._before[number] = signal.signal(number, self._answer)
        self._tell_arrow(False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._tell_arrow(True)

    def _answer(self, number: int, frame: FrameType | None) -> None:
        self.received = number
        for other in self._before:
            signal.signal(other, _outside(other))
        if self._at_once:
            raise Interrupted("interrupted", number)

    def _tell_arrow(self, handles_signals: bool) -> None:
        arrow = sys.modules.get("pyarrow")
        if arrow is not None and self._before and not self._at_once:
            arrow.enable_signal_handlers(handles_signals)


def _outside(number: int) -> Any:
    """What answers a signal, or did before the runs that are under way."""
    handler: Any = signal.getsignal(number)
    while isinstance(run := getattr(handler, "__self__", None), Ending):
        handler = signal.SIG_DFL if run._then_default else run._before[number]
    return handler
