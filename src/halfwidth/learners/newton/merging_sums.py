"""Sums over consecutive rows in flat memory: when the store is full, neighbours merge and batches become twice as long.

Between capacity/2 and capacity batches are kept, so their length grows in proportion to the rows seen.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


class BatchSums:
    """Sums of vectors over equal batches; the last, unfinished batch is held back."""

    def __init__(self, dim: int, length: int, capacity: int) -> None:
        self.length = length
        self.count = 0
        self._sums = np.zeros((capacity, dim))
        self._open = np.zeros(dim)
        self._open_rows = 0

    def add(self, values: Vector) -> None:
        """Take in the next rows of values."""
        at = 0
        while at < len(values):
            take = min(self.length - self._open_rows, len(values) - at)
            self._open += values[at : at + take].sum(axis=0)
            self._open_rows += take
            at += take
            if self._open_rows == self.length:
                self._close()

    def means(self) -> Vector:
        """The means over the finished batches."""
        return self._sums[: self.count] / self.length

    def _close(self) -> None:
        self._sums[self.count] = self._open
        self.count += 1
        self._open[:] = 0.0
        self._open_rows = 0
        if self.count == len(self._sums):
            half = self.count // 2
            self._sums[:half] = self._sums[0::2] + self._sums[1::2]
            self.count = half
            self.length *= 2
