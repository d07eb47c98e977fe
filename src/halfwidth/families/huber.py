"""Huber regression (P. J. Huber 1964): squared loss up to the threshold t = 1.345 scale, linear beyond it."""

from __future__ import annotations

import numpy as np

from halfwidth.families.base import Loss
from halfwidth.kernels.arrays import Vector

HUBER_TUNING = 1.345
"""In units of the residuals' scale: 95% efficiency under normal errors (P. J. Huber 1964)."""


class Huber(Loss):
    """Huber's loss: quadratic up to the threshold 1.345 scale, linear beyond it."""

    name = "huber"
    free_spread = True
    uses_scale = True

    @property
    def threshold(self) -> float:
        """The residual beyond which the loss is linear."""
        return HUBER_TUNING * self.scale

    @property
    def unit(self) -> float:
        return self.scale**2

    def value(self, eta: Vector, y: Vector) -> Vector:
        e, t = np.abs(y - eta), self.threshold
        return np.where(e <= t, 0.5 * e**2, t * e - 0.5 * t**2)

    def slope(self, eta: Vector, y: Vector) -> Vector:
        return np.clip(eta - y, -self.threshold, self.threshold)

    def weight(self, eta: Vector, y: Vector) -> Vector:
        return (np.abs(y - eta) <= self.threshold).astype(np.float64)
