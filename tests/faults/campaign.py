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


def count(full: int) -> int:
    """How many cases of a campaign of `full` are run."""
    return max(1, round(full * SHARE))


class Hang(BaseException):
    """A call that did not end in time."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise `Hang` in a call that takes longer."""

    def stop(number: int, where: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


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
