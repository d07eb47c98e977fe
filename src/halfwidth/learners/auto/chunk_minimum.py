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
_PULLS, _FREE, _QUARTERS = 3.0, 0.5, 12


def chunk_minimum(field: Field, rows: Vector, centre: Vector, past: Vector, start: Vector | None = None) -> Vector:
    """With the field's Hessian; the past pulls to the centre, from which the search begins unless a start is given."""
    past = 0.5 * (past + past.T)

    def hessian(theta: Vector) -> Vector:
        H = field.hessian(theta, rows)
        return np.asarray(0.5 * (H + H.T) + past)

    def pulled(theta: Vector) -> Vector:
        return _pulled(field, rows, centre, past, theta)

    found = damped_newton(pulled, hessian, centre if start is None else start, CLOSE, relative=True)
    for _ in range(_ROUNDS):
        noise = float(np.mean(field.moments(found.theta, rows)[1] / np.abs(np.diag(found.hessian))))
        if not (found.decrement > CLOSE * noise and np.isfinite(noise)):
            break  # where it began far out, a small share of the first decrement was still much
        found = damped_newton(pulled, hessian, found.theta, CLOSE * noise)
    return np.asarray(found.theta)


def first_minimum(field: Field, rows: Vector, start: Vector, prior: Vector) -> tuple[Vector, float]:
    """The minimiser of the first rows with a share of the prior around the start, and that share.

    The prior is worth a few rows as they are at the start. Where they have far less curvature at the minimum, it may
    outweigh them all: first rows in other units, which nearly separate the labels, and rare events. Where it pulls by
    more than `_PULLS` times the noise of the gradients, it becomes a quarter until it pulls by at most `_FREE` of it.
    If it never does, the loss has no minimum without it, and all of the prior stays.
    """
    found = whole = chunk_minimum(field, rows, start, np.diag(prior))
    if not _pull(field, rows, whole, start, prior) > _PULLS:
        return whole, 1.0
    for share in 0.25 ** np.arange(1, _QUARTERS):
        found = chunk_minimum(field, rows, start, np.diag(share * prior), found)
        if _pull(field, rows, found, start, share * prior) <= _FREE:
            return found, float(share)
    return whole, 1.0


def _pull(field: Field, rows: Vector, point: Vector, start: Vector, prior: Vector) -> float:
    """What the prior adds to the sum of gradients, in units of its noise: the most of all columns and of the move.

    Along a move that separates labels, gradients of all rows have one sign: there it is never below one.
    """
    gradients, move = field.gradients(point, rows), point - start
    along = gradients @ move
    noise = np.sqrt(np.append(np.einsum("ij,ij->j", gradients, gradients), along @ along))
    pull = np.append(prior * np.abs(move), prior @ np.square(move))
    return float(np.max(pull[noise > 0.0] / noise[noise > 0.0], initial=0.0))


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
