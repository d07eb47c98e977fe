"""How much of a campaign is run: a tenth inside `make test`, all of it by `make test-faults`."""

from __future__ import annotations

import os
import signal
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

SHARE = float(os.environ.get("HALFWIDTH_FAULTS", "0.1"))
SEED = int(os.environ.get("HALFWIDTH_FAULTS_SEED", "20"))
MOST_BYTES = 100_000_000
HANG_SECONDS = 2.0
IDLE = 30.0


def count(full: int) -> int:
    """How many cases of a campaign of `full` are run."""
    return max(1, round(full * SHARE))


class Hang(BaseException):
    """A call that did not end in time."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise `Hang` in a call that takes so many seconds of the processor, or `IDLE` times as many by the clock.

    Time of the processor, so that a loaded machine makes no hangs; by the clock too, for a call that waits for ever.
    """

    def stop(number: int, where: object) -> None:
        raise Hang

    timers = ((signal.ITIMER_PROF, signal.SIGPROF, seconds), (signal.ITIMER_REAL, signal.SIGALRM, IDLE * seconds))
    before = [signal.signal(number, stop) for _, number, _ in timers]
    for timer, _, limit in timers:
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for (timer, number, _), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


@contextmanager
def little_memory() -> Iterator[None]:
    """Fail a call that allocates more than 100 MB at once."""
    tracemalloc.start(1)
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MOST_BYTES, f"{peak:,} bytes"
