"""Score batches in flat memory: sums over consecutive rows, neighbours merged when the store is full.

Every batch holds its score relative to a fixed reference, B_j = U_j + H_j (theta_j - reference), its curvature H_j
and its rows. The residual of batch j at any centre c is then r_j = B_j - H_j (c - reference), exactly as if the batch
were at hand. Between capacity/2 and capacity batches are kept; their length doubles as the rows come. Rows beyond
`room` make neighbours merge; added up to there and then further, the batches do not depend on how rows are cut.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from halfwidth.state.fields import Array, Real, State, Whole
from halfwidth.state.schema import Relation, Schema

Vector = NDArray[np.float64]

_MOST_NUMBERS = 2**23
_MOST_BATCHES = 2_048
_FEWEST_BATCHES = 32


def capacity_for(size: int, most_batches: int = _MOST_BATCHES, most_numbers: int = _MOST_NUMBERS) -> int:
    """How many batches of `size` coefficients are kept: a power of two, fewer when the matrices are large."""
    fitting = max(most_numbers // size**2, _FEWEST_BATCHES)
    return int(min(most_batches, 2 ** (fitting.bit_length() - 1)))


def _fits(state: State) -> bool:
    size = len(state["open_score"])
    return size > 0 and len(state["rows"]) <= capacity_for(size)


class ScoreBatches:
    """The batches so far, and the one that is still open."""

    SCHEMA = Schema(
        None,
        None,
        {
            "length": Whole(1, doc="rows in a batch"),
            "scores": Array(("count", "size"), doc="B_j, relative to the reference"),
            "curvatures": Array(("count", "size", "size"), doc="H_j"),
            "rows": Array(("count",), low=0, doc="rows of each batch"),
            "open_score": Array(("size",), doc="B of the open batch"),
            "open_curvature": Array(("size", "size"), doc="its H"),
            "open_rows": Real(0.0, doc="its rows"),
        },
        relations=(Relation("have no more batches than the store holds", _fits),),
        title="store of score batches",
    )

    def __init__(self, size: int, length: int, capacity: int | None = None) -> None:
        self.capacity = capacity_for(size) if capacity is None else capacity
        self.length = length
        self.count = 0
        self.scores = np.zeros((self.capacity, size))
        self.curvatures = np.zeros((self.capacity, size, size))
        self.rows = np.zeros(self.capacity)
        self.open_score = np.zeros(size)
        self.open_curvature = np.zeros((size, size))
        self.open_rows = 0.0

    @property
    def room(self) -> int:
        """How many rows can be added before neighbours have to merge."""
        return int((self.capacity - self.count) * self.length - self.open_rows)

    def edges(self, rows: int, starts: NDArray[np.bool_] | None) -> NDArray[np.int64]:
        """Where to cut the next rows: 0, inner cuts, rows. With `starts` a batch ends only where a group starts."""
        if starts is None:
            first = int(self.length - self.open_rows)
            return np.concatenate([[0], np.arange(first, rows, self.length), [rows]]).astype(np.int64)
        cuts, filled, last = [0], self.open_rows, 0
        for at in np.flatnonzero(starts).tolist():
            filled += at - last
            last = at
            if filled >= self.length:
                cuts.append(at)
                filled = 0.0
        return np.array([*cuts, rows], dtype=np.int64)

    def add(self, edges: NDArray[np.int64], scores: Vector, curvatures: Vector, grouped: bool) -> None:
        """Take in the pieces between the edges; every inner edge closes a batch."""
        sizes = np.diff(edges)
        self.open_score += scores[0]
        self.open_curvature += curvatures[0]
        self.open_rows += float(sizes[0])
        if len(sizes) > 1:
            self._close()
            inner = slice(1, len(sizes) - 1)
            self._append(scores[inner], curvatures[inner], sizes[inner].astype(np.float64))
            self.open_score += scores[-1]
            self.open_curvature += curvatures[-1]
            self.open_rows += float(sizes[-1])
        if not grouped and self.open_rows >= self.length:
            self._close()

    def with_open(self) -> tuple[Vector, Vector, Vector]:
        """Scores, curvatures and rows of all batches, the open one last."""
        extra = int(self.open_rows > 0)
        end = slice(0, self.count)
        if not extra:
            return self.scores[end], self.curvatures[end], self.rows[end]
        return (
            np.concatenate([self.scores[end], self.open_score[None]]),
            np.concatenate([self.curvatures[end], self.open_curvature[None]]),
            np.append(self.rows[end], self.open_rows),
        )

    def copy(self) -> Self:
        return deepcopy(self)

    def _close(self) -> None:
        if self.open_rows > 0:
            self._append(self.open_score[None], self.open_curvature[None], np.array([self.open_rows]))
        self.open_score[:] = 0.0
        self.open_curvature[:] = 0.0
        self.open_rows = 0.0

    def _append(self, scores: Vector, curvatures: Vector, rows: Vector) -> None:
        while self.count + len(rows) > self.capacity:
            self._merge()
        new = slice(self.count, self.count + len(rows))
        self.scores[new], self.curvatures[new], self.rows[new] = scores, curvatures, rows
        self.count = new.stop
        if self.count == self.capacity:
            self._merge()

    def _merge(self) -> None:
        pairs, odd = divmod(self.count, 2)
        for store in (self.scores, self.curvatures, self.rows):
            store[:pairs] = store[0 : 2 * pairs : 2] + store[1 : 2 * pairs : 2]
            if odd:
                store[pairs] = store[2 * pairs]
        self.count = pairs + odd
        self.length *= 2

    def to_state(self) -> dict[str, Any]:
        return {
            "length": self.length,
            "scores": self.scores[: self.count].copy(),
            "curvatures": self.curvatures[: self.count].copy(),
            "rows": self.rows[: self.count].copy(),
            "open_score": self.open_score.copy(),
            "open_curvature": self.open_curvature.copy(),
            "open_rows": self.open_rows,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        batches = cls(len(state["open_score"]), int(state["length"]))
        batches.count = len(state["rows"])
        for name in ("scores", "curvatures", "rows"):
            getattr(batches, name)[: batches.count] = state[name]
        batches.open_score[:] = state["open_score"]
        batches.open_curvature[:] = state["open_curvature"]
        batches.open_rows = float(state["open_rows"])
        return batches
