"""Quantile regression: the check loss, smoothed by a normal kernel of bandwidth h.

    loss = e tau + h phi(e/h) - e Phi(-e/h),   e = y - eta,   h = scale ((dim + log n) / n)^(2/5).

The smoothed loss steers the search and gives the curvature (M. Fernandes, E. Guerre and E. Horta, JBES 39, 2021; X. He,
X. Pan, K. M. Tan and W.-X. Zhou, J. Econometrics 232, 2023). The estimate is the root of Phi(u) + u phi(u)/2 - tau with
u = -2e/h, smoothed by a kernel of fourth order, whose bias is O(h^4); standard errors come from the unsmoothed `score`
1{e < 0} - tau.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from halfwidth.errors import InputError
from halfwidth.families.base import Loss
from halfwidth.kernels.arrays import Vector

ROOT_BANDWIDTH = 0.5


class Quantile(Loss):
    """The smoothed check loss of quantile regression.

    Parameters
    ----------
    quantile : float, default 0.5
        The quantile tau, strictly between 0 and 1.
    """

    name = "quantile"
    free_spread = True
    uses_scale = True
    rough = True

    def __init__(self, quantile: float = 0.5) -> None:
        if isinstance(quantile, bool) or not 0.0 < quantile < 1.0:
            raise InputError.of("quantile", "lie strictly between 0 and 1", quantile)
        super().__init__()
        self.quantile = float(quantile)

    @property
    def unit(self) -> float:
        return self.scale

    @property
    def curvature_unit(self) -> float:
        return 1.0 / self.scale

    def value(self, eta: Vector, y: Vector) -> Vector:
        from scipy.special import ndtr

        h = self.scale * self.bandwidth
        e = y - eta
        density = np.exp(-0.5 * (e / h) ** 2) / math.sqrt(2.0 * math.pi)
        return np.asarray(e * (self.quantile - ndtr(-e / h)) + h * density)

    def slope(self, eta: Vector, y: Vector) -> Vector:
        from scipy.special import ndtr

        return np.asarray(ndtr((eta - y) / (self.scale * self.bandwidth)) - self.quantile)

    def weight(self, eta: Vector, y: Vector) -> Vector:
        h = self.scale * self.bandwidth
        return np.asarray(np.exp(-0.5 * ((y - eta) / h) ** 2) / (math.sqrt(2.0 * math.pi) * h))

    def score(self, eta: Vector, y: Vector) -> Vector:
        return np.asarray((y < eta) - self.quantile)

    def root(self, eta: Vector, y: Vector) -> Vector:
        from scipy.special import ndtr

        u = (eta - y) / (ROOT_BANDWIDTH * self.scale * self.bandwidth)
        return np.asarray(ndtr(u) + 0.5 * u * np.exp(-0.5 * u**2) / math.sqrt(2.0 * math.pi) - self.quantile)

    def sharpen(self, n: float, dim: int) -> None:
        self.bandwidth = min(1.0, ((dim + math.log(max(n, 1.0))) / max(n, 1.0)) ** 0.4)

    def options(self) -> dict[str, Any]:
        return {"quantile": self.quantile}
