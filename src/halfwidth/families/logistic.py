"""Logistic regression: loss log(1 + exp(eta)) - y eta, for y in {0, 1}."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from halfwidth.families.canonical_link import CanonicalLink
from halfwidth.kernels.arrays import Vector


class Logistic(CanonicalLink):
    """The logistic loss of targets 0 and 1."""

    name = "logistic"
    ratios = True
    target = "be 0 or 1"
    labels = "binary"
    separation = "sides"

    def value(self, eta: Vector, y: Vector) -> Vector:
        return np.asarray(np.logaddexp(0.0, eta) - y * eta)

    def mean(self, eta: Vector) -> Vector:
        from scipy.special import expit

        return np.asarray(expit(eta))

    def variance_at(self, mean: Vector) -> Vector:
        return mean * (1.0 - mean)

    def start(self, y_mean: float) -> float:
        p = min(max(y_mean, 1e-3), 1.0 - 1e-3)
        return math.log(p / (1.0 - p))

    def allows(self, y: Vector) -> NDArray[np.bool_]:
        return np.isin(y, (0.0, 1.0))

    def null(self, mean: float, variance: float) -> float:
        if not 0.0 < mean < 1.0:
            return 0.0
        return -mean * math.log(mean) - (1.0 - mean) * math.log1p(-mean)
