"""Linear regression: loss e^2 / 2 with e = y - eta."""

from __future__ import annotations

import math

import numpy as np

from halfwidth.families.base import Loss
from halfwidth.kernels.arrays import Vector


class Linear(Loss):
    """The squared loss e^2 / 2."""

    name = "linear"
    free_spread = True
    quadratic = True
    likelihood = True

    def value(self, eta: Vector, y: Vector) -> Vector:
        return np.asarray(0.5 * (y - eta) ** 2)

    def slope(self, eta: Vector, y: Vector) -> Vector:
        return eta - y

    def weight(self, eta: Vector, y: Vector) -> Vector:
        return np.ones_like(eta)

    def log_likelihood(self, loss: float, saturated: float, constant: float, n: float, dispersion: float) -> float:
        return -0.5 * n * (math.log(2.0 * math.pi * max(2.0 * loss, 1e-300) / n) + 1.0)
