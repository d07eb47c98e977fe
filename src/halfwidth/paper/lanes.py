"""Many replicates of the paper's streams at once: capped SGD and overlapping batch means, one replicate per lane.

A row of one replicate is a few dozen operations that wait for each other. Here LANES independent replicates take every
step together: the last axis of every array is the replicates', and the innermost loops, which the compiler turns into
vector instructions, run along it.

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
| V, lower triangle        | `scatter`                                   |
| P                        | `cross`                                     |
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.compile import kernel

LANES = 40
PIECE = 32  # rows between two additions to V: their block sums are still in the processor's cache


class Stream(NamedTuple):
    """What a stream and its loss are; `ridge` is 0 with the squared loss."""

    logistic: bool
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
    factor: Vector  # (LANES,), scratch: u'theta, then the factor of u in the gradient
    signal: Vector  # (LANES,), scratch: u'theta_r
    step: Vector  # (LANES,), scratch: |u|^2, then the step

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


@kernel
def walk(rows: Rows, stream: Stream, lanes: Lanes) -> None:
    """Take all rows, PIECE at a time: the step of every row, then the products of the piece's block sums."""
    u, theta, sums = lanes.features, lanes.theta, lanes.block_sums
    factor, signal, step = lanes.factor, lanes.signal, lanes.step
    ages, dim, noise = rows.ages, theta.shape[0], rows.normals.shape[1] - 1
    for first in range(0, rows.steps.shape[0], PIECE):
        for at in range(PIECE):
            i = first + at
            for r in range(LANES):
                factor[r] = signal[r] = step[r] = 0.0
            for j in range(dim):
                target = stream.theta_r[j]
                for r in range(LANES):
                    fresh = rows.normals[i, 1 + j, r] + stream.epsilon * rows.normals[i, 0, r] * theta[j, r]
                    x = (1.0 - stream.rho) * u[j, r] + stream.rho * fresh
                    u[j, r] = x
                    factor[r] += x * theta[j, r]
                    signal[r] += x * target
                    step[r] += x * x
            if stream.logistic:
                for r in range(LANES):
                    e, f = math.exp(-abs(signal[r])), math.exp(-abs(factor[r]))
                    label = 1.0 if rows.uniforms[i, r] * (1.0 + e) < (1.0 if signal[r] >= 0.0 else e) else 0.0
                    factor[r] = (1.0 if factor[r] >= 0.0 else f) / (1.0 + f) - label
                    step[r] = min(rows.steps[i], 1.0 / (0.25 * step[r] + stream.ridge))
            else:
                for r in range(LANES):
                    factor[r] -= signal[r] + rows.normals[i, noise, r]
                    step[r] = min(rows.steps[i], 1.0 / step[r])
            carry = 0.0 if ages[i] == 1.0 else 1.0
            for j in range(dim):
                star = stream.theta_star[j]
                if carry == 0.0:
                    for r in range(LANES):
                        lanes.total[j, r] += sums[at, j, r]
                for r in range(LANES):
                    moved = theta[j, r] - step[r] * (factor[r] * u[j, r] + stream.ridge * theta[j, r])
                    theta[j, r] = moved
                    sums[at + 1, j, r] = carry * sums[at, j, r] + (moved - star)
        pair = 0
        for j in range(dim):
            for at in range(1, PIECE + 1, 4):  # four rows at a time, so that V is read and written once for all four
                a, b, c, d = ages[first + at - 1], ages[first + at], ages[first + at + 1], ages[first + at + 2]
                for r in range(LANES):
                    left = a * sums[at, j, r] + b * sums[at + 1, j, r]
                    lanes.cross[j, r] += left + (c * sums[at + 2, j, r] + d * sums[at + 3, j, r])
            for k in range(j + 1):
                for at in range(1, PIECE + 1, 4):
                    for r in range(LANES):
                        left = sums[at, j, r] * sums[at, k, r] + sums[at + 1, j, r] * sums[at + 1, k, r]
                        right = sums[at + 2, j, r] * sums[at + 2, k, r] + sums[at + 3, j, r] * sums[at + 3, k, r]
                        lanes.scatter[pair, r] += left + right
                pair += 1
            for r in range(LANES):
                sums[0, j, r] = sums[PIECE, j, r]
