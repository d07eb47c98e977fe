"""The warm start: a damped Newton over the first rows, all seen while theta_0 was deployed.

    s = (A + 1e-3 diag |A|)^-1 g,   theta <- theta - t s,

with t halved (at most five times) until the gradient is nearly linear along the step,
|s'(g(theta - t s) - (1 - t) g)| < t s'As / 2. It stops when s'g has fallen by nine orders of magnitude.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfwidth.errors import NotIdentified
from halfwidth.learners.auto.field import Field

Vector = NDArray[np.float64]

_MOST_STEPS = 12
_MOST_HALVINGS = 5
_RIDGE, _FLOOR = 1e-3, 1e-12
_SETTLED = 1e-9


@dataclass(frozen=True)
class Start:
    """Where to begin, the rows' Hessian near there, and the same with the ridge, which can be inverted."""

    theta: Vector
    hessian: Vector
    ridged: Vector


def inverse(matrix: Vector) -> Vector:
    """The inverse, or advice if there is none."""
    return solution(matrix, np.eye(len(matrix)))


def solution(matrix: Vector, right_side: Vector) -> Vector:
    """What the matrix maps to the right side, or advice if there is nothing or too much."""
    try:
        with np.errstate(all="ignore"):
            found = np.linalg.solve(matrix, right_side)
    except np.linalg.LinAlgError:
        found = np.full_like(right_side, np.nan)
    if not np.isfinite(found).all():
        raise NotIdentified(
            "the rows so far do not determine theta: their mean Hessian is singular or not finite. Drop constant or "
            "collinear columns, scale the columns to about one, or start nearer to the solution (theta_0)",
            "singular",
        )
    return np.asarray(found)


def warm_newton(field: Field, theta_0: Vector, rows: Vector) -> Start:
    """A rough minimiser over the rows."""
    theta, largest = theta_0.copy(), 0.0
    for _ in range(_MOST_STEPS):
        g, hessian = field.gradient(theta, rows), field.hessian(theta, rows)
        sizes = np.abs(np.diag(hessian))
        ridged = hessian + np.diag(_RIDGE * sizes + _FLOOR * sizes.mean())
        s = solution(ridged, g)
        theta = theta - _damping(field, theta, s, g, ridged, rows) * s
        decrement = float(s @ g)
        largest = max(largest, decrement)
        if decrement <= _SETTLED * largest:
            break
    return Start(theta, hessian, ridged)


def _damping(field: Field, theta: Vector, s: Vector, g: Vector, ridged: Vector, rows: Vector) -> float:
    t, bend = 1.0, float(s @ ridged @ s)
    for _ in range(_MOST_HALVINGS):
        moved = field.gradient(theta - t * s, rows)
        if abs(s @ (moved - (1.0 - t) * g)) < 0.5 * t * bend:
            break
        t *= 0.5
    return t
