"""Whether the likelihood of a regression of classes or of counts has a maximum.

One column by itself, exactly, at any n and in flat memory: with an intercept, column j separates two classes if min
over class 1 >= max over class 0 or the other way round (quasi-separation, ties allowed); without one the cut must be at
zero. Counts separate if all rows with y > 0 have the same value of the column and all others lie on one side of it.
Once a column overlaps it does for good, so that only the columns that never did are looked at.

Several columns together, on rows at hand: a separating direction is where the estimate runs off to as a slight penalty
gets slighter. delta = theta(penalty / 100) - theta(penalty) is checked row by row: no row on the wrong side, some on
the right one; where classes are apart by little it misses by a hair, and `separating_plane` decides. On a sample that
is a suspicion: an overlapping sample rules separation out, a separated one proves nothing. Of more than two classes no
row may come to favour another class than its own (A. Albert and J. A. Anderson, Biometrika 71, 1984); a single column
is then no special case.

K. Konis, thesis, Oxford (2007); S. Correia, P. Guimaraes and T. Zylkin, *Verifying the existence of maximum likelihood
estimates for generalized linear models* (2021).
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from halfwidth.families import FAMILIES, Loss
from halfwidth.families.multinomial import with_baseline
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.newton.column_scaling import Scaling
from halfwidth.learners.newton.newton_solver import Rows, minimise
from halfwidth.learners.newton.offline_fit import SLIGHT
from halfwidth.models.separating_plane import separating_plane
from halfwidth.state.fields import Array, Text
from halfwidth.state.schema import Schema

Mask = NDArray[np.bool_]

_BLOCK_ROWS = 1_024
_TINY_STEP = 1e-12
_SLACK = 1e-3
_LEAST = 1e-3
"""No row may move to the wrong side by more than this many logits."""
_TAKES_PART = 1e-2
_MOSTLY = 0.05
"""A direction that moves more rows than this share to their wrong side is not near one that separates."""
_MOVED = 0.5
"""A direction along which the estimate moves less than this many logits at the farthest row is no way to infinity."""


class ColumnExtremes:
    """The least and the largest value of every column, for y of 0 and for larger y."""

    SCHEMA = Schema(
        None,
        None,
        {
            "family": Text(tuple(FAMILIES), doc="the family"),
            "low": Array((2, "columns"), finite=False, doc="least values, for y of 0 and for larger y"),
            "high": Array((2, "columns"), finite=False, doc="largest values"),
            "active": Array(("columns",), "b", doc="columns that were not seen to overlap"),
        },
        title="set of extremes of columns",
    )

    def __init__(self, dim: int, family: str) -> None:
        self.family = family
        self.low = np.full((2, dim), np.inf)
        self.high = np.full((2, dim), -np.inf)
        rule = FAMILIES[family].separation
        self.rule = None if rule == "largest" else rule
        self.active = np.full(dim, self.rule is not None)

    def add(self, X: Vector, y: Vector) -> None:
        """Take in rows, block by block; columns that were seen to overlap are left alone, and forgotten."""
        for start in range(0, len(y), _BLOCK_ROWS):
            columns = np.flatnonzero(self.active)
            if not len(columns):
                return
            block = slice(start, start + _BLOCK_ROWS)
            part, positive = X[block], y[block] > 0.0
            part = part if len(columns) == X.shape[1] else part[:, columns]
            for label, chosen in enumerate((~positive, positive)):
                rows = part[chosen]
                if len(rows):
                    self.low[label, columns] = np.minimum(self.low[label, columns], rows.min(axis=0))
                    self.high[label, columns] = np.maximum(self.high[label, columns], rows.max(axis=0))
            self.active &= self._one_sided()
            self.low[:, ~self.active], self.high[:, ~self.active] = np.inf, -np.inf

    def add_other(self, other: ColumnExtremes) -> None:
        """Take in the extremes of other rows."""
        self.low, self.high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        self.active &= other.active & self._one_sided()
        self.low[:, ~self.active], self.high[:, ~self.active] = np.inf, -np.inf

    def add_columns(self, count: int, y_range: tuple[float, float]) -> None:
        """More columns, zero in all rows so far, whose targets were in `y_range`."""
        seen = np.array([y_range[0] <= 0.0, y_range[1] > 0.0])[:, None]
        nothing = np.full((2, count), np.inf)
        self.low = np.hstack([self.low, np.where(seen, 0.0, nothing)])
        self.high = np.hstack([self.high, np.where(seen, 0.0, -nothing)])
        self.active = np.append(self.active, np.full(count, self.rule is not None))

    def separated(self, intercept: bool) -> Mask:
        """Which columns separate by themselves: they vary, and nothing speaks against it."""
        low, high = self.low.min(axis=0), self.high.max(axis=0)
        found = self.active & (low < high) & np.isfinite(self.low).all(axis=0)
        if intercept:
            return np.asarray(found)
        if self.rule == "zeros":
            return np.asarray(found & (self.low[1] == 0.0) & (self.high[1] == 0.0))
        above = (self.low[1] >= 0.0) & (self.high[0] <= 0.0)
        below = (self.high[1] <= 0.0) & (self.low[0] >= 0.0)
        return np.asarray(found & (above | below))

    def all_apart(self, intercept: bool) -> bool:
        """Whether one column leaves a gap between two classes: no coefficient has a maximum then."""
        if self.rule != "sides":
            return False
        above, below = self.low[1] > self.high[0], self.high[1] < self.low[0]
        if not intercept:
            above &= (self.low[1] > 0.0) & (self.high[0] < 0.0)
            below &= (self.high[1] < 0.0) & (self.low[0] > 0.0)
        return bool((self.separated(intercept) & (above | below)).any())

    def _one_sided(self) -> Mask:
        seen = np.isfinite(self.low)
        if self.rule == "sides":
            apart = (self.low[1] >= self.high[0]) | (self.high[1] <= self.low[0])
        else:
            one_sided = (self.low[0] >= self.low[1]) | (self.high[0] <= self.low[1])
            apart = (self.low[1] == self.high[1]) & one_sided
        return np.asarray(apart | ~seen.all(axis=0) & ((self.low[1] >= self.high[1]) | (self.rule == "sides")))

    def to_state(self) -> dict[str, Any]:
        return {"family": self.family, "low": self.low.copy(), "high": self.high.copy(), "active": self.active.copy()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        extremes = cls(np.shape(state["active"])[0], str(state["family"]))
        extremes.low, extremes.high = np.array(state["low"], dtype=float), np.array(state["high"], dtype=float)
        extremes.active = np.array(state["active"], dtype=np.bool_)
        return extremes


def separating_direction(rows: Rows, loss: Loss, centre: Vector) -> Vector | None:
    """A direction along which these rows are separated, if the estimate runs off along one."""
    zero, slight = np.zeros(len(centre)), np.full(len(centre), SLIGHT * rows.total_weight)
    near = minimise(rows, loss, centre, zero, slight, _TINY_STEP).theta
    far = minimise(rows, loss, near, zero, 0.01 * slight, _TINY_STEP).theta
    along = rows.along(far - near)
    reach = float(np.abs(along).max())
    if not reach > _MOVED:
        return None
    wrong = wrong_side(along, rows.y, loss.separation)
    if wrong.max() <= slack_for(reach):
        return far - near
    if loss.separation == "zeros" or loss.separation is None or np.mean(wrong > 0.0) > _MOSTLY:
        return None
    return separating_plane(rows, loss.separation, far - near)


def wrong_side(along: Vector, y: Vector, rule: str | None) -> Vector:
    """How far, in logits or log counts, a direction moves every row to its wrong side."""
    if rule == "largest":
        moved = with_baseline(along)
        return np.asarray(moved.max(axis=1) - moved[np.arange(len(y)), y.astype(np.intp)])
    if rule == "sides":
        return np.where(y > 0.5, -along, along)
    return np.where(y > 0.0, np.abs(along), along)


def slack_for(reach: float) -> float:
    """What counts as rounding for a direction that moves the farthest row by `reach`."""
    return min(_SLACK * reach, _LEAST)


def taking_part(direction: Vector, scaling: Scaling) -> Mask:
    """The user's coefficients of which an internal direction is made, in the units of their columns."""
    sizes = np.abs(scaling.user_coefficients(direction)).reshape(scaling.equations, -1)
    sizes[:, int(scaling.intercept) :] *= scaling.scale
    return np.asarray(sizes > _TAKES_PART * sizes.max()).ravel()
