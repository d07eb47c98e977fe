"""What chunks say of the loss where they are unlike each other: along the dither, and by the size of their Hessians.

**Along the dither.** While theta is dithered, gradients on either side of the linearisation point l, a dither z away,
show what is not linear in between: with g(.) the gradient sum of a chunk and H its Hessian sum at l,

    R = (g(l + z) + g(l - z)) / 2 - g(l),   z'H z,   z'(g(l + z) - g(l - z)) / 2.

The second and the third are equal where the loss is quadratic. The share of curvature that is lost at a distance z, one
less their ratio, grows like the square of z, and so does |R|^2 over |H z|^2 in the metric of P; dithers are limited to
a fifth of both together, for a response that follows the loss is lost in the same way. R is what the mean of a dithered
theta adds to a gradient. Data that shift by a share k of theta, as forecasts do that fulfil themselves in part, add R
at the distance k z: k^2 R (`halfwidth.equation`).

**Steep chunks.** An exponential loss that is expanded far above its root has a Hessian many times the usual one. Such a
chunk would decide the equation with what its expansion says, which is wrong. So a chunk with r times the usual Hessian,
in the median column, counts (4 / r)^2 if r is above 4, until dithers show that the loss is quadratic. That depends on
the rows' features and on l alone, and biases nothing. For the next points it counts in full, and is forgotten soon.
"""

from __future__ import annotations

import numpy as np

from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.compile import jitable
from halfwidth.learners.auto.arguments import Cursor, Moving, Plan, Steering, Told

REMEMBERED = 0.8
"""What of the chunks before counts with the next one, in what is known of late."""
STEEP = 4.0
MOST_LOST = 0.2
CURVED = 1e-4
"""The share of curvature that is lost along a dither by more than rounding."""


@jitable
def is_probed(at: int, cursor: Cursor, plan: Plan) -> bool:
    """Whether gradients are wanted on either side of the point, a dither away."""
    return bool(cursor.probing and plan.dithers[at].any())


@jitable
def along_dither(at: int, plan: Plan, P: Vector, moving: Moving, told: Told) -> Vector:
    """R of the chunk; notes what is linear along the dither, and what is not."""
    first = 2 if plan.differences[at] == 0.0 else 2 + moving.theta.shape[0]
    ahead, behind, z = told.gradients[first], told.gradients[first + 1], plan.dithers[at]
    R, bend = 0.5 * (ahead + behind) - told.gradients[1], np.dot(moving.H, z)
    moving.probed[:] *= REMEMBERED
    moving.probed[0] += np.dot(z, bend)
    moving.probed[1] += 0.5 * np.dot(z, ahead - behind)
    moving.probed[2] += np.dot(bend, np.dot(P, bend))
    moving.probed[3] += np.dot(R, np.dot(P, R))
    return R  # type: ignore[no-any-return]  # untyped for mypy


@jitable
def along_theta(steering: Steering, moving: Moving, told: Told) -> Vector:
    """R of a chunk for the deployed theta; notes what is linear on the way to it, and what is not."""
    away = moving.theta - steering.point
    bend, change = np.dot(moving.H, away), told.gradients[0] - told.gradients[1]
    moving.swept[0] += np.dot(away, bend)
    moving.swept[1] += np.dot(away, change)
    moving.swept[2] += 1.0
    return change - bend  # type: ignore[no-any-return]  # untyped for mypy


@jitable
def trust_in(H: Vector, rows: int, usual: Vector) -> float:
    """What a chunk counts for, given the usual diagonal of a row's Hessian; 1 where none is known."""
    seen = np.flatnonzero(usual > 0.0)
    if seen.shape[0] == 0:
        return 1.0
    ratios = np.empty(seen.shape[0])
    for i in range(seen.shape[0]):
        ratios[i] = H[seen[i], seen[i]] / (rows * usual[seen[i]])
    ratio = np.median(ratios)
    return 1.0 if ratio <= STEEP else (STEEP / ratio) ** 2


def saturates(probed: Vector) -> bool:
    """Whether curvature is less a dither away from the points, and not more, as it is of an exponential."""
    return bool(probed[1] < probed[0])


def nonlinearity(probed: Vector) -> float:
    """What is not linear at a distance x, per unit of x'H x over a chunk: by the dithers of late, 0 without any."""
    if not (probed[0] > 0.0 and probed[2] > 0.0):
        return 0.0
    lost = abs(float(probed[1] / probed[0]) - 1.0) + float(probed[3] / probed[2])
    return lost / ((1.0 - REMEMBERED) * float(probed[0]))
