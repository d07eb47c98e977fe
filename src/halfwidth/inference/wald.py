"""Joint statements: the Wald test of R theta = r, and the confidence ellipsoid.

The statistic W = n (R theta_bar - r)' (R Sigma_hat R')^-1 (R theta_bar - r) is referred to the joint law of the
covariance estimator, not to a chi-square: with few effective blocks the two differ by far.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.errors import InputError, NotEnoughData
from halfwidth.inference.laws import LimitLaw


@dataclass(frozen=True)
class WaldTest:
    """The Wald test of the hypothesis R theta = r.

    Parameters
    ----------
    statistic : float
        W = n (R theta_bar - r)' (R Sigma R')^-1 (R theta_bar - r).
    p_value : float
        The p-value under the joint limit law of the covariance estimate.
    dimensions : int
        The number of rows of R.
    degrees_of_freedom : float
        The effective degrees of freedom of the covariance estimate.
    law : str
        The name of the limit law.
    """

    statistic: float
    p_value: float
    dimensions: int
    degrees_of_freedom: float
    law: str

    @property
    def pvalue(self) -> float:
        """The p-value, by statsmodels' name."""
        return self.p_value

    @property
    def df_num(self) -> int:
        """The number of rows of R, by statsmodels' name."""
        return self.dimensions

    @property
    def df_denom(self) -> float:
        """Degrees of freedom of the F statistic: nu - q + 1, or infinite."""
        return self.degrees_of_freedom - self.dimensions + 1.0

    @property
    def fvalue(self) -> float:
        """The F statistic: W (nu - q + 1) / (nu q), or W / q where nu is infinite."""
        scale = 1.0 if np.isinf(self.degrees_of_freedom) else self.df_denom / self.degrees_of_freedom
        return self.statistic * scale / self.dimensions

    def __str__(self) -> str:
        p = f"p = {self.p_value:.3g}" if self.p_value > 0.0 else "p < 1e-300"
        return (
            f"Wald statistic {self.statistic:.4g}, F({self.df_num}, {self.df_denom:.4g}) = {self.fvalue:.4g}, {p} "
            f"({self.degrees_of_freedom:.3g} effective degrees of freedom)"
        )

    def _repr_html_(self) -> str:
        return f"<div>{escape(str(self))}</div>"


@dataclass(frozen=True)
class Ellipsoid:
    """A joint confidence set: all points x with (x - center)' shape^-1 (x - center) <= radius2.

    Parameters
    ----------
    center : ndarray of shape (q,)
        The estimate.
    shape : ndarray of shape (q, q)
        The covariance matrix of the estimate.
    radius2 : float
        The critical value of the joint limit law.
    level : float
        The joint confidence level.
    """

    center: NDArray[np.float64]
    shape: NDArray[np.float64]
    radius2: float
    level: float

    def contains(self, point: ArrayLike) -> bool:
        """Say whether the set contains a point.

        Parameters
        ----------
        point : array_like of shape (q,)
            The point.

        Returns
        -------
        bool
            True on the boundary too.
        """
        gap = np.asarray(point, dtype=np.float64) - self.center
        return bool(gap @ np.linalg.solve(self.shape, gap) <= self.radius2)

    def semi_axes(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the half-axes of the ellipsoid, longest first.

        Returns
        -------
        lengths : ndarray of shape (q,)
            Their lengths.
        directions : ndarray of shape (q, q)
            Their directions, as columns.
        """
        values, vectors = np.linalg.eigh(self.shape)
        return np.sqrt(self.radius2 * values[::-1]), vectors[:, ::-1]


def wald_test(estimate: NDArray[np.float64], covariance: NDArray[np.float64], n: int, law: LimitLaw) -> WaldTest:
    """Test that `estimate`, with covariance/n, is zero."""
    _check_regular(covariance)
    statistic = float(n * estimate @ np.linalg.solve(covariance, estimate))
    q = estimate.size
    return WaldTest(statistic, law.joint_tail(statistic, q), q, law.degrees_of_freedom, law.name)


def ellipsoid(
    estimate: NDArray[np.float64], covariance: NDArray[np.float64], n: int, law: LimitLaw, level: float
) -> Ellipsoid:
    """The confidence set of the same law."""
    _check_regular(covariance)
    return Ellipsoid(estimate, covariance / n, law.joint_quantile(level, estimate.size), level)


def _check_regular(covariance: NDArray[np.float64]) -> None:
    scale = np.sqrt(np.diag(covariance))
    if not (scale > 0).all() or np.linalg.cond(covariance / np.outer(scale, scale)) > 1e12:
        raise InputError("the directions must be linearly independent; R Sigma R' is singular")
    if np.linalg.eigvalsh(covariance)[0] <= 0:
        raise NotEnoughData(
            "the covariance of these directions is not positive definite: too few blocks for the method's bias "
            "correction. Feed more rows, or use a method without one, like FixedBatchMeans"
        )
