"""Gamma regression with the log link: loss y exp(-eta) + eta, for y above 0.

The variance of y is phi mu^2 with mu = exp(eta). The dispersion phi is Pearson's, the sum of the squared slopes
1 - y / mu over n - d; no coefficient depends on it, but the log-likelihood does, with k = 1 / phi:

    llf = sum_i k log k - log Gamma(k) + (k - 1) log y_i - k loss_i.

P. McCullagh and J. A. Nelder, *Generalized Linear Models* (1989), chapter 8.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.families.dispersed import Dispersed, DispersionTerms
from halfwidth.families.log_link import LogLink
from halfwidth.kernels.arrays import Vector


class Gamma(LogLink, Dispersed):
    """The gamma loss of positive targets, with the log link."""

    name = "gamma"
    free_spread = True
    smooth = True
    likelihood = True
    target = "be numbers above 0"
    labels = "positive"

    def value(self, eta: Vector, y: Vector) -> Vector:
        return y * self.mean(-eta) + eta

    def slope(self, eta: Vector, y: Vector) -> Vector:
        return 1.0 - y * self.mean(-eta)

    def weight(self, eta: Vector, y: Vector) -> Vector:
        return y * self.mean(-eta)

    def mean_weight(self, eta: Vector, y: Vector) -> Vector:
        return np.ones_like(eta)

    def allows(self, y: Vector) -> NDArray[np.bool_]:
        return np.isfinite(y) & (y > 0.0)

    def terms(self, eta: Vector, y: Vector) -> DispersionTerms:
        slope = self.slope(eta, y)
        return DispersionTerms(slope**2 - self.scale, np.full_like(y, -1.0), 2.0 * slope * (1.0 - slope))

    def settled(self, eta: Vector, y: Vector, weight: Vector | None) -> float:
        return float(np.average(self.slope(eta, y) ** 2, weights=weight))

    def facts(self, dispersion: float) -> dict[str, Any]:
        return {"dispersion": dispersion}

    def saturated(self, y: Vector) -> Vector:
        return 1.0 + np.log(y)

    def null(self, mean: float, variance: float) -> float:
        return 1.0 + math.log(mean)

    def log_likelihood(self, loss: float, saturated: float, constant: float, n: float, dispersion: float) -> float:
        k = 1.0 / max(dispersion, 1e-300)
        return n * (k * math.log(k) - math.lgamma(k)) + (k - 1.0) * (saturated - n) - k * loss
