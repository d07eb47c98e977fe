"""The result of a run: the estimate, its covariance, and the limit law that turns them into intervals and tests.

The vocabulary is that of statsmodels: `params`, `bse`, `tvalues`, `pvalues`, `conf_int`, `cov_params`, `summary`.
A result holds no data and no model; it can outlive both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.checks import check_alpha, check_level
from halfwidth.docstrings import ALPHA, share_arguments
from halfwidth.errors import InputError
from halfwidth.inference.diagnostics import Diagnostics, Facts
from halfwidth.inference.directions import check_directions, common_value, direction_variances
from halfwidth.inference.interval import Interval
from halfwidth.inference.laws import LimitLaw
from halfwidth.inference.simultaneous import max_t_quantile
from halfwidth.inference.statements import Statements
from halfwidth.kernels.arrays import Vector


@share_arguments(ALPHA)
@dataclass(frozen=True)
class Result(Statements):
    """An estimate of theta with its covariance, and the limit law of the studentised estimate.

    Learners and watchers return results; the names of attributes and methods are those of statsmodels. A result is
    frozen and holds neither data nor a model.

    Parameters
    ----------
    params : ndarray of shape (d,)
        The estimate.
    covariance : ndarray of shape (d, d) or (d,)
        The covariance Sigma of sqrt(n) times the error of the estimate, or its diagonal.
    n : int
        The number of rows that the estimate rests on.
    law : LimitLaw
        The law that critical values and p-values come from.
    method : str
        The name of the method.
    diagnostics : Diagnostics
        Facts about the run, and its warnings.
    names : tuple of str, optional
        The names of the coefficients; ``theta[0]``, ``theta[1]``, ... where there are none.

    Notes
    -----
    For a direction v the standard error is sqrt(v' Sigma v / n), and the interval is v'params +- q(level) times that,
    with q the quantile of `law`.

    Examples
    --------
    >>> import halfwidth as hw
    >>> world = hw.problem("iid-linear", dim=2)
    >>> result = hw.Auto(world, seed=0).run(20_000).result()
    >>> result.status, result.bse.shape
    ('ok', (2,))
    >>> print(result.interval([0.0, 1.0]).covers(world.theta_star[1]))
    True
    >>> result.wald_test([[1.0, 0.0], [0.0, 1.0]], world.theta_star).p_value > 0.05
    True
    """

    params: Vector
    covariance: Vector
    n: int
    law: LimitLaw
    method: str
    diagnostics: Diagnostics
    names: tuple[str, ...] | None = None

    @property
    def bse(self) -> Vector:
        """Standard errors of the coefficients."""
        variances = self.covariance if self.covariance.ndim == 1 else np.diag(self.covariance)
        return np.asarray(np.sqrt(variances / self.n))

    @property
    def tvalues(self) -> Vector:
        """The coefficients over their standard errors."""
        with np.errstate(divide="ignore", invalid="ignore"):  # of a standard error of zero
            return self.params / self.bse

    @property
    def pvalues(self) -> Vector:
        """Two-sided p-values of the hypotheses that a coefficient is zero, under the result's own limit law."""
        return self.tails(self.tvalues, np.eye(self.params.size))

    def degrees_of_freedom(self, directions: Vector) -> Vector:
        """Return the degrees of freedom of directions.

        Parameters
        ----------
        directions : ndarray of shape (m, d)
            The directions.

        Returns
        -------
        ndarray of shape (m,)
            Those of the law, unless directions have their own.
        """
        return np.full(len(directions), self.law.degrees_of_freedom)

    def critical_values(self, directions: Vector, level: float) -> Vector:
        """Return how many standard errors the intervals reach to either side.

        Parameters
        ----------
        directions, level : ndarray of shape (m, d), float
            The directions and the confidence level.

        Returns
        -------
        ndarray of shape (m,)
            The critical value of each direction.
        """
        return np.full(len(directions), self.law.quantile(level))

    def tails(self, t: ArrayLike, directions: Vector) -> Vector:
        """Return two-sided p-values.

        Parameters
        ----------
        t, directions : array_like of shape (m,), ndarray of shape (m, d)
            Statistics, which are estimates over standard errors, and the directions they belong to.

        Returns
        -------
        ndarray of shape (m,)
            The p-values.
        """
        return self.law.two_sided_tail(t)

    @property
    def status(self) -> str:
        """``"ok"``, or the name of the first warning about the run."""
        return self.diagnostics.status

    @property
    def coefficient_status(self) -> tuple[str, ...]:
        """``"ok"`` or the first flag of each coefficient; what concerns the whole run is in `status`."""
        flags = self.diagnostics.coefficient_flags or ((),) * self.params.size
        return tuple(names[0] if names else "ok" for names in flags)

    def cov_params(self) -> Vector:
        """Return the covariance matrix of the estimate, which is Sigma / n.

        Returns
        -------
        ndarray of shape (d, d)
            The covariance matrix; an `InputError` where only variances were kept (``view="diagonal"``).
        """
        return self._full_covariance("cov_params()") / self.n

    def conf_int(self, alpha: float = 0.05, *, simultaneous: bool = False) -> Vector:
        """Return the bounds of every coefficient, as statsmodels does.

        Parameters
        ----------
        simultaneous : bool, default False
            Whether all intervals together contain all coefficients at that level, by the largest t statistic.

        Returns
        -------
        ndarray of shape (d, 2)
            Lower and upper bounds.
        """
        level = 1.0 - check_alpha(alpha)
        if not simultaneous:
            interval = self.interval(level=level)
            return np.column_stack([interval.lower, interval.upper])
        known = np.isfinite(self.bse)
        df = self.degrees_of_freedom(np.eye(self.params.size))[known]
        matrix = self._full_covariance("conf_int(simultaneous=True)")[np.ix_(known, known)]
        critical = max_t_quantile(matrix, float(df.min(initial=np.inf)), level)
        return np.column_stack([self.params - critical * self.bse, self.params + critical * self.bse])

    def interval(self, direction: ArrayLike | None = None, level: float = 0.95) -> Interval:
        """Return the confidence interval of v'theta, for one direction v or for several.

        Parameters
        ----------
        direction : array_like of shape (d,) or (m, d), optional
            The direction v, or m of them; every coordinate when none is given.
        level : float, default 0.95
            The confidence level of each interval by itself.

        Returns
        -------
        Interval
            Floats for one direction, arrays for several.

        Raises
        ------
        InputError
            If a direction has another length, or combines coordinates where only variances were kept.
        NotEnoughData
            If the variance estimate of a direction is negative, as a bias correction on few rows can make it.
        """
        check_level(level)
        if direction is None:
            estimate, std_error = self.params, self.bse
        else:
            v = self._check_directions(direction)
            estimate = v @ self.params
            std_error = np.sqrt(self._variances(np.atleast_2d(v)) / self.n).reshape(estimate.shape)
        rows = np.eye(self.params.size) if direction is None else np.atleast_2d(v)
        critical = self.critical_values(rows, level).reshape(estimate.shape)
        df = self.degrees_of_freedom(rows).reshape(estimate.shape)
        lower, upper = estimate - critical * std_error, estimate + critical * std_error
        as_is: Any = float if np.ndim(estimate) == 0 else np.asarray
        return Interval(
            as_is(estimate), as_is(lower), as_is(upper), as_is(std_error), float(level), self.n, self.method,
            common_value(critical), common_value(df), self.diagnostics.status, self.diagnostics.warnings,
        )  # fmt: skip

    def with_facts(self, *flags: tuple[str, str], **facts: Unpack[Facts]) -> Self:
        """Return the same result with more diagnostics.

        Parameters
        ----------
        *flags : tuple of (str, str)
            Warnings to add: a name and a text with advice each.
        **facts : Unpack[Facts]
            Fields of `Diagnostics` to replace.

        Returns
        -------
        Result
            A copy, of the same class.
        """
        return replace(self, diagnostics=self.diagnostics.with_facts(*flags, **facts))

    def _check_directions(self, direction: ArrayLike) -> Vector:
        return check_directions(direction, self.params.size)

    def _variances(self, directions: Vector) -> Vector:
        """v' Sigma v for each row of `directions`; subclasses widen it where their own diagnostics ask for it."""
        return direction_variances(self.covariance, directions)

    def _full_covariance(self, asked: str) -> Vector:
        if self.covariance.ndim == 1:
            raise InputError(f"{asked} needs covariances; view='diagonal' keeps variances only. Use view='full'")
        return self.covariance
