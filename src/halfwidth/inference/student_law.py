"""Student's law: the variance estimate is a scaled chi-square with nu degrees of freedom, independent of the estimate.

One direction: t with nu degrees of freedom. For q directions Hotelling's T^2 = nu q / (nu - q + 1) F(q, nu - q + 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.checks import check_level
from halfwidth.errors import NotEnoughData
from halfwidth.inference.laws import LimitLaw


def student_quantile(level: float, df: ArrayLike) -> NDArray[np.float64]:
    """The two-sided quantile for any degrees of freedom, infinite ones included; NaN for those not above 0."""
    from scipy.special import ndtri, stdtrit

    nu = np.asarray(df, dtype=np.float64)
    p = 0.5 * (1.0 + check_level(level))
    with np.errstate(invalid="ignore"):
        found = np.where(np.isinf(nu), ndtri(p), stdtrit(np.where(np.isinf(nu), 1.0, nu), p))
    return np.asarray(np.where(nu > 0.0, found, np.nan))


def student_tail(x: ArrayLike, df: ArrayLike) -> NDArray[np.float64]:
    """The two-sided tail of t, for any degrees of freedom."""
    from scipy.special import betainc, ndtr

    t, nu = np.abs(np.asarray(x, dtype=np.float64)), np.asarray(df, dtype=np.float64)
    finite = np.where(np.isinf(nu), 1.0, nu)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(np.where(np.isinf(nu), 2.0 * ndtr(-t), betainc(0.5 * finite, 0.5, finite / (finite + t**2))))


@dataclass(frozen=True)
class StudentLaw(LimitLaw):
    """Student's t; jointly, Hotelling's T^2.

    Parameters
    ----------
    nu : float
        The degrees of freedom, not necessarily a whole number.

    Examples
    --------
    >>> round(StudentLaw(9).quantile(0.95), 3)
    2.262
    """

    nu: float
    name = "t"

    @property
    def degrees_of_freedom(self) -> float:
        return self.nu

    def quantile(self, level: float) -> float:
        from scipy.special import stdtrit

        return float(stdtrit(self.nu, 0.5 * (1.0 + check_level(level))))

    def two_sided_tail(self, x: ArrayLike) -> NDArray[np.float64]:
        from scipy.special import betainc

        t2 = np.square(np.asarray(x, dtype=np.float64))
        return np.asarray(betainc(0.5 * self.nu, 0.5, self.nu / (self.nu + t2)))

    def joint_quantile(self, level: float, q: int) -> float:
        from scipy.special import fdtri

        scale, rest = self._hotelling(q)
        return float(scale * fdtri(q, rest, check_level(level)))

    def joint_tail(self, x: float, q: int) -> float:
        from scipy.special import fdtrc

        scale, rest = self._hotelling(q)
        return float(fdtrc(q, rest, max(x, 0.0) / scale))

    def _hotelling(self, q: int) -> tuple[float, float]:
        rest = self.nu - q + 1.0
        if rest < 1.0:
            raise NotEnoughData(
                f"a joint statement about {q} directions needs at least {q} degrees of freedom; this run has "
                f"{math.floor(10 * self.nu) / 10:.1f}. Feed more rows, or test fewer directions"
            )
        return self.nu * q / rest, rest
