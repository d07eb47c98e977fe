"""Where a chunk of rows is expanded that is too far from linear at the root of everything before it.

At the minimiser of the chunk's own loss plus the quadratic that stands for all chunks before it, whose matrix is
`past`; of a field without a loss, at the root of the same. Where gradients jump, differences are noisy far from the
minimum, and products of gradients have the right shape there.
"""

from __future__ import annotations

import numpy as np

from halfwidth.equation.newton import damped_newton, newton_root
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto.field import Field

CLOSE = 1e-4
"""The last decrement, as a share of the first one, and of what the noise of the rows makes of it."""
_ROUNDS = 4


def chunk_minimum(field: Field, rows: Vector, centre: Vector, past: Vector) -> Vector:
    """With the field's Hessian."""
    past = 0.5 * (past + past.T)

    def hessian(theta: Vector) -> Vector:
        H = field.hessian(theta, rows)
        return np.asarray(0.5 * (H + H.T) + past)

    def pulled(theta: Vector) -> Vector:
        return _pulled(field, rows, centre, past, theta)

    found = damped_newton(pulled, hessian, centre, CLOSE, relative=True)
    for _ in range(_ROUNDS):
        noise = float(np.mean(field.moments(found.theta, rows)[1] / np.abs(np.diag(found.hessian))))
        if not (found.decrement > CLOSE * noise and np.isfinite(noise)):
            break  # where it began far out, a small share of the first decrement was still much
        found = damped_newton(pulled, hessian, found.theta, CLOSE * noise)
    return np.asarray(found.theta)


def rough_minimum(field: Field, rows: Vector, centre: Vector, past: Vector) -> Vector:
    """Of a gradient that jumps."""
    past = 0.5 * (past + past.T)

    def products(theta: Vector) -> Vector:
        grads = field.gradients(theta, rows)
        return np.asarray(grads.T @ grads + past)

    found = damped_newton(lambda at: _pulled(field, rows, centre, past, at), products, centre, CLOSE, relative=True)
    return np.asarray(found.theta)


def chunk_root(field: Field, rows: Vector, centre: Vector, past: Vector) -> Vector:
    """Of a field without a loss, with its Jacobian."""
    return newton_root(
        lambda at: _pulled(field, rows, centre, past, at),
        lambda at: field.hessian(at, rows) + past,
        centre,
        CLOSE,
        np.abs(np.diag(past)),
    )


def _pulled(field: Field, rows: Vector, centre: Vector, past: Vector, theta: Vector) -> Vector:
    return np.asarray(field.gradient(theta, rows) + past @ (theta - centre))
