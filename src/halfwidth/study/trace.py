"""One run seen as it goes: the interval at a grid of moments."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from halfwidth.inference import Interval
from halfwidth.learners import Learner


def trace(
    learner: Learner, rows: int, moments: int = 60, first: int = 4_000, level: float = 0.95
) -> Iterator[Interval]:
    """Run the learner over so many rows and yield the interval of every coordinate at log-spaced moments."""
    for moment in np.unique(np.geomspace(first, rows, moments).astype(int)):
        learner.run(int(moment) - learner.n_seen)
        yield learner.result().interval(level=level)
