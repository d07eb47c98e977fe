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
    """Rows on the internal scale; with several equations a row has a vector of predictors."""

    Z: Vector
    y: Vector
    weight: Vector | None
    offset: Vector | None
    equations: int = 1

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, chosen: slice | NDArray[np.intp]) -> Rows:
        weight, offset = (None if part is None else part[chosen] for part in (self.weight, self.offset))
        return Rows(self.Z[chosen], self.y[chosen], weight, offset, self.equations)

    def along(self, theta: Vector) -> Vector:
        """z'theta, for every equation."""
        return np.asarray(self.Z @ (theta if self.equations == 1 else theta.reshape(self.equations, -1).T))

    def eta(self, theta: Vector) -> Vector:
        eta = self.along(theta)
        return eta if self.offset is None or self.equations > 1 else eta + self.offset

    def weighted(self, values: Vector) -> Vector:
        if self.weight is None:
            return values
        return np.asarray(values * (self.weight if values.ndim == 1 else self.weight[:, None]))

    def each(self, values: Vector) -> Vector:
        """What every row adds to the coefficients, for values per predictor."""
        if values.ndim == 1:
            return values[:, None] * self.Z
        return np.asarray((values[:, :, None] * self.Z[:, None, :]).reshape(len(self), -1))

    def pulled(self, values: Vector) -> Vector:
        """The sum of that over the rows."""
        return np.asarray(values @ self.Z if values.ndim == 1 else (values.T @ self.Z).ravel())

    def root(self, weights: Vector) -> Vector:
        """R with R'R the curvature of the rows, which the loss gave these weights; see `families.multinomial`."""
        if weights.ndim == 1:
            return np.sqrt(self.weighted(weights))[:, None] * self.Z
        count = weights.shape[1] + 1
        p = np.maximum(np.column_stack([1.0 - weights.sum(axis=1), weights]), 0.0)
        away = (np.eye(count)[:, 1:] - weights[:, None, :]) * np.sqrt(self.weighted(p))[:, :, None]
        return np.asarray((away[:, :, :, None] * self.Z[:, None, None, :]).reshape(len(self), count, -1))

    def gram(self, weights: Vector) -> Vector:
        """The curvature."""
        return squared(self.root(weights))

    @property
    def total_weight(self) -> float:
        return float(len(self.y)) if self.weight is None else float(self.weight.sum())


def squared(root: Vector) -> Vector:
    """R'R, for one or several roots a row."""
    flat = root.reshape(-1, root.shape[-1])
    return np.asarray(flat.T @ flat)


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
    """The minimiser, to a squared Newton decrement of `tolerance`, in units of the loss; Q may be a diagonal (d,)."""
    weight = np.empty(0)

    def gradient(theta: Vector) -> Vector:
        nonlocal weight
        slope, weight = loss.slope_and_weight(rows.eta(theta), rows.y)
        away = theta - centre
        return np.asarray(rows.pulled(rows.weighted(slope)) + (Q * away if Q.ndim == 1 else Q @ away))

    def hessian(theta: Vector) -> Vector:
        H = rows.gram(weight)
        if Q.ndim == 1:
            H.flat[:: len(Q) + 1] += Q
        else:
            H += Q
        return H

    if loss.quadratic:  # one step is exact in any unit, and a second one takes back its rounding
        return damped_newton(gradient, hessian, start, 0.0, most_steps=2)
    return damped_newton(gradient, hessian, start, tolerance * loss.unit, most_steps=most_steps)


def first_fit(rows: Rows, loss: Loss, start: Vector, penalty: Vector, prior: Vector, tolerance: float) -> Vector:
    """The fit to rows by themselves, with a prior in units of the curvature.

    Losses with a scale begin at least squares and settle their scale on the way.
    """
    full = penalty + prior
    if not loss.uses_scale:
        return settle_dispersion(
            rows, loss, start, lambda theta: minimise(rows, loss, theta, start, full, tolerance).theta
        )
    theta = minimise(rows, Linear(), start, start, full, tolerance).theta
    return settle_scale(rows, loss, theta, start, penalty, prior, tolerance)


def settle_scale(
    rows: Rows, loss: Loss, theta: Vector, centre: Vector, penalty: Vector, prior: Vector, tolerance: float
) -> Vector:
    """The minimiser with the scale of its own residuals, which the loss keeps."""
    loss.sharpen(len(rows), rows.Z.shape[1])
    for _ in range(_SCALE_ROUNDS):
        before, loss.scale = loss.scale, robust_scale(rows, theta, loss)
        theta = minimise(rows, loss, theta, centre, penalty + prior * loss.curvature_unit, tolerance).theta
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
    """One row at the column's farthest, in units of its curvature, so that no rare level can run away at first.

    No level's indicator has a larger square than there are rows; a value beyond that had no say in the scale.
    """
    return np.tile(np.clip(np.max(rows.Z**2, axis=0, initial=0.0), 1.0, max(len(rows), 1)), rows.equations)


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
