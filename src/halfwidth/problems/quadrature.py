"""Means over the standard normal law, exact to rounding, and orthonormal Hermite polynomials.

Trapezoidal sums over the normal density converge exponentially for functions that are analytic near the real line. For
a stationary Gaussian chain with correlation r at lag one, f = sum_m f_m He_m / sqrt(m!) has E[f(x_0) f(x_h)] =
sum_m f_m^2 r^(m h) (F. G. Mehler 1866), so that sums over lags are geometric.
"""

from __future__ import annotations

import numpy as np

from halfwidth.kernels.arrays import Vector


def normal_grid(points: int = 8_001, reach: float = 13.0) -> tuple[Vector, Vector]:
    """Nodes x and weights w with E f(x) = w @ f(x) for x ~ N(0, 1)."""
    x = np.linspace(-reach, reach, points)
    density = np.exp(-0.5 * x**2)
    return x, density / density.sum()


def hermite_polynomials(x: Vector, terms: int) -> Vector:
    """He_m(x) / sqrt(m!) for m = 0 .. terms - 1, one in each row."""
    values = np.empty((terms, x.size))
    previous, current = np.zeros_like(x), np.ones_like(x)
    for m in range(terms):
        values[m] = current
        previous, current = current, (x * current - np.sqrt(m) * previous) / np.sqrt(m + 1.0)
    return values


def lag_sums(ratios: Vector) -> Vector:
    """Twice the sum over lags h = 1, 2, ... of ratio^h: what the lags add to a variance of one."""
    return np.asarray(2.0 * ratios / (1.0 - ratios))
