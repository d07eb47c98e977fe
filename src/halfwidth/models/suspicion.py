"""A separation that a sample of rows suggests, held against all rows by the next pass.

An overlapping sample rules separation out; a separated one proves nothing. So the direction that separates it is looked
at in every row of the next pass, and rows on the wrong side are kept. If there are none, the separation is a fact. If
sample and kept rows together overlap, there is none; else they suggest another direction, for one more pass. It is the
cutting-plane method for the linear programme of Konis.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from halfwidth.families import FAMILIES, Loss
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.newton.column_scaling import Scaling
from halfwidth.learners.newton.newton_solver import Rows
from halfwidth.models.separation import Mask, separating_direction, wrong_side
from halfwidth.state.fields import Array, Real, State, Text, Whole
from halfwidth.state.schema import Relation, Schema

MOST_KEPT = 512


class Finding(NamedTuple):
    """Coefficients that are separated, and the internal direction where that is a suspicion only."""

    mask: Mask
    suspected: Vector | None


def _fits(state: State) -> bool:
    return bool(len(state["y"]) == len(state["X"]) and state["X"].shape[1] <= len(state["direction"]))


class Suspicion:
    """A direction, in the user's coefficients, and the rows of this pass on its wrong side.

    Parameters
    ----------
    family : str
        The family.
    direction : ndarray
        The direction, the intercept first if there is one.
    slack : float
        By how much rows may be on the wrong side, from rounding.
    rows : int
        How many rows a whole pass has.
    """

    SCHEMA = Schema(
        None,
        None,
        {
            "family": Text(doc="the family"),
            "direction": Array(("size",), doc="of coefficients, on the user's scale"),
            "slack": Real(0.0, doc="what counts as rounding"),
            "rows": Whole(doc="rows of a whole pass"),
            "looked_at": Whole(doc="rows of this pass so far"),
            "earlier": Whole(0, doc="kept rows of earlier passes"),
            "X": Array(("kept", "columns"), doc="kept rows on a wrong side"),
            "y": Array(("kept",), doc="their targets"),
        },
        relations=(Relation("keep rows of its own columns", _fits),),
        title="suspected separation",
    )

    def __init__(self, family: str, direction: Vector, slack: float, rows: int, known: Self | None = None) -> None:
        self.family, self.direction, self.slack, self.rows = family, direction, slack, rows
        self.looked_at = 0
        self.X: Vector = np.empty((0, 0)) if known is None else known.X
        self.y: Vector = np.empty(0) if known is None else known.y
        self.earlier = len(self.y)

    @property
    def confirmed(self) -> bool:
        """Whether all rows were looked at, and none is on the wrong side."""
        return self.looked_at >= self.rows and len(self.y) == self.earlier

    def look(self, X: Vector, y: Vector) -> None:
        """Look at the next rows; the first few on the wrong side are kept."""
        self.looked_at += len(y)
        left = self.earlier + MOST_KEPT - len(self.y)
        if left <= 0:
            return
        k = len(self.direction) - X.shape[1]
        along = X @ self.direction[k:] + self.direction[:k].sum()
        wrong = np.flatnonzero(wrong_side(along, y, FAMILIES[self.family].separation) > self.slack)[:left]
        if len(wrong):
            self.X = np.vstack([self.X.reshape(-1, X.shape[1]), X[wrong]])
            self.y = np.append(self.y, y[wrong])

    def decide(self, sample: Rows, loss: Loss, centre: Vector, scaling: Scaling) -> Vector | None:
        """The direction that separates the sample and the kept rows, internally, if any does."""
        if not len(self.y):
            return scaling.inverse(self.direction)
        Z = np.vstack([sample.Z, scaling.apply(self.X)])
        y, nothing = np.append(sample.y, self.y), np.zeros(len(self.y))
        weight = None if sample.weight is None else np.append(sample.weight, nothing + 1.0)
        offset = None if sample.offset is None else np.append(sample.offset, nothing)
        return separating_direction(Rows(Z, y, weight, offset), loss, centre)

    def to_state(self) -> dict[str, Any]:
        names = ("family", "direction", "slack", "rows", "looked_at", "earlier", "X", "y")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        found = cls(state["family"], np.array(state["direction"], dtype=float), state["slack"], state["rows"])
        found.looked_at, found.earlier = state["looked_at"], state["earlier"]
        found.X, found.y = np.array(state["X"], dtype=float), np.array(state["y"], dtype=float)
        return found
