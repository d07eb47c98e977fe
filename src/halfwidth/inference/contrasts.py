"""Tests of linear combinations one at a time.

A combination v'theta has the statistic (v'estimate - value) / se(v), with the degrees of freedom of its own direction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.checks import check_alpha
from halfwidth.docstrings import ALPHA, share_arguments
from halfwidth.errors import InputError
from halfwidth.inference.hypotheses import parse_hypotheses
from halfwidth.inference.tables import CoefficientTable, Summary
from halfwidth.kernels.arrays import Vector

if TYPE_CHECKING:
    from halfwidth.inference.result import Result


@share_arguments(ALPHA)
@dataclass(frozen=True)
class ContrastTest:
    """t tests of linear combinations, one at a time, each with the degrees of freedom of its own direction.

    Parameters
    ----------
    effect : ndarray of shape (m,)
        The combinations' estimates.
    sd : ndarray of shape (m,)
        Their standard errors.
    value : ndarray of shape (m,)
        What they are under the hypothesis.
    pvalue : ndarray of shape (m,)
        Two-sided p-values.
    df_denom : ndarray of shape (m,)
        Degrees of freedom.
    labels : tuple of str
        How each combination was written.
    quantiles : callable
        From a level to the critical value of each combination.
    """

    effect: Vector
    sd: Vector
    value: Vector
    pvalue: Vector
    df_denom: Vector
    labels: tuple[str, ...]
    quantiles: Callable[[float], ArrayLike]

    @property
    def tvalue(self) -> Vector:
        """Estimates less the hypothesis' values, over their standard errors."""
        return np.asarray((self.effect - self.value) / self.sd)

    def conf_int(self, alpha: float = 0.05) -> Vector:
        """Return the bounds of every combination.

        Returns
        -------
        ndarray of shape (m, 2)
            Lower and upper bounds.
        """
        half = self._critical(1.0 - check_alpha(alpha)) * self.sd
        return np.column_stack([self.effect - half, self.effect + half])

    def summary(self, alpha: float = 0.05) -> Summary:
        """Return the table of the tests.

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the confidence level of the bounds.

        Returns
        -------
        Summary
            A line for each combination.
        """
        columns = (self.labels, self.effect, self.sd, self.tvalue, self.pvalue, self.conf_int(alpha), 1.0 - alpha)
        return Summary([], CoefficientTable(*columns), self._notes())

    def _notes(self) -> list[str]:
        """Lines below the table."""
        return []

    def __str__(self) -> str:
        return self.summary().as_text()

    def _repr_html_(self) -> str:
        return self.summary().as_html()

    def _critical(self, level: float) -> Vector:
        return np.asarray(self.quantiles(level), dtype=np.float64)


def as_hypothesis(
    contrast: ArrayLike | str | Sequence[str],
    value: ArrayLike,
    names: Sequence[str],
    called: str = "value",
    terms: Mapping[str, Sequence[int]] | None = None,
) -> tuple[Vector, Vector, tuple[str, ...]]:
    """R, r and labels of a hypothesis given as text, or as a matrix and a value."""
    if isinstance(contrast, str) or (
        isinstance(contrast, (list, tuple)) and contrast and all(isinstance(each, str) for each in contrast)
    ):
        R, r, labels = parse_hypotheses(contrast, names, terms)
        return R, r + np.asarray(value, dtype=np.float64), labels
    R = np.atleast_2d(np.asarray(contrast, dtype=np.float64))
    right = np.asarray(value, dtype=np.float64)
    if right.shape not in ((), (len(R),)) or not np.isfinite(right).all():
        raise InputError.of(called, f"be a finite number or {len(R)} of them", value)
    return R, np.broadcast_to(right, (len(R),)).copy(), tuple(f"c{i}" for i in range(len(R)))


def t_test(result: Result, R: Vector, r: Vector, labels: tuple[str, ...]) -> ContrastTest:
    """Test each row of R theta = r by itself."""
    interval = result.interval(R)
    effect, sd = np.atleast_1d(interval.estimate), np.atleast_1d(interval.std_error)
    df = result.degrees_of_freedom(R)
    p = result.tails((effect - r) / sd, R)
    return ContrastTest(effect, sd, r, p, df, labels, lambda level: result.critical_values(R, level))
