"""Rows set aside until they fill a chunk, and where groups of rows start."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.errors import InputError

Vector = NDArray[np.float64]
Starts = NDArray[np.bool_]
Piece = tuple[Vector, Vector, Vector | None, Vector | None, Starts | None]
"""X, y, weight, offset, and whether each row starts a group."""

_FIRST_ROOM = 1_024


class PendingRows:
    """At most `most` rows; columns of the store: X, then y, weight and offset."""

    def __init__(self, dim: int, most: int) -> None:
        self.dim = dim
        self.most = most
        self.filled = 0
        self._rows = np.empty((0, dim + 3))
        self._starts = np.empty(0, dtype=np.bool_)

    def keep(self, piece: Piece) -> None:
        """Put rows aside; the caller sees to it that they fit."""
        X, y, weight, offset, starts = piece
        if self.filled + len(y) > len(self._rows):
            self._make_room(self.filled + len(y))
        to = slice(self.filled, self.filled + len(y))
        self._rows[to, : self.dim] = X
        self._rows[to, -3] = y
        self._rows[to, -2] = 1.0 if weight is None else weight
        self._rows[to, -1] = 0.0 if offset is None else offset
        if starts is not None:
            self._starts[to] = starts
        self.filled = to.stop

    def piece(self, grouped: bool) -> Piece:
        """The rows set aside, as copies in C order: the same bits as rows that come straight from the caller."""
        rows = self._rows[: self.filled]
        starts = self._starts[: self.filled] if grouped else None
        return rows[:, : self.dim].copy(), rows[:, -3].copy(), rows[:, -2].copy(), rows[:, -1].copy(), starts

    def _make_room(self, rows: int) -> None:
        room = min(self.most, max(rows, 2 * len(self._rows), _FIRST_ROOM))
        kept, starts = self._rows[: self.filled], self._starts[: self.filled]
        self._rows = np.empty((room, self.dim + 3))
        self._starts = np.zeros(room, dtype=np.bool_)
        self._rows[: self.filled], self._starts[: self.filled] = kept, starts

    def to_state(self) -> dict[str, Any]:
        return {"pending": self._rows[: self.filled].copy(), "pending_starts": self._starts[: self.filled].copy()}

    def restore(self, state: dict[str, Any]) -> None:
        """Become what `to_state` described."""
        self.filled = len(state["pending"])
        self._rows = np.array(state["pending"], dtype=np.float64)
        self._starts = np.array(state["pending_starts"], dtype=np.bool_)


class Groups:
    """Whether rows come in groups, and the label of the last one."""

    def __init__(self) -> None:
        self.given: bool | None = None
        self.last: NDArray[Any] | None = None

    def starts(self, group: ArrayLike | None, rows: int) -> Starts | None:
        """Whether each of the rows starts a group; None where no groups are given."""
        if self.given is None:
            self.given = group is not None
        if self.given != (group is not None):
            raise InputError("group must be given with every chunk or with none")
        if group is None:
            return None
        ids = np.asarray(group)
        if ids.shape != (rows,):
            raise InputError.of("group", f"have shape ({rows},), one label for each row of X", ids.shape)
        starts = np.empty(rows, dtype=np.bool_)
        starts[1:] = ids[1:] != ids[:-1]
        starts[0] = self.last is None or bool(ids[0] != self.last[0])
        self.last = np.array([ids[-1]])  # text from an object column gets a plain type
        return starts
