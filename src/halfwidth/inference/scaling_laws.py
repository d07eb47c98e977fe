"""Laws of averages divided by functionals of their own path: random scaling and its relatives.

    T_m = Z / F_m,    F_m = (int_0^1 |B(r)|^m dr)^(1/m),    B a Brownian bridge, independent of the standard normal Z.

**m = 2** (Lee, Liao, Seo and Shin, AAAI 2022): F_2^2 = sum_j X_j / (j pi)^2 by Karhunen-Loeve, so the law is a
`BrownianLaw` and exact at any level.

**m = 1, 4, 6** (X. Li, J. Liang and Z. Zhang, *Online statistical inference for nonlinear stochastic approximation
with Markovian data*, 2023): no closed form. The table holds P(|T_m| <= x) at `LEVELS`, from a million bridges on 1,024
points: given F the tail of T is erfc(x F / sqrt 2), so only F is simulated, and the relative error of a tail is 0.0045
at level 0.999 and below 0.003 up to 0.99. The slow tests simulate it again. Between levels log(1 - level) is
interpolated in x; beyond the last one nothing is claimed.

Everything is scaled by sqrt(E F_m^2), so that the squared denominator has mean one and standard errors their usual
size: critical values here are the published ones (95%: 8.35, 6.75, 5.35, 4.71) times that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.checks import check_level
from halfwidth.errors import InputError
from halfwidth.inference.brownian_law import BrownianLaw
from halfwidth.inference.laws import SingleDirectionLaw

_TERMS = 200

_TABLE = (  # level, then the x with P(|T_m| <= x) = level in the published scale, for m = 1, 4, 6
    (0.0, 0.000, 0.000, 0.000),
    (0.05, 0.200, 0.136, 0.121),
    (0.1, 0.402, 0.272, 0.243),
    (0.2, 0.814, 0.550, 0.492),
    (0.3, 1.250, 0.843, 0.752),
    (0.4, 1.724, 1.158, 1.033),
    (0.5, 2.258, 1.510, 1.346),
    (0.6, 2.887, 1.919, 1.708),
    (0.7, 3.673, 2.425, 2.153),
    (0.8, 4.753, 3.111, 2.755),
    (0.85, 5.509, 3.586, 3.171),
    (0.9, 6.564, 4.246, 3.746),
    (0.925, 7.308, 4.709, 4.149),
    (0.95, 8.351, 5.356, 4.712),
    (0.975, 10.127, 6.454, 5.664),
    (0.98, 10.697, 6.806, 5.968),
    (0.99, 12.463, 7.894, 6.910),
    (0.995, 14.226, 8.977, 7.848),
    (0.998, 16.552, 10.404, 9.082),
    (0.999, 18.308, 11.481, 10.012),
)
LEVELS = tuple(row[0] for row in _TABLE)
QUANTILES = {power: tuple(row[column] for row in _TABLE) for column, power in enumerate((1, 4, 6), start=1)}
MEAN_SQUARE = {1: 0.1166, 4: 0.2447, 6: 0.3030}
"""E F_m^2; for m = 2 it is 1/6."""


@lru_cache(maxsize=1)
def scaling_law() -> BrownianLaw:
    """The law for m = 2, with mean-one weights 6/(j pi)^2."""
    weights = 6.0 / (np.arange(1, _TERMS + 1) * np.pi) ** 2
    return BrownianLaw(tuple(weights.tolist()), 1.0 - float(weights.sum()))


@dataclass(frozen=True)
class FunctionalLaw(SingleDirectionLaw):
    """The law of Z / F_m for m = 1, 4 or 6, for one direction at a time.

    Parameters
    ----------
    power : {1, 4, 6}
        The power m of the norm of the Brownian bridge.
    """

    power: int
    name = "functional"

    @property
    def degrees_of_freedom(self) -> float:
        """Those of random scaling, whose relative it is."""
        return scaling_law().degrees_of_freedom

    @property
    def _scale(self) -> float:
        return math.sqrt(MEAN_SQUARE[self.power])

    def quantile(self, level: float) -> float:
        if check_level(level) > LEVELS[-1]:
            raise InputError.of("level", f"be at most {LEVELS[-1]}, where the simulated table ends", level)
        depth = -np.log1p(-np.array(LEVELS))
        return self._scale * float(np.interp(-math.log1p(-level), depth, QUANTILES[self.power]))

    def two_sided_tail(self, x: ArrayLike) -> NDArray[np.float64]:
        # np.interp stops at the table's last entry: no p-value below 1 - LEVELS[-1] is ever reported.
        depth = -np.log1p(-np.array(LEVELS))
        return np.asarray(np.exp(-np.interp(np.abs(x) / self._scale, QUANTILES[self.power], depth)))
