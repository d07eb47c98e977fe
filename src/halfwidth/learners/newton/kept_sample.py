"""A thinned sample of rows in flat memory, to correct an expansion for its remainder.

A chunk expanded at theta_j stands in the estimating equation as U_j + H_j (theta_j - c). What the expansion leaves
out is, row by row and with eta_j = z'theta_j kept for every sampled row,

    remainder_i(c) = slope(z_i'c) - slope(eta_ji) - weight(eta_ji) (z_i'c - eta_ji),

which is of second order in c - theta_j. Its sum over all rows is estimated from the sample. Because the remainder is
small, so is the sampling error: a sample of some thousand rows removes the bias of early, unrepresentative chunks. As
long as every row is in the sample the corrected equation is that of the offline fit.

Row i is in the sample at thinning t if the first t bits of a fixed hash of i are zero (no random state, and no step
that could fall in with the period of the data); when the store is full, t grows by one and half of it goes.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from halfwidth.families import Loss
from halfwidth.learners.newton.newton_solver import Rows, solve_spd
from halfwidth.state.fields import Array, State, Whole
from halfwidth.state.schema import Relation, Schema

Vector = NDArray[np.float64]

_MOST_NUMBERS = 2**19
_ROUNDS = 10
_SETTLED = 1e-10


def hashed(index: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64 (G. Steele, D. Lea and C. Flood, OOPSLA 2014) of row numbers."""
    z = index * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def capacity_for_sample(size: int) -> int:
    """How many rows of `size` coefficients are kept."""
    return max(1_024, _MOST_NUMBERS // (size + 4))


def _selected_by_hash(state: State) -> bool:
    index, thinning = state["index"], state["thinning"]
    width = state["rows"].shape[1]
    if width < 5 or len(index) > capacity_for_sample(width - 4) or (index[1:] <= index[:-1]).any():
        return False
    return not thinning or not (hashed(index) >> np.uint64(64 - thinning)).any()


class RowSample:
    """Columns of the store: the internal row, then y, weight, offset and eta at the point of expansion."""

    SCHEMA = Schema(
        None,
        None,
        {
            "thinning": Whole(0, 62, doc="t: a row is kept if t bits of its hash are zero"),
            "rows": Array(("kept", "width"), doc="internal row, y, weight, offset, eta"),
            "index": Array(("kept",), "u", doc="numbers of the kept rows"),
        },
        relations=(Relation("hold the rows that the hash selects, in order", _selected_by_hash),),
        title="thinned sample of rows",
    )

    def __init__(self, size: int) -> None:
        self.size = size
        self.capacity = capacity_for_sample(size)
        self.thinning = 0
        self.count = 0
        self._rows = np.empty((0, size + 4))
        self._index = np.empty(0, dtype=np.uint64)

    def add(self, rows: Rows, eta: Vector, first: int) -> None:
        """Take in those of the rows, numbered from `first`, that the hash selects."""
        index = np.arange(first, first + len(rows.y), dtype=np.uint64)
        kept = self._selected(index)
        while self.count + len(kept) > self.capacity:
            self.thinning += 1
            stay = self._selected(self._index[: self.count])
            self._rows[: len(stay)] = self._rows[stay]
            self._index[: len(stay)] = self._index[stay]
            self.count = len(stay)
            kept = self._selected(index)
        self._make_room(self.count + len(kept))
        new = self._rows[self.count : self.count + len(kept)]
        new[:, : self.size] = rows.Z[kept]
        new[:, -4] = rows.y[kept]
        new[:, -3] = 1.0 if rows.weight is None else rows.weight[kept]
        new[:, -2] = 0.0 if rows.offset is None else rows.offset[kept]
        new[:, -1] = eta[kept]
        self._index[self.count : self.count + len(kept)] = index[kept]
        self.count += len(kept)

    def refine(self, loss: Loss, centre: Vector, curvature: Vector, penalty: Vector) -> tuple[Vector, Vector]:
        """The root of the corrected equation near `centre`, and the curvature there."""
        kept = self._rows[: self.count]
        rows = Rows(kept[:, : self.size], kept[:, -4], kept[:, -3] * 2.0**self.thinning, kept[:, -2])
        eta_j = kept[:, -1]
        slope_j, weight_j = loss.root(eta_j, rows.y), loss.weight(eta_j, rows.y)
        full = np.diag(penalty)
        point, best = centre, np.inf
        step, corrected = np.zeros_like(centre), curvature
        for _ in range(_ROUNDS):
            trial = point - step
            eta = rows.eta(trial)
            remainder = loss.root(eta, rows.y) - slope_j - weight_j * (eta - eta_j)
            gradient = (curvature + full) @ (trial - centre) + rows.weighted(remainder) @ rows.Z
            bent = curvature + (rows.Z.T * rows.weighted(loss.weight(eta, rows.y) - weight_j)) @ rows.Z
            new_step = solve_spd(bent + full, gradient)
            decrement = float(gradient @ new_step)
            if not 0.0 <= decrement < best:
                step = 0.5 * step
                continue
            point, best, step, corrected = trial, decrement, new_step, bent
            if decrement < _SETTLED:
                break
        return point, corrected

    def dispersion(self, loss: Loss, centre: Vector) -> float:
        """Sum of squared scores over sum of weights, at `centre`: one where the family's variance is right."""
        kept = self._rows[: self.count]
        rows = Rows(kept[:, : self.size], kept[:, -4], kept[:, -3], kept[:, -2])
        eta = rows.eta(centre)
        squares = rows.weighted(loss.score(eta, rows.y) ** 2).sum()
        return float(squares / max(rows.weighted(loss.weight(eta, rows.y)).sum(), 1e-300))

    def _selected(self, index: NDArray[np.uint64]) -> NDArray[np.intp]:
        if self.thinning == 0:
            return np.arange(len(index))
        return np.flatnonzero(hashed(index) >> np.uint64(64 - self.thinning) == 0)

    def _make_room(self, rows: int) -> None:
        if rows > len(self._rows):
            size = min(self.capacity, max(rows, 2 * len(self._rows)))
            self._rows = np.concatenate([self._rows[: self.count], np.empty((size - self.count, self.size + 4))])
            self._index = np.concatenate([self._index[: self.count], np.zeros(size - self.count, dtype=np.uint64)])

    def to_state(self) -> dict[str, Any]:
        return {
            "thinning": self.thinning,
            "rows": self._rows[: self.count].copy(),
            "index": self._index[: self.count].copy(),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        rows = np.array(state["rows"], dtype=np.float64)
        sample = cls(rows.shape[1] - 4)
        sample.thinning, sample.count = int(state["thinning"]), len(rows)
        sample._rows, sample._index = rows, np.array(state["index"], dtype=np.uint64)
        return sample
