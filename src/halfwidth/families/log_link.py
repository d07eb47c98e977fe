"""The log link: means exp(eta), which Poisson, gamma and negative binomial regressions share."""

from __future__ import annotations

import math

import numpy as np

from halfwidth.kernels.arrays import Vector

_LARGEST_EXPONENT = 500.0


class LogLink:
    """A mean of exp(eta)."""

    ratios = True

    def mean(self, eta: Vector) -> Vector:
        return np.asarray(np.exp(np.minimum(eta, _LARGEST_EXPONENT)))

    def mean_slope(self, eta: Vector) -> Vector:
        return self.mean(eta)

    def start(self, y_mean: float) -> float:
        return math.log(max(y_mean, 1e-3))
