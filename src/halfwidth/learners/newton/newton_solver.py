"""Damped Newton on a chunk of rows plus a quadratic that stands for all rows before it.

    minimise  sum_i w_i loss(o_i + z_i'theta, y_i) + (theta - c)' Q (theta - c) / 2

by theta - t (Z'WZ + Q)^-1 gradient with t halved until the value falls by a share of what the quadratic model promises.
Undamped steps diverge on logistic and Poisson chunks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfwidth.families import Loss
from halfwidth.families.base import NORMAL_MAD
from halfwidth.families.linear import Linear
from halfwidth.families.quantile import Quantile

Vector = NDArray[np.float64]

SINGULAR = 1e-12
_MOST_ITERATIONS = 50
_MOST_HALVINGS = 30
_SCALE_ROUNDS = 4


@dataclass(frozen=True)
class Rows:
    """Rows on the internal scale."""

    Z: Vector
    y: Vector
    weight: Vector | None
    offset: Vector | None

    def eta(self, theta: Vector) -> Vector:
        eta = self.Z @ theta
        return eta if self.offset is None else eta + self.offset

    def weighted(self, values: Vector) -> Vector:
        return values if self.weight is None else values * self.weight

    @property
    def total_weight(self) -> float:
        return float(len(self.y)) if self.weight is None else float(self.weight.sum())


def solve_spd(Q: Vector, g: Vector) -> Vector:
    """Q^-1 g for a symmetric non-negative Q brought to unit diagonal; directions without curvature get zero."""
    from scipy.linalg.lapack import dposv

    diagonal = np.diag(Q)
    d = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    R = Q * d[:, None] * d
    rhs = (g.T * d).T
    factor, x, info = dposv(R, rhs)
    if info == 0 and np.min(np.diag(factor)) ** 2 > SINGULAR:
        return np.asarray((x.T * d).T)
    values, vectors = np.linalg.eigh(R)
    keep = values > SINGULAR * max(values[-1], 1e-300)
    V = vectors[:, keep]
    return np.asarray(((V / values[keep] @ (V.T @ rhs)).T * d).T)


def minimise(rows: Rows, loss: Loss, start: Vector, centre: Vector, Q: Vector, tolerance: float) -> Vector:
    """The minimiser, to a squared Newton decrement of `tolerance` (in units of the loss)."""

    def value(theta: Vector) -> float:
        gap = theta - centre
        with np.errstate(over="ignore"):
            return float(rows.weighted(loss.value(rows.eta(theta), rows.y)).sum() + 0.5 * gap @ Q @ gap)

    theta, current = start, value(start)
    for _ in range(_MOST_ITERATIONS):
        eta = rows.eta(theta)
        gradient = rows.weighted(loss.slope(eta, rows.y)) @ rows.Z + Q @ (theta - centre)
        root = np.sqrt(rows.weighted(loss.weight(eta, rows.y)))[:, None] * rows.Z
        step = solve_spd(root.T @ root + Q, gradient)
        decrement = float(gradient @ step)
        if not decrement > tolerance:
            break
        t, best = 1.0, value(theta - step)
        for _ in range(_MOST_HALVINGS):
            if best <= current - 1e-4 * t * decrement:
                break
            t *= 0.5
            best = value(theta - t * step)
        if not best < current:
            break
        theta, current = theta - t * step, best
    return theta


def first_fit(rows: Rows, loss: Loss, start: Vector, Q: Vector, tolerance: float) -> Vector:
    """The fit to the first rows; losses with a scale begin at least squares and settle their scale on the way."""
    if not loss.uses_scale:
        return minimise(rows, loss, start, start, Q, tolerance)
    theta = minimise(rows, Linear(), start, start, Q, tolerance)
    for _ in range(_SCALE_ROUNDS):
        loss.scale = robust_scale(rows, theta, loss)
        loss.sharpen(rows.total_weight, rows.Z.shape[1])
        theta = minimise(rows, loss, theta, start, Q, tolerance)
    return theta


def prior_weights(rows: Rows) -> Vector:
    """The weight of one row at the column's farthest, so that no rare level can run away on the first rows."""
    Z = rows.Z if rows.weight is None else rows.Z[rows.weight > 0.0]
    return np.asarray(np.maximum(np.max(Z**2, axis=0, initial=0.0), 1.0))


def robust_scale(rows: Rows, theta: Vector, loss: Loss) -> float:
    """The median absolute residual over 0.6745; the mean one where more than half the residuals vanish."""
    residual = rows.y - rows.eta(theta)
    weight = np.ones(len(residual)) if rows.weight is None else rows.weight
    if isinstance(loss, Quantile):
        residual = residual - weighted_median(residual, weight)
    spread = np.abs(residual)
    mean = float(weight @ spread) / max(float(weight.sum()), 1e-300)
    scale = weighted_median(spread, weight) / NORMAL_MAD
    return scale if scale > 1e-6 * mean else max(mean, 1e-12)


def weighted_median(values: Vector, weight: Vector) -> float:
    """The median of values that count `weight` times; between two of them, their midpoint."""
    order = np.argsort(values)
    below = np.cumsum(weight[order])
    half = 0.5 * below[-1]
    last = len(values) - 1
    lower = min(int(np.searchsorted(below, half, side="left")), last)
    upper = min(int(np.searchsorted(below, half, side="right")), last)
    return float(0.5 * (values[order[lower]] + values[order[upper]]))
