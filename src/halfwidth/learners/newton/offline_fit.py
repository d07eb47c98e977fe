"""The fit to all rows at once, while the sample still holds every one of them.

The expansions are then made again at the estimate itself, so that nothing is left out of the equation, and the batches
are what an offline fit would have.
"""

from __future__ import annotations

import numpy as np

from halfwidth.equation import BatchStore, capacity_for, solve_spd
from halfwidth.equation.buckets import BucketStore
from halfwidth.equation.wide_errors import WIDE
from halfwidth.families import Loss
from halfwidth.families.linear import Linear
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.newton.chunk_sums import TIME_BATCHES, Expanded, enter_batches, enter_buckets
from halfwidth.learners.newton.column_scaling import Scaling
from halfwidth.learners.newton.kept_sample import Ids
from halfwidth.learners.newton.loss_sums import GoodnessOfFit, LossSums, chunk_loss
from halfwidth.learners.newton.newton_solver import Rows, minimise, settle_dispersion, settle_scale, squared
from halfwidth.learners.newton.snapshot import NewtonSnapshot

SETTLED = 1e-20
SLIGHT = 1e-9
"""A penalty, for a weight of one, that gives separable rows a minimum at all."""
_ROOT_STEPS = 3
_POLISHING_STEPS = 6


def offline_fit(
    rows: Rows, loss: Loss, start: Vector, penalty: Vector, scaling: Scaling, ids: Ids | None
) -> NewtonSnapshot:
    """The snapshot of these rows; `loss` keeps the scale it settles at, and `penalty` is for a weight of one."""
    total, size = rows.total_weight, len(start)
    point = fit_rows(rows, loss, start, total * penalty)
    expanded = Expanded.of(rows, loss, point)
    curvature = squared(expanded.root)
    centre = point
    if loss.rough:
        centre = _smooth_root(rows, loss, point, curvature, total * penalty)
        expanded = Expanded.of(rows, loss, centre)
        curvature = squared(expanded.root)
    gap = np.zeros(size)
    few = capacity_for(size, TIME_BATCHES)
    capacity, wide = capacity_for(size) if ids is None else few, size > WIDE
    store = BatchStore(size, length_for(len(rows), capacity), capacity, single=wide)
    enter_batches(store, rows.Z, expanded, gap)
    time = store.closed(copy=not wide)
    sums, groups = time, None
    if ids is not None:
        buckets = BucketStore(size)
        enter_buckets(buckets, rows.Z, expanded, gap, ids)
        sums, groups = buckets.closed(), buckets.groups
    return NewtonSnapshot(
        n=len(rows), weight=total, scaling=scaling, loss=loss, centre=centre, curvature=curvature,
        penalty=penalty, dispersion=dispersion(rows, loss, expanded.eta, size), sums=sums, time=time,
        reference=centre, time_correction=np.zeros(size), batch_rows=store.length, groups=groups,
        correction=np.zeros((0, size)), settled=True, anchored=True, sample=rows, complete=True,
        goodness=_goodness(rows, loss, expanded.eta),
    )  # fmt: skip


def dispersion(rows: Rows, loss: Loss, eta: Vector, size: int) -> float:
    """Sum of squared scores over sum of their mean weights: one where the family's variance is right."""
    squares = rows.weighted(loss.score(eta, rows.y) ** 2).sum()
    total = max(float(rows.weighted(loss.mean_weight(eta, rows.y)).sum()), 1e-300)
    return float(squares) / total * len(rows) / max(len(rows) - size, 1)


def _goodness(rows: Rows, loss: Loss, eta: Vector) -> GoodnessOfFit | None:
    if not loss.likelihood:
        return None
    sums = LossSums(loss)
    sums.add(loss, rows, chunk_loss(loss, eta, rows.y, rows.weight))
    return sums.at(0.0, exact=True)


def fit_rows(rows: Rows, loss: Loss, start: Vector, penalty: Vector) -> Vector:
    """The minimiser over these rows; where there is none, that with a slight penalty."""
    zero = np.zeros(len(start))
    if loss.quadratic:
        return minimise(rows, loss, start, zero, penalty, SETTLED).theta
    slight = np.full(len(start), SLIGHT * rows.total_weight)
    if loss.uses_scale:
        point = minimise(rows, Linear(), start, zero, penalty, SETTLED).theta
        return settle_scale(rows, loss, point, zero, penalty, slight, SETTLED)

    def minimum(theta: Vector) -> Vector:
        point = minimise(rows, loss, theta, zero, penalty + slight, SETTLED).theta
        polished = minimise(rows, loss, point, zero, penalty, SETTLED, most_steps=_POLISHING_STEPS)
        return polished.theta if polished.converged else point

    return settle_dispersion(rows, loss, start, minimum)


def _smooth_root(rows: Rows, loss: Loss, point: Vector, curvature: Vector, penalty: Vector) -> Vector:
    """The root of the smooth score near the minimum; the last of a few steps that get shorter."""
    best = np.inf
    for _ in range(_ROOT_STEPS):
        gradient = rows.weighted(loss.root(rows.eta(point), rows.y)) @ rows.Z + penalty * point
        step = solve_spd(curvature, gradient, penalty)
        decrement = float(gradient @ step)
        if not 0.0 < decrement < 0.5 * best:
            break
        point, best = point - step, decrement
    return point


def length_for(rows: int, capacity: int) -> int:
    """The shortest batches, a power of two, of which this many rows fit into the store."""
    return int(2 ** max(0, int(np.ceil(np.log2(max(rows, 1) / (capacity / 2))))))
