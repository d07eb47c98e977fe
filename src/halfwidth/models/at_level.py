"""Intervals and tables at the confidence level of a result, or at another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from halfwidth.docstrings import LEVEL, share_arguments
from halfwidth.inference.pictured import chosen_level

if TYPE_CHECKING:
    from halfwidth.inference import Interval, Result


@share_arguments(LEVEL)
class AtLevel:
    """A result with a level of its own; `RegressionResult` inherits this."""

    core: Result
    level: float

    def interval(
        self, direction: ArrayLike | None = None, level: float | None = None, *, alpha: float | None = None
    ) -> Interval:
        """Return the confidence interval of v'theta, for one direction v or for several.

        Parameters
        ----------
        direction : array_like of shape (d,) or (m, d), optional
            The direction v, or m of them; every coefficient when none is given.

        Returns
        -------
        Interval
            Floats for one direction, arrays for several.
        """
        return self.core.interval(direction, chosen_level(level, alpha, self.level))

    def to_frame(self, level: float | None = None, *, alpha: float | None = None) -> Any:
        """Return the table of coefficients as a pandas frame.

        Returns
        -------
        DataFrame
            The columns coef, std_err, t, p, ci_lower, ci_upper, df, status and flags.
        """
        return self.core.to_frame(chosen_level(level, alpha, self.level))
