"""A result in which every direction has its own degrees of freedom.

A coefficient that rests on a few batches has few, whatever the others have (`halfwidth.equation.jackknife`). Below
`FEWEST` there is no interval: estimate, and NaN for its error. Joint statements are Hotelling's with the smallest
degrees of freedom among their directions. A law without a number of them, as the normal one, stands for every
direction.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.equation.equation import Equation
from halfwidth.equation.errors import DirectionErrors, Errors, jackknife_errors
from halfwidth.equation.wide_errors import WideErrors
from halfwidth.errors import NotIdentified
from halfwidth.inference.diagnostics import Diagnostics
from halfwidth.inference.laws import LimitLaw
from halfwidth.inference.result import Result
from halfwidth.inference.student_law import StudentLaw, student_quantile, student_tail
from halfwidth.inference.trail import Trail
from halfwidth.kernels.arrays import Vector

FEWEST = 2.0
"""Fewer degrees of freedom give no interval."""
FEW, FEW_OF_ALL = 8.0, 0.75
"""With fewer of them, and less than this share of those that equal batches give, a coefficient is `rare`."""
_AT_ONCE = 4_096
_NO_INTERVAL = (
    "no coefficient has an interval; each has a status of its own. Feed more rows, drop or scale columns, or start "
    "nearer to the solution"
)


def rare_below(batches: int) -> float:
    """With fewer degrees of freedom than this a coefficient is `rare`."""
    return min(FEW, FEW_OF_ALL * (batches - 1.0))


@dataclass(frozen=True)
class EquationResult(Result):
    """A result of the equation; where it is wide, a direction has the smallest degrees of freedom of its coefficients.

    `covariance` has NaN for the coefficients without an interval, `df` their degrees of freedom; no contrast has more
    than `most_df`. Where no coefficient has an interval, that is the last of the warnings, by the first one's status.

    `errors` works in the coordinates of the equation: the coefficients are `basis` (d, k) times those. `trail` says how
    they settled, where that was asked for.
    """

    errors: Errors | WideErrors | None = field(default=None, repr=False)
    basis: Vector = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    df: Vector = field(default_factory=lambda: np.empty(0))
    most_df: float = np.inf
    trail: Trail | None = None

    def __post_init__(self) -> None:
        if self.refusal is not None:
            others = tuple(flag for flag in self.diagnostics.flags if flag[1] != _NO_INTERVAL)
            flags = (*others, (self.refusal, _NO_INTERVAL))
            object.__setattr__(self, "diagnostics", replace(self.diagnostics, flags=flags))

    def _trail(self) -> Trail | None:
        return self.trail

    @property
    def refused(self) -> NDArray[np.bool_]:
        """Which coefficients have no interval."""
        return np.isnan(np.diag(self.covariance))

    @property
    def refusal(self) -> str | None:
        """Where no coefficient has an interval, the first status that one has for it."""
        if not self.refused.all():
            return None
        return next((flags[0] for flags in self.diagnostics.coefficient_flags if flags), "unidentified")

    def degrees_of_freedom(self, directions: Vector) -> Vector:
        """Of each direction (m, d): two moments of its own quadratic form; a coefficient's are known already."""
        if np.isinf(self.law.degrees_of_freedom):
            return np.full(len(directions), np.inf)
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
        fewest = float(self.degrees_of_freedom(directions).min())
        return self.law if np.isinf(fewest) else StudentLaw(fewest)

    def _check_directions(self, direction: ArrayLike) -> Vector:
        v = super()._check_directions(direction)
        bad = (np.atleast_2d(v)[:, self.refused] != 0.0).any(axis=0)
        if bad.any():
            at = np.flatnonzero(self.refused)[bad]
            named = [self.names[j] if self.names else f"theta[{j}]" for j in at.tolist()]
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


@dataclass(frozen=True)
class Jackknifed:
    """What a learner's result is made of: the errors of every coefficient, NaN where there is none."""

    errors: Errors
    along: DirectionErrors
    covariance: Vector
    """Of the root."""
    df: Vector

    @classmethod
    def of(cls, equation: Equation, residuals: Vector, *, independent: bool = False) -> Jackknifed:
        """By deleting batches in time order, or independent ones, of an equation that determines its root."""
        errors = jackknife_errors(equation, residuals, equation.A.sum(axis=0), independent=independent)
        along = errors.along(np.eye(residuals.shape[1]))
        df = np.where(along.undetermined, 0.0, along.degrees_of_freedom())
        covariance, refused = along.covariance(), ~(df >= FEWEST)
        covariance[refused] = np.nan
        covariance[:, refused] = np.nan
        return cls(errors, along, covariance, df)

    @property
    def law(self) -> StudentLaw:
        """With the median degrees of freedom, for what asks for one number."""
        usual = self.df[self.df >= FEWEST]
        return StudentLaw(float(np.median(usual)) if usual.size else FEWEST)

    def diagnostics(self, flags: tuple[tuple[str, str], ...], notes: tuple[str, ...]) -> Diagnostics:
        """With the flags of every coefficient: `unidentified` or `rare`."""
        found = self.flags_of(self.df)
        own = found if any(found) else ()
        return Diagnostics(self.law.degrees_of_freedom, flags=flags, notes=notes, coefficient_flags=own)

    def flags_of(self, df: Vector) -> tuple[tuple[str, ...], ...]:
        """The flags of every coefficient where errors have these degrees of freedom."""
        few = rare_below(self.errors.batches)
        return tuple(
            ("unidentified",) if hidden else ("rare",) * (not own >= few)
            for hidden, own in zip(self.along.undetermined, df, strict=True)
        )
