"""Many replicates of the paper's streams at once: capped SGD and overlapping batch means, one replicate a lane.

A row of one replicate is a few dozen multiplications on numbers that depend on each other, so that a processor waits
for most of the time. Here LANES independent replicates take every step together: all arrays have the replicates as
their last axis, and the innermost loops run over them.

    u = (1 - rho) u + rho (v + epsilon theta w),     g = (u'theta - u'theta_r - e) u                    (linear)
                                                     g = (s(u'theta) - 1{U < s(u'theta_r)}) u + ridge theta  (logistic)
    theta = theta - min(eta_k, 1 / curvature) g
    W_k = carry_k W_{k-1} + theta_k - theta*,        carry_k = 0 where a block starts, otherwise 1
    V += W W',   P += l W,                           l the age of the block

The innovations (w, v, e) and U are drawn outside: several streams, of fewer dimensions too, run on the same ones. The
sums are of theta - theta*, so that nothing is lost to rounding. Symbols and Sigma_hat as in
`halfwidth.watchers.overlapping`; the streams as in `halfwidth.problems`.

| text                     | here                                        |
|--------------------------|---------------------------------------------|
| w, v, e                  | `normals[k, 0]`, `[k, 1:1+d]`, `[k, -1]`    |
| U                        | `uniforms[k]`                               |
| W_0, W_1, ... of a piece | `block_sums`                                |
| V, upper triangle        | `scatter`                                   |
| P                        | `cross`                                     |
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfwidth.kernels.compile import Function, jitable, specialise
from halfwidth.problems.seed_logistic import sigmoid

Vector = NDArray[np.float64]

LANES = 40
PIECE = 32  # rows between two additions to V: their block sums are still in the processor's cache


class Stream(NamedTuple):
    """What a stream and its loss are; `ridge` is of the logistic loss."""

    epsilon: float
    rho: float
    ridge: float
    theta_r: Vector
    theta_star: Vector


class Lanes(NamedTuple):
    """Where all replicates are, and the sums of their block sums."""

    features: Vector  # (d, LANES)
    theta: Vector  # (d, LANES)
    total: Vector  # (d, LANES): of all finished blocks
    block_sums: Vector  # (PIECE + 1, d, LANES); the first is the current one
    cross: Vector  # (d, LANES)
    scatter: Vector  # (d (d + 1) / 2, LANES)
    margin: Vector  # (LANES,), scratch: u'theta - u'theta_r, or u'theta, then the factor of u in the gradient
    signal: Vector  # (LANES,), scratch: u'theta_r
    curvature: Vector  # (LANES,), scratch: |u|^2, then the step

    @classmethod
    def start(cls, dim: int) -> Lanes:
        """All replicates at theta = 0 with features 0."""

        def zeros(*shape: int) -> Vector:
            return np.zeros((*shape, LANES))

        several = (zeros(dim), zeros(dim), zeros(dim), zeros(PIECE + 1, dim), zeros(dim), zeros(dim * (dim + 1) // 2))
        return cls(*several, zeros(), zeros(), zeros())


class Rows(NamedTuple):
    """The innovations of consecutive rows, and what depends on the row's number only."""

    normals: Vector  # (rows, 2 + at least d, LANES)
    uniforms: Vector  # (rows, LANES)
    steps: Vector  # (rows,): eta_k
    ages: Vector  # (rows,): 1 where a block starts


@jitable
def move_features(rows, i, stream, lanes):  # type: ignore[no-untyped-def]
    """Draw the features of row i; leaves u'theta in `margin`, u'theta_r in `signal` and |u|^2 in `curvature`."""
    for r in range(LANES):
        lanes.margin[r] = 0.0
        lanes.signal[r] = 0.0
        lanes.curvature[r] = 0.0
    for j in range(lanes.theta.shape[0]):
        target = stream.theta_r[j]
        for r in range(LANES):
            fresh = rows.normals[i, 1 + j, r] + stream.epsilon * rows.normals[i, 0, r] * lanes.theta[j, r]
            u = (1.0 - stream.rho) * lanes.features[j, r] + stream.rho * fresh
            lanes.features[j, r] = u
            lanes.margin[r] += u * lanes.theta[j, r]
            lanes.signal[r] += u * target
            lanes.curvature[r] += u * u


@jitable
def linear_step(rows, i, stream, lanes):  # type: ignore[no-untyped-def]
    """Leave the factor of u in the gradient in `margin` and the capped step in `curvature`."""
    noise = rows.normals.shape[1] - 1
    for r in range(LANES):
        lanes.margin[r] -= lanes.signal[r] + rows.normals[i, noise, r]
        lanes.curvature[r] = min(rows.steps[i], 1.0 / lanes.curvature[r])


@jitable
def logistic_step(rows, i, stream, lanes):  # type: ignore[no-untyped-def]
    for r in range(LANES):
        label = 1.0 if rows.uniforms[i, r] < sigmoid(lanes.signal[r]) else 0.0
        lanes.margin[r] = sigmoid(lanes.margin[r]) - label
    for r in range(LANES):
        lanes.curvature[r] = min(rows.steps[i], 1.0 / (0.25 * lanes.curvature[r] + stream.ridge))


@jitable
def move_theta(i, at, age, stream, lanes):  # type: ignore[no-untyped-def]
    """Take the step and extend the block, or start a new one."""
    carry = 0.0 if age == 1.0 else 1.0
    for j in range(lanes.theta.shape[0]):
        if carry == 0.0:
            for r in range(LANES):
                lanes.total[j, r] += lanes.block_sums[at, j, r]
        star = stream.theta_star[j]
        for r in range(LANES):
            gradient = lanes.margin[r] * lanes.features[j, r] + stream.ridge * lanes.theta[j, r]
            theta = lanes.theta[j, r] - lanes.curvature[r] * gradient
            lanes.theta[j, r] = theta
            lanes.block_sums[at + 1, j, r] = carry * lanes.block_sums[at, j, r] + (theta - star)


@jitable
def add_block_sums(ages, sums, cross, scatter):  # type: ignore[no-untyped-def]
    """Add the block sums of a piece, four rows at a time, and make the last one the current one."""
    pair = 0
    for j in range(sums.shape[1]):
        for i in range(0, PIECE, 4):
            a, b, c, d = ages[i], ages[i + 1], ages[i + 2], ages[i + 3]
            for r in range(LANES):
                cross[j, r] += (
                    a * sums[i + 1, j, r] + b * sums[i + 2, j, r] + c * sums[i + 3, j, r] + d * sums[i + 4, j, r]
                )
        for k in range(j + 1):
            for i in range(0, PIECE, 4):
                for r in range(LANES):
                    scatter[pair, r] += (
                        sums[i + 1, j, r] * sums[i + 1, k, r]
                        + sums[i + 2, j, r] * sums[i + 2, k, r]
                        + sums[i + 3, j, r] * sums[i + 3, k, r]
                        + sums[i + 4, j, r] * sums[i + 4, k, r]
                    )
            pair += 1
    for j in range(sums.shape[1]):
        for r in range(LANES):
            sums[0, j, r] = sums[PIECE, j, r]


def walk(step: Function, fingerprint: str) -> Function:
    """The loop over rows around the step of a loss."""

    def walk_lanes(rows, stream, lanes):  # type: ignore[no-untyped-def]
        fingerprint  # noqa: B018  (part of the disk cache's key)
        for first in range(0, rows.steps.shape[0], PIECE):
            for at in range(PIECE):
                i = first + at
                move_features(rows, i, stream, lanes)
                step(rows, i, stream, lanes)
                move_theta(i, at, rows.ages[i], stream, lanes)
            add_block_sums(rows.ages[first : first + PIECE], lanes.block_sums, lanes.cross, lanes.scatter)

    return walk_lanes



def walk_linear() -> Function:
    """The compiled loop for the squared loss: `loop(rows, stream, lanes)`."""
    return specialise(walk, linear_step)


def walk_logistic() -> Function:
    """The compiled loop for the logistic loss."""
    return specialise(walk, logistic_step)
