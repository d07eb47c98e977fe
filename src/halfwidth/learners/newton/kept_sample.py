"""A thinned sample of rows in flat memory, to correct an expansion for its remainder.

A chunk expanded at theta_j stands in the estimating equation as U_j + H_j (theta_j - c). What the expansion leaves
out is, row by row and with the slope's expansion k_i + weight_i eta kept for every sampled row,

    remainder_i(c) = slope(z_i'c) - k_i - weight_i z_i'c,

which is of second order in c - theta_j. Its sum over all rows is estimated from the sample. Because the remainder is
small, so is the sampling error, which is estimated too: where it is not small against the standard errors, a second
pass is needed. As long as every row is in the sample nothing is left to estimate: `holds_all`.

Row i is in the sample at thinning t if the first t bits of a fixed hash of i are zero (no random state, and no step
that could fall in with the period of the data); when the store is full, t grows by one and half of it goes.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from halfwidth.families import Loss
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.newton.newton_solver import Rows
from halfwidth.state.fields import Array, State, Whole
from halfwidth.state.schema import Relation, Schema

Ids = NDArray[np.uint64]

MOST_NUMBERS = 2**19
MOST_WIDE_NUMBERS = 2**22
FEWEST_ROWS = 1_024
EXTRA_NUMBERS = 3
"""y, weight and offset; for every equation there are two more, k and the weight of the slope."""
PICTURED_ROWS = 4_096
"""Kept where the expansion is exact, for pictures of the residuals only."""


def hashed(index: Ids) -> Ids:
    """SplitMix64 (G. Steele, D. Lea and C. Flood, OOPSLA 2014) of row numbers."""
    z = index * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def width_of(columns: int, equations: int = 1) -> int:
    """How many numbers are kept of a row."""
    return columns + EXTRA_NUMBERS + 2 * equations


def coefficients(state: State) -> int:
    """How many coefficients the sample of this state belongs to."""
    equations: int = state.get("equations", 1)
    columns: int = state["rows"].shape[1] - width_of(0, equations)
    return columns * equations


def capacity_for_sample(columns: int, equations: int = 1) -> int:
    """How many rows of so many columns and equations are kept."""
    width = width_of(columns, equations)
    return max(FEWEST_ROWS, MOST_NUMBERS // width, min(8 * columns * equations, MOST_WIDE_NUMBERS // width))


def _selected_by_hash(state: State) -> bool:
    index, thinning = state["index"], state["thinning"]
    equations = state.get("equations", 1)
    size = coefficients(state)
    if size <= 0 or len(index) > capacity_for_sample(size // equations, equations) or (index[1:] <= index[:-1]).any():
        return False
    return not thinning or not (hashed(index) >> np.uint64(64 - thinning)).any()


class RowSample:
    """Columns of the store: the internal row, then y, weight, offset, and k and weight of the slope's expansion."""

    SCHEMA = Schema(
        None,
        None,
        {
            "thinning": Whole(0, 62, doc="t: a row is kept if t bits of its hash are zero"),
            "rows": Array(("kept", "width"), doc="internal row, y, weight, offset, k, weight of the slope"),
            "index": Array(("kept",), "u", doc="numbers of the kept rows"),
            "ids": Array(("kept",), "u", doc="hashes of their groups"),
            "equations": Whole(2, 100, doc="how many equations, where there are several"),
        },
        relations=(Relation("hold the rows that the hash selects, in order", _selected_by_hash),),
        title="thinned sample of rows",
        optional=("equations",),
    )

    def __init__(self, columns: int, most: int | None = None, equations: int = 1) -> None:
        self.columns, self.equations = columns, equations
        self.capacity = min(capacity_for_sample(columns, equations), most or MOST_NUMBERS)
        self.thinning = 0
        self.count = 0
        self._rows = np.empty((0, width_of(columns, equations)))
        self._index = np.empty(0, dtype=np.uint64)
        self._ids = np.empty(0, dtype=np.uint64)

    @property
    def holds_all(self) -> bool:
        """Whether no row was left out yet."""
        return self.thinning == 0

    @property
    def multiple(self) -> float:
        """How many rows each of these stands for."""
        return 2.0**self.thinning

    def add(self, rows: Rows, eta: Vector, loss: Loss, ids: Ids | None, first: int) -> None:
        """Take in those of the rows, numbered from `first` and expanded at eta, that the hash selects."""
        index = np.arange(first, first + len(rows), dtype=np.uint64)
        kept = self._selected(index)
        if not len(kept):
            return
        while self.count + len(kept) > self.capacity:
            self.thin()
            kept = self._selected(index)
        self._make_room(self.count + len(kept))
        to = slice(self.count, self.count + len(kept))
        part, new = rows[kept], self._rows[to]
        slope, weight = loss.root(eta[kept], part.y), loss.weight(eta[kept], part.y)
        new[:, : self.columns] = part.Z
        new[:, self.columns] = part.y
        new[:, self.columns + 1] = 1.0 if part.weight is None else part.weight
        new[:, self.columns + 2] = 0.0 if part.offset is None else part.offset
        k, weights = self._split(new)
        k[:] = slope - loss.bend(weight, eta[kept])
        weights[:] = weight
        self._index[to] = index[kept]
        if ids is not None:
            self._ids[to] = ids[kept]
        self.count = to.stop

    def thin(self) -> None:
        """Keep half of the rows, by one more bit of the hash of their numbers."""
        self.thinning += 1
        stay = self._selected(self._index[: self.count])
        for array in (self._rows, self._index, self._ids):
            array[: len(stay)] = array[stay]
        self.count = len(stay)

    def rows(self) -> Rows:
        """The rows, each with its own weight."""
        kept = self._rows[: self.count]
        y, weight, offset = (kept[:, self.columns + j] for j in range(EXTRA_NUMBERS))
        return Rows(np.ascontiguousarray(kept[:, : self.columns]), y, weight, offset, self.equations)

    def standing_for_all(self, rows: Rows) -> Rows:
        """The rows, those of `rows()`, weighted so that they stand for all."""
        return Rows(rows.Z, rows.y, rows.weighted(np.full(self.count, self.multiple)), rows.offset, self.equations)

    def expansion(self) -> tuple[Vector, Vector]:
        """k and weight of every row."""
        return self._split(self._rows[: self.count])

    def _split(self, rows: Vector) -> tuple[Vector, Vector]:
        """The parts of these rows that hold k and the weights, one number or one per equation."""
        if self.equations == 1:
            return rows[:, -2], rows[:, -1]
        return rows[:, -2 * self.equations : -self.equations], rows[:, -self.equations :]

    @property
    def index(self) -> Ids:
        return self._index[: self.count]

    @property
    def ids(self) -> Ids:
        return self._ids[: self.count]

    def _selected(self, index: Ids) -> NDArray[np.intp]:
        if self.thinning == 0:
            return np.arange(len(index))
        return np.flatnonzero(hashed(index) >> np.uint64(64 - self.thinning) == 0)

    def _make_room(self, rows: int) -> None:
        if rows > len(self._rows):
            more = min(self.capacity, max(rows, 2 * len(self._rows))) - self.count
            self._rows = np.concatenate([self._rows[: self.count], np.empty((more, self._rows.shape[1]))])
            self._index = np.concatenate([self.index, np.zeros(more, dtype=np.uint64)])
            self._ids = np.concatenate([self.ids, np.zeros(more, dtype=np.uint64)])

    def to_state(self) -> dict[str, Any]:
        return {
            "thinning": self.thinning,
            "rows": self._rows[: self.count].copy(),
            "index": self.index.copy(),
            "ids": self.ids.copy(),
        } | ({} if self.equations == 1 else {"equations": self.equations})

    @classmethod
    def from_state(cls, state: dict[str, Any], most: int | None = None) -> Self:
        rows = np.array(state["rows"], dtype=np.float64)
        equations = int(state.get("equations", 1))
        sample = cls(coefficients(state) // equations, most, equations)
        sample.thinning, sample.count = int(state["thinning"]), len(rows)
        sample._rows, sample._index = rows, np.array(state["index"], dtype=np.uint64)
        sample._ids = np.array(state["ids"], dtype=np.uint64)
        return sample
