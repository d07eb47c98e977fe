"""Fits to a chunk of rows, plus a quadratic that stands for all rows before it.

    minimise  sum_i w_i loss(o_i + z_i'theta, y_i) + (theta - c)' Q (theta - c) / 2

by damped Newton steps (`halfwidth.equation.newton`). Undamped ones diverge on logistic and Poisson chunks. Losses with
a scale of their residuals, or a dispersion that is estimated, take turns: the minimum at a scale, the scale at the
minimum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfwidth.equation.newton import MOST_STEPS, Minimum, damped_newton
from halfwidth.families import Loss
from halfwidth.families.base import NORMAL_MAD
from halfwidth.families.dispersed import estimated_dispersion
from halfwidth.families.linear import Linear
from halfwidth.families.quantile import Quantile
from halfwidth.kernels.arrays import Vector

_SCALE_ROUNDS = 40
_SCALE_SETTLED = 1e-10


@dataclass(frozen=True)
class Rows:
    """Rows on the internal scale."""

    Z: Vector
    y: Vector
    weight: Vector | None
    offset: Vector | None

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, chosen: slice | NDArray[np.intp]) -> Rows:
        parts = (None if part is None else part[chosen] for part in (self.weight, self.offset))
        return Rows(self.Z[chosen], self.y[chosen], *parts)

    def eta(self, theta: Vector) -> Vector:
        eta = self.Z @ theta
        return eta if self.offset is None else eta + self.offset

    def weighted(self, values: Vector) -> Vector:
        return values if self.weight is None else values * self.weight

    @property
    def total_weight(self) -> float:
        return float(len(self.y)) if self.weight is None else float(self.weight.sum())


def minimise(
    rows: Rows,
    loss: Loss,
    start: Vector,
    centre: Vector,
    Q: Vector,
    tolerance: float,
    *,
    most_steps: int = MOST_STEPS,
) -> Minimum:
    """The minimiser, to a squared Newton decrement of `tolerance`, in units of the loss."""
    weight = np.empty(0)

    def gradient(theta: Vector) -> Vector:
        nonlocal weight
        slope, weight = loss.slope_and_weight(rows.eta(theta), rows.y)
        return np.asarray(rows.weighted(slope) @ rows.Z + Q @ (theta - centre))

    def hessian(theta: Vector) -> Vector:
        root = np.sqrt(rows.weighted(weight))[:, None] * rows.Z
        return np.asarray(root.T @ root + Q)

    if loss.quadratic:  # one step is exact in any unit, and a second one takes back its rounding
        return damped_newton(gradient, hessian, start, 0.0, most_steps=2)
    return damped_newton(gradient, hessian, start, tolerance * loss.unit, most_steps=most_steps)


def first_fit(rows: Rows, loss: Loss, start: Vector, Q: Vector, prior: Vector, tolerance: float) -> Vector:
    """The fit to rows by themselves, with a prior in units of the curvature.

    Losses with a scale begin at least squares and settle their scale on the way.
    """
    full = Q + np.diag(prior)
    if not loss.uses_scale:
        return settle_dispersion(
            rows, loss, start, lambda theta: minimise(rows, loss, theta, start, full, tolerance).theta
        )
    theta = minimise(rows, Linear(), start, start, full, tolerance).theta
    return settle_scale(rows, loss, theta, start, Q, prior, tolerance)


def settle_scale(
    rows: Rows, loss: Loss, theta: Vector, centre: Vector, Q: Vector, prior: Vector, tolerance: float
) -> Vector:
    """The minimiser with the scale of its own residuals, which the loss keeps."""
    loss.sharpen(len(rows), rows.Z.shape[1])
    for _ in range(_SCALE_ROUNDS):
        before, loss.scale = loss.scale, robust_scale(rows, theta, loss)
        theta = minimise(rows, loss, theta, centre, Q + np.diag(prior * loss.curvature_unit), tolerance).theta
        if abs(loss.scale - before) <= _SCALE_SETTLED * loss.scale:
            break
    return theta


def settle_dispersion(rows: Rows, loss: Loss, theta: Vector, minimum: Callable[[Vector], Vector]) -> Vector:
    """The minimum from theta, with the dispersion of its own rows, which the loss keeps, where one is estimated."""
    family = estimated_dispersion(loss)
    for _ in range(_SCALE_ROUNDS):
        theta = minimum(theta)
        if family is None:
            break
        before, family.scale = family.scale, family.settled(rows.eta(theta), rows.y, rows.weight)
        if not family.steers or abs(family.scale - before) <= _SCALE_SETTLED * family.scale:
            break
    return theta


def prior_weights(rows: Rows) -> Vector:
    """One row at the column's farthest, in units of its curvature, so that no rare level can run away at first."""
    return np.asarray(np.maximum(np.max(rows.Z**2, axis=0, initial=0.0), 1.0))


def robust_scale(rows: Rows, theta: Vector, loss: Loss) -> float:
    """The median absolute residual over 0.6745; the mean one where more than half the residuals vanish."""
    residual = rows.y - rows.eta(theta)
    weight = np.ones(len(residual)) if rows.weight is None else rows.weight
    if isinstance(loss, Quantile):
        residual = residual - weighted_median(residual, weight)
    spread = np.abs(residual)
    mean = float(weight @ spread) / max(float(weight.sum()), 1e-300)
    scale = weighted_median(spread, weight) / NORMAL_MAD
    if scale > 1e-6 * mean:
        return scale
    return max(mean, 1e-12 * float(np.abs(rows.y).max(initial=0.0))) or 1.0


def weighted_median(values: Vector, weight: Vector) -> float:
    """The median of values that count `weight` times; between two of them, their midpoint."""
    order = np.argsort(values)
    below = np.cumsum(weight[order])
    half = 0.5 * below[-1]
    last = len(values) - 1
    lower = min(int(np.searchsorted(below, half, side="left")), last)
    upper = min(int(np.searchsorted(below, half, side="right")), last)
    return float(0.5 * (values[order[lower]] + values[order[upper]]))
