"""Rows set aside until they fill a chunk, with the hashes of their groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.equation.buckets import digests
from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector

Ids = NDArray[np.uint64]

_FIRST_ROWS = 1_024
_KEPT_NUMBERS = 2**20


@dataclass(frozen=True)
class Piece:
    """Consecutive rows; `ids` are hashes of their groups."""

    X: Vector
    y: Vector
    weight: Vector | None
    offset: Vector | None
    ids: Ids | None

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: slice | NDArray[np.intp]) -> Piece:
        """Some of the rows."""
        weight, offset = (None if part is None else part[rows] for part in (self.weight, self.offset))
        return Piece(self.X[rows], self.y[rows], weight, offset, None if self.ids is None else self.ids[rows])


class PendingRows:
    """At most `most` rows; columns of the store: X, then y, weight and offset."""

    def __init__(self, dim: int, most: int) -> None:
        self.dim = dim
        self.most = most
        self.filled = 0
        self._rows = np.empty((0, dim + 3))
        self._ids = np.empty(0, dtype=np.uint64)

    def keep(self, piece: Piece) -> None:
        """Put rows aside; the caller sees to it that they fit."""
        if self.filled + len(piece) > len(self._rows):
            self._grow(self.filled + len(piece))
        to = slice(self.filled, self.filled + len(piece))
        self._rows[to, : self.dim] = piece.X
        self._rows[to, -3] = piece.y
        self._rows[to, -2] = 1.0 if piece.weight is None else piece.weight
        self._rows[to, -1] = 0.0 if piece.offset is None else piece.offset
        if piece.ids is not None:
            self._ids[to] = piece.ids
        self.filled = to.stop

    def piece(self, grouped: bool) -> Piece:
        """The rows set aside; X is not copied, and holds until the next row."""
        rows = self._rows[: self.filled]
        ids = self._ids[: self.filled].copy() if grouped else None
        weight = None if (rows[:, -2] == 1.0).all() else rows[:, -2].copy()
        return Piece(rows[:, : self.dim], rows[:, -3].copy(), weight, rows[:, -1].copy(), ids)

    def handed_over(self, grouped: bool) -> Piece:
        """The same; none are set aside any longer, and the memory of wide rows is the caller's alone."""
        piece = self.piece(grouped)
        self.filled = 0
        if self._rows.size > _KEPT_NUMBERS:
            self._rows, self._ids = self._rows[:0].copy(), self._ids[:0].copy()
        return piece

    def _grow(self, rows: int) -> None:
        size = min(self.most, max(rows, 2 * len(self._rows), _FIRST_ROWS))
        kept, ids = self._rows[: self.filled], self._ids[: self.filled]
        self._rows = np.empty((size, self.dim + 3))
        self._ids = np.zeros(size, dtype=np.uint64)
        self._rows[: self.filled], self._ids[: self.filled] = kept, ids

    def to_state(self) -> dict[str, Any]:
        return {"pending": self._rows[: self.filled].copy(), "pending_ids": self._ids[: self.filled].copy()}

    def restore(self, state: dict[str, Any]) -> None:
        """Become what `to_state` described."""
        self.filled = len(state["pending"])
        self._rows = np.array(state["pending"], dtype=np.float64).reshape(self.filled, self.dim + 3)
        self._ids = np.array(state["pending_ids"], dtype=np.uint64)


class Groups:
    """Whether rows come in groups: with every chunk, or with none."""

    def __init__(self) -> None:
        self.given: bool | None = None

    def ids(self, group: ArrayLike | None, rows: int) -> Ids | None:
        """A hash of every row's group; None where no groups are given."""
        if self.given is not None and self.given != (group is not None):
            raise InputError("group must be given with every chunk or with none")
        if group is None:
            self.given = False
            return None
        found = digests(group)
        if found.shape != (rows,):
            raise InputError.of("group", f"have shape ({rows},), one label for each row of X", found.shape)
        self.given = True
        return found
