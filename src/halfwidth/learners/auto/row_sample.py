"""A sample of rows with the points they were expanded at, to measure what the expansions leave out.

What an expansion leaves out falls like the squared distance of its point from the centre, like 1/k after k rows. So
rows are kept with a density of about 1/k: all of the first S, then S/2 to S of every further doubling, in flat memory
(it would be full after 2^15 S rows at the earliest). Row k of block j is kept if the fractional part of k (sqrt(5) - 1)
/ 2 is below p = 2^-j: no random state, and no stride that could fall in with a period of the data.

A row that knows much about some coefficient, as the few rows do in which a rare column is not zero, must not be left to
chance. With r the largest of g_j^2 over the mean of g_j^2 in the row's chunk, j over coefficients, p is multiplied by r
over its own mean, but by no less than 1 and no more than 16; a kept row stands for 1 / p rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto.field import Field

_MOST_NUMBERS = 2**21
_MOST_ROWS, _BLOCKS = 16_384, 16
_MOST_OFTEN = 16.0
SAME_CURVATURE = 0.0005
"""A chunk's Hessian is the same at the centre if no entry of its diagonal differs by more of that of all rows."""
_GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)


class RowSample:
    """The rows, the points and how many rows each stands for."""

    def __init__(self, row_size: int, dim: int) -> None:
        self.capacity = min(_MOST_ROWS, max(_MOST_NUMBERS // (row_size + dim), 64 * _BLOCKS))
        self.first = self.capacity // _BLOCKS
        self.count = self.seen = 0
        self._rows = np.zeros((self.capacity, row_size))
        self._points = np.zeros((self.capacity, dim))
        self._weights = np.zeros(self.capacity)
        self._numbers = np.zeros(self.capacity)

    def add(self, rows: Vector, point: Vector, field: Field) -> None:
        """The next rows were expanded at the point."""
        k = np.arange(self.seen, self.seen + len(rows), dtype=np.float64)
        fraction = k * _GOLDEN
        fraction -= np.floor(fraction)
        within = np.flatnonzero(fraction < _MOST_OFTEN * 2.0 ** -self._block(k[:1]))
        share = np.minimum(2.0 ** -self._block(k[within]) * _importance(field.gradients(point, rows[within])), 1.0)
        chosen = np.flatnonzero(fraction[within] < share)[: self.capacity - self.count]
        new = slice(self.count, self.count + len(chosen))
        self._rows[new], self._points[new], self._weights[new] = rows[within[chosen]], point, 1.0 / share[chosen]
        self._numbers[new] = k[within[chosen]]
        self.count = new.stop
        self.seen += len(rows)

    def skip(self, rows: int) -> None:
        """Keep none of the next rows: their expansions leave nothing out."""
        self.seen += rows

    def evenly(self, most: int) -> Vector:
        """At most so many of the rows, evenly spread over the sample."""
        return np.ascontiguousarray(self._rows[: self.count][:: max(-(-self.count // most), 1)])

    def reader(self) -> RowSample:
        """The same sample, to which rows can be added for reading: those lie beyond the rows of this one."""
        return copy(self)

    def _block(self, k: Vector) -> Vector:
        """The number of the block of each row."""
        return np.asarray(np.ceil(np.log2(np.maximum((k + 1.0) / self.first, 1.0))))

    def remainder(self, field: Field, centre: Vector) -> tuple[Vector, Vector]:
        """The sum over rows of what expansions leave out at the centre, and the covariance of its sampling error."""
        used = slice(0, self.count)
        left = field.left_out(self._points[used], centre, self._rows[used])
        weights = self._weights[used]
        return weights @ left, (left.T * (weights * (weights - 1.0))) @ left

    def curvatures(self, field: Field, centre: Vector) -> Vector:
        """The diagonal of the sum over all rows of the Hessians at the centre, estimated."""
        used = slice(0, self.count)
        return field.curvatures(centre, self._rows[used], self._weights[used])

    def by_batch(self, rows: Vector) -> NDArray[np.intp]:
        """The batch of each row, for batches of so many rows."""
        found = np.searchsorted(np.cumsum(rows), self._numbers[: self.count], side="right")
        return np.minimum(found, len(rows) - 1)

    def left_out(self, field: Field, centre: Vector) -> Vector:
        """What the expansion of each row leaves out at the centre, times the rows that it stands for (count, d)."""
        used = slice(0, self.count)
        left = field.left_out(self._points[used], centre, self._rows[used])
        return np.asarray(self._weights[used, None] * left)

    def counting(self, field: Field, centre: Vector) -> float:
        """How many of all rows the squares of the gradient at the centre rest on, of the coefficient with fewest."""
        squares = np.square(field.gradients(centre, self._rows[: self.count]))
        weights = self._weights[: self.count]
        once, twice = weights @ squares, weights @ np.square(squares)
        seen = twice > 0.0
        return float(np.min(np.square(once[seen]) / twice[seen], initial=np.inf))

    def turned(
        self, field: Field, centre: Vector, total: Vector, batch: NDArray[np.intp] | None = None
    ) -> Iterator[tuple[NDArray[np.intp], Vector]]:
        """By how much rows' Hessians at the centre exceed those where they were expanded, times what they stand for.

        For one chunk after the other, the batches of its rows and the sums over each (batches, d, d); over all its rows
        without batches. Only of chunks in which that matters for the total of all rows' Hessians.
        """
        for part, point in self._chunks():
            rows, weights = self._rows[part], self._weights[part]
            here, there = (field.curvatures(theta, rows, weights) for theta in (point, centre))
            if np.all(np.abs(there - here) <= SAME_CURVATURE * np.abs(np.diag(total))):
                continue
            own = np.zeros(len(rows), dtype=np.intp) if batch is None else batch[part]
            begins = np.flatnonzero(np.diff(own, prepend=-1))
            edges = np.append(begins, len(rows))
            there, here = (field.weighted(theta, rows, weights, edges) for theta in (centre, point))
            yield own[begins], there - here

    def bent(self, field: Field, centre: Vector) -> float:
        """By what share of itself the curvature of all rows is another at the centre, where it changes most."""
        here = sum(field.curvatures(point, self._rows[part], self._weights[part]) for part, point in self._chunks())
        size = np.where(here != 0.0, np.abs(here), np.inf)
        return float(np.max(np.abs(self.curvatures(field, centre) - here) / size, initial=0.0))

    def _chunks(self) -> Iterator[tuple[slice, Vector]]:
        """The rows that were expanded at one point, and the point, for all of them."""
        points = self._points[: self.count]
        ends = np.flatnonzero(np.any(points[1:] != points[:-1], axis=1)) + 1
        for first, end in pairwise([0, *ends.tolist(), self.count]):
            yield slice(first, end), points[first]

    def to_state(self) -> dict[str, Any]:
        arrays = {
            "rows": self._rows,
            "points": self._points,
            "weights": self._weights,
            "numbers": self._numbers,
        }
        return {"seen": self.seen} | {name: array[: self.count].copy() for name, array in arrays.items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Become what `to_state` described."""
        self.seen, self.count = int(state["seen"]), len(state["weights"])
        used = slice(0, self.count)
        for name, array in (("rows", self._rows), ("points", self._points), ("weights", self._weights)):
            array[used] = state[name]
        self._numbers[used] = state["numbers"]


def _importance(gradients: Vector) -> Vector:
    """How many times as often as others each of these rows should be kept, from 1 to 16; overwrites the gradients."""
    squares = np.square(gradients, out=gradients)
    mean = squares.mean(axis=0)
    squares /= np.where(mean > 0.0, mean, 1.0)
    largest = squares.max(axis=1, initial=0.0)
    often = largest / max(float(largest.mean()), 1e-300) if len(largest) else largest
    return np.asarray(np.clip(np.where(np.isfinite(often), often, _MOST_OFTEN), 1.0, _MOST_OFTEN))
