"""What a run ends in: the estimate, its covariance, and the law that turns them into statements.

The vocabulary is that of statsmodels: `params`, `bse`, `tvalues`, `pvalues`, `conf_int`, `cov_params`, `summary`.
A result holds no data and no model; it can outlive both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.errors import InputError, NotEnoughData
from halfwidth.inference.diagnostics import Diagnostics, Facts
from halfwidth.inference.interval import Interval
from halfwidth.inference.laws import LimitLaw, check_alpha, check_level
from halfwidth.inference.summary import summary_text
from halfwidth.inference.wald import Ellipsoid, WaldTest, ellipsoid, wald_test


def check_variances(variances: NDArray[np.float64], scale: NDArray[np.float64]) -> NDArray[np.float64]:
    """Refuse the negative variances that an estimator with a bias correction may give; rounding is taken for zero."""
    if (variances < -1e-12 * scale).any():
        raise NotEnoughData(
            f"the variance of a direction came out negative ({variances.min():.3g}): too few blocks for the method's "
            "bias correction. Feed more rows, or use a method without one, like FixedBatchMeans"
        )
    return np.maximum(variances, 0.0)


@dataclass(frozen=True)
class Result:
    """An estimate with the covariance of sqrt(n) times its error: (d, d), or (d,) when only variances are known."""

    params: NDArray[np.float64]
    covariance: NDArray[np.float64]
    n: int
    law: LimitLaw
    method: str
    diagnostics: Diagnostics
    names: tuple[str, ...] | None = None

    @property
    def bse(self) -> NDArray[np.float64]:
        """Standard errors of the coefficients."""
        variances = self.covariance if self.covariance.ndim == 1 else np.diag(self.covariance)
        return np.asarray(np.sqrt(variances / self.n))

    @property
    def tvalues(self) -> NDArray[np.float64]:
        return self.params / self.bse

    @property
    def pvalues(self) -> NDArray[np.float64]:
        """Two-sided p-values of each coefficient being zero, under the result's own limit law."""
        return self.law.two_sided_tail(self.tvalues)

    @property
    def status(self) -> str:
        return self.diagnostics.status

    @property
    def coefficient_status(self) -> tuple[str, ...]:
        """`ok` or the first flag of each coefficient; what concerns the whole run is in `status`."""
        flags = self.diagnostics.coefficient_flags or ((),) * self.params.size
        return tuple(names[0] if names else "ok" for names in flags)

    def cov_params(self) -> NDArray[np.float64]:
        """The covariance matrix of the estimate (not of sqrt(n) times it)."""
        return self._full_covariance("cov_params()") / self.n

    def conf_int(self, alpha: float = 0.05) -> NDArray[np.float64]:
        """Lower and upper bounds of every coefficient, as statsmodels gives them."""
        interval = self.interval(level=1.0 - check_alpha(alpha))
        return np.column_stack([interval.lower, interval.upper])

    def interval(self, direction: ArrayLike | None = None, level: float = 0.95) -> Interval:
        """The interval for v'theta: one direction (d,), several (m, d), or every coordinate when none is given."""
        check_level(level)
        if direction is None:
            estimate: NDArray[np.float64] = self.params
            std_error = self.bse
        else:
            v = self._check_directions(direction)
            estimate = v @ self.params
            std_error = np.sqrt(self._variances(np.atleast_2d(v)) / self.n).reshape(estimate.shape)
        critical = self.law.quantile(level)
        lower, upper = estimate - critical * std_error, estimate + critical * std_error
        as_is: Any = float if np.ndim(estimate) == 0 else np.asarray
        return Interval(
            as_is(estimate),
            as_is(lower),
            as_is(upper),
            as_is(std_error),
            float(level),
            self.n,
            self.method,
            critical,
            self.law.degrees_of_freedom,
            self.diagnostics.status,
            self.diagnostics.warnings,
        )

    def wald_test(self, R: ArrayLike, r: ArrayLike = 0.0) -> WaldTest:
        """Test R theta = r for a (q, d) matrix R."""
        matrix = np.atleast_2d(self._check_directions(R))
        right = np.asarray(r, dtype=np.float64)
        if right.shape not in ((), (matrix.shape[0],)) or not np.isfinite(right).all():
            raise InputError.of("r", f"be a finite number or {matrix.shape[0]} of them", r)
        gap = matrix @ self.params - right
        return wald_test(gap, matrix @ self._full_covariance("wald_test") @ matrix.T, self.n, self.law)

    def ellipsoid(self, R: ArrayLike | None = None, level: float = 0.95) -> Ellipsoid:
        """The joint confidence set of R theta, of theta itself when no R is given."""
        matrix = np.eye(self.params.size) if R is None else np.atleast_2d(self._check_directions(R))
        covariance = matrix @ self._full_covariance("ellipsoid") @ matrix.T
        return ellipsoid(matrix @ self.params, covariance, self.n, self.law, check_level(level))

    def summary(self, level: float = 0.95) -> str:
        """The table that statsmodels users know, with what the errors rest on above it."""
        return summary_text(self, level)

    def with_facts(self, *flags: tuple[str, str], **facts: Unpack[Facts]) -> Self:
        """The same result with more diagnostics."""
        return replace(self, diagnostics=self.diagnostics.with_facts(*flags, **facts))

    def _check_directions(self, direction: ArrayLike) -> NDArray[np.float64]:
        v = np.asarray(direction, dtype=np.float64)
        if v.ndim not in (1, 2) or v.shape[-1] != self.params.size or not np.isfinite(v).all():
            rule = f"be finite, of shape ({self.params.size},) or (m, {self.params.size})"
            raise InputError.of("direction", rule, direction)
        return v

    def _variances(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.covariance.ndim == 2:
            variances = np.asarray(np.einsum("md,de,me->m", rows, self.covariance, rows))
            return check_variances(variances, rows**2 @ np.abs(np.diag(self.covariance)))
        if (np.count_nonzero(rows, axis=1) > 1).any():
            raise InputError(
                "direction must pick a single coordinate under view='diagonal', which knows variances only; "
                "watch with view='full', or with view='projection' and this direction"
            )
        return np.asarray(rows**2 @ self.covariance)

    def _full_covariance(self, asked: str) -> NDArray[np.float64]:
        if self.covariance.ndim == 1:
            raise InputError(f"{asked} needs covariances; view='diagonal' keeps variances only. Use view='full'")
        return self.covariance
