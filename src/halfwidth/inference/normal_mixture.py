"""The normal-mixture boundary: intervals that hold at all times at once.

With a consistent variance estimate s_t^2, with probability at least 1 - alpha for all t together (as the first look
moves out),

    |theta_bar_t - theta*| <= s_t sqrt(2 (t r^2 + 1) / (t^2 r^2) log(sqrt(t r^2 + 1) / alpha)),
    r^2 = (-2 log alpha + log(-2 log alpha) + 1) / t*,

where t* is the time at which the boundary is tightest. Divided by s_t / sqrt(t) this is a critical value that depends
on t.

H. Robbins, Annals of Math. Statistics 41 (1970); I. Waudby-Smith, D. Arbour, R. Sinha, E. Kennedy and A. Ramdas,
*Time-uniform central limit theory and asymptotic confidence sequences* (2021).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.checks import check_level
from halfwidth.errors import InputError
from halfwidth.inference.laws import ExactVariance, SingleDirectionLaw

_NARROWEST = math.exp(-0.5)
"""The formula for r^2 needs -2 log alpha >= 1; alpha = 0.6 is no confidence anyway."""


@dataclass(frozen=True)
class MixtureLaw(ExactVariance, SingleDirectionLaw):
    """The normal-mixture boundary at row t: a critical value that holds at all rows together.

    Parameters
    ----------
    t, tightest : int
        The row at which the interval is asked for, and the row t* at which the boundary is tightest.
    """

    t: int
    tightest: int
    name = "time-uniform"

    def quantile(self, level: float) -> float:
        alpha = 1.0 - check_level(level)
        if alpha > _NARROWEST:
            raise InputError.of("level", f"be at least {1.0 - _NARROWEST:.3f} for intervals at all times", level)
        return self._boundary(alpha)

    def _boundary(self, alpha: float) -> float:
        twice = -2.0 * math.log(alpha)
        tr2 = self.t * (twice + math.log(twice) + 1.0) / self.tightest
        return math.sqrt(2.0 * (tr2 + 1.0) / tr2 * (0.5 * math.log1p(tr2) - math.log(alpha)))

    def two_sided_tail(self, x: ArrayLike) -> NDArray[np.float64]:
        # The smallest alpha whose interval excludes zero, valid at all rows together; 1 where no alpha does.
        return np.asarray(np.vectorize(self._smallest_alpha, otypes=[float])(np.abs(x)))

    def _smallest_alpha(self, x: float) -> float:
        from scipy.optimize import brentq

        if x <= self._boundary(_NARROWEST):
            return 1.0
        low = -1.0
        while self._boundary(math.exp(low)) < x:
            low *= 2.0
            if low < -500.0:
                return 0.0
        return math.exp(float(brentq(lambda a: self._boundary(math.exp(a)) - x, low, math.log(_NARROWEST))))
