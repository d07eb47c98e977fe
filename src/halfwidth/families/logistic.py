"""Logistic regression: loss log(1 + exp(eta)) - y eta, for y in {0, 1}."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from halfwidth.families.base import Loss
from halfwidth.kernels.arrays import Vector


class Logistic(Loss):
    """The logistic loss of targets 0 and 1."""

    name = "logistic"
    smooth = True
    likelihood = True
    target = "be 0 or 1"
    labels = "binary"
    separation = "sides"

    def value(self, eta: Vector, y: Vector) -> Vector:
        return np.asarray(np.logaddexp(0.0, eta) - y * eta)

    def slope(self, eta: Vector, y: Vector) -> Vector:
        return self.mean(eta) - y

    def weight(self, eta: Vector, y: Vector) -> Vector:
        return self.mean_slope(eta)

    def slope_and_weight(self, eta: Vector, y: Vector) -> tuple[Vector, Vector]:
        p = self.mean(eta)
        return p - y, p * (1.0 - p)

    def mean(self, eta: Vector) -> Vector:
        from scipy.special import expit

        return np.asarray(expit(eta))

    def mean_slope(self, eta: Vector) -> Vector:
        p = self.mean(eta)
        return p * (1.0 - p)

    def start(self, y_mean: float) -> float:
        p = min(max(y_mean, 1e-3), 1.0 - 1e-3)
        return math.log(p / (1.0 - p))

    def allows(self, y: Vector) -> NDArray[np.bool_]:
        return np.isin(y, (0.0, 1.0))

    def null(self, mean: float, variance: float) -> float:
        if not 0.0 < mean < 1.0:
            return 0.0
        return -mean * math.log(mean) - (1.0 - mean) * math.log1p(-mean)
