"""Poisson regression with the log link: loss exp(eta) - y eta, for y of at least 0."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from halfwidth.families.canonical_link import CanonicalLink
from halfwidth.families.log_link import LogLink
from halfwidth.kernels.arrays import Vector


class Poisson(LogLink, CanonicalLink):
    """The Poisson loss of counts or rates, with the log link."""

    name = "poisson"
    target = "be counts or rates of at least 0"
    labels = "count"
    separation = "zeros"

    def value(self, eta: Vector, y: Vector) -> Vector:
        return self.mean(eta) - y * eta

    def variance_at(self, mean: Vector) -> Vector:
        return mean

    def allows(self, y: Vector) -> NDArray[np.bool_]:
        return np.isfinite(y) & (y >= 0.0)

    def saturated(self, y: Vector) -> Vector:
        from scipy.special import xlogy

        return np.asarray(y - xlogy(y, y))

    def constant(self, y: Vector) -> Vector:
        from scipy.special import gammaln

        return np.asarray(-gammaln(y + 1.0))

    def null(self, mean: float, variance: float) -> float:
        return mean - mean * math.log(mean) if mean > 0.0 else 0.0
