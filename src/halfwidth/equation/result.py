"""A result in which every direction has its own degrees of freedom.

A coefficient that rests on a few batches has few, whatever the others have (`halfwidth.equation.jackknife`). Below
`FEWEST` there is no interval: estimate, and NaN for its error. Joint statements are Hotelling's with the smallest
degrees of freedom among their directions.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.equation.errors import Errors
from halfwidth.equation.wide_errors import WideErrors
from halfwidth.errors import NotIdentified
from halfwidth.inference.laws import LimitLaw
from halfwidth.inference.result import Result
from halfwidth.inference.student_law import StudentLaw, student_quantile, student_tail
from halfwidth.inference.trail import Trail
from halfwidth.kernels.arrays import Vector

FEWEST = 2.0
"""Fewer degrees of freedom give no interval."""
_AT_ONCE = 4_096


@dataclass(frozen=True)
class EquationResult(Result):
    """A result of the equation; where it is wide, a direction has the smallest degrees of freedom of its coefficients.

    `covariance` has NaN for the coefficients without an interval, `df` their degrees of freedom; no contrast has more
    than `most_df`.

    `errors` works in the coordinates of the equation: the coefficients are `basis` (d, k) times those. `trail` says how
    they settled, where that was asked for.
    """

    errors: Errors | WideErrors | None = None
    basis: Vector = field(default_factory=lambda: np.empty((0, 0)))
    df: Vector = field(default_factory=lambda: np.empty(0))
    most_df: float = np.inf
    trail: Trail | None = None

    def _trail(self) -> Trail | None:
        return self.trail

    @property
    def refused(self) -> NDArray[np.bool_]:
        """Which coefficients have no interval."""
        return np.isnan(np.diag(self.covariance))

    def degrees_of_freedom(self, directions: Vector) -> Vector:
        """Of each direction (m, d): two moments of its own quadratic form; a coefficient's are known already."""
        used = directions != 0.0
        found = np.where(used, self.df, np.inf).min(axis=1, initial=np.inf)
        if not isinstance(self.errors, Errors):
            return np.asarray(found)
        several = np.flatnonzero(used.sum(axis=1) != 1)
        for at in range(0, len(several), _AT_ONCE):
            some = several[at : at + _AT_ONCE]
            found[some] = self.errors.degrees_of_freedom(directions[some] @ self.basis)
        return np.asarray(np.minimum(found, self.most_df))

    def critical_values(self, directions: Vector, level: float) -> Vector:
        return student_quantile(level, self.degrees_of_freedom(directions))

    def tails(self, t: ArrayLike, directions: Vector) -> Vector:
        return student_tail(t, self.degrees_of_freedom(directions))

    def _joint_law(self, directions: Vector) -> LimitLaw:
        return StudentLaw(float(self.degrees_of_freedom(directions).min()))

    def _check_directions(self, direction: ArrayLike) -> Vector:
        v = super()._check_directions(direction)
        bad = (np.atleast_2d(v)[:, self.refused] != 0.0).any(axis=0)
        if bad.any():
            at = np.flatnonzero(self.refused)[bad]
            named = [self.names[j] if self.names else str(j) for j in at.tolist()]
            raise NotIdentified(
                f"there is no error for {', '.join(named[:8])}, so none for a direction that contains it; see the "
                "status of each coefficient",
                "unidentified",
            )
        return v

    def _variances(self, rows: Vector) -> Vector:
        kept = ~self.refused
        return np.asarray(np.einsum("md,de,me->m", rows[:, kept], self.covariance[np.ix_(kept, kept)], rows[:, kept]))

    def _full_covariance(self, asked: str) -> Vector:
        return self.covariance if asked == "cov_params()" else np.where(np.isnan(self.covariance), 0.0, self.covariance)
