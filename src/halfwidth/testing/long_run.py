"""What only many rows can tell of a world: whether it forgets its start, whether its truth is one, whether steps hold.

Batch means are compared with t of 4.5, which a right world passes in all but one of some 10,000 runs.
"""

from __future__ import annotations

import numpy as np

from halfwidth.errors import Diverged
from halfwidth.kernels.arrays import Vector
from halfwidth.learners import SGD, CappedSGD
from halfwidth.learners.warm_start import collect_rows
from halfwidth.problems import Problem
from halfwidth.schedules import PowerStep

Found = tuple[bool | None, str]

BATCHES = 50
FAR = 4.5


def params(world: Problem) -> Vector:
    """The parameters as an array."""
    return np.asarray(world.params, dtype=np.float64)


def draw(world: Problem, theta: Vector, rows: int, seed: int, state: Vector | None = None) -> Vector:
    """Rows drawn while theta is deployed."""
    drawn = np.full((rows, world.row_size), np.nan)
    start = np.array(world.state_0 if state is None else state, dtype=np.float64)
    collect_rows(world, np.random.default_rng(seed), theta.copy(), start, drawn)
    return drawn


def fields(world: Problem, theta: Vector, rows: Vector) -> Vector:
    """The field at theta of every row."""
    values = np.full((len(rows), world.dim), np.nan)
    for row, value in zip(rows, values, strict=True):
        world.gradient(theta, row, params(world), value)
    return values


def batch_means(values: Vector) -> Vector:
    """Means over consecutive batches of rows."""
    length = len(values) // BATCHES
    return np.asarray(values[-length * BATCHES :].reshape(BATCHES, length, -1).mean(axis=1))


def memory(world: Problem, theta: Vector, rows: int, seed: int) -> Found:
    """Whether two chains that start apart give the same mean field."""
    state = np.asarray(world.state_0, dtype=np.float64)
    if not state.size:
        return True, "it has no memory"
    ends = []
    for shift in (0.0, 1.0):
        try:
            drawn = draw(world, theta, 2 * rows, seed + 1, state + shift)
        except Exception as error:
            return None, f"cannot start elsewhere ({type(error).__name__}: {error})"
        ends.append(batch_means(fields(world, theta, drawn[rows:])))
    gap = ends[1].mean(axis=0) - ends[0].mean(axis=0)
    spread = np.sqrt((ends[0].var(axis=0, ddof=1) + ends[1].var(axis=0, ddof=1)) / BATCHES)
    t = float(np.max(np.abs(gap) / np.maximum(spread, 1e-300)))
    if np.abs(gap).max() < 1e-12 or t < FAR:
        return True, f"after {rows:,} rows a start moved by 1 makes no difference"
    return False, f"after {rows:,} rows a start moved by 1 still moves the mean field (t = {t:.1f}): no stationary law?"


def truth(world: Problem, rows: int, seed: int) -> Found:
    """Whether the mean field vanishes at the stated theta*."""
    if world.solve is None:
        return None, "no truth is stated"
    star = np.array(world.theta_star)
    if not np.isfinite(star).all():
        return None, "theta* is not finite in every coordinate"
    means = batch_means(fields(world, star, draw(world, star, 2 * rows, seed + 2)[rows:]))
    error = means.std(axis=0, ddof=1) / np.sqrt(BATCHES)
    t = np.abs(means.mean(axis=0)) / np.maximum(error, 1e-300)
    worst = int(np.argmax(t))
    if t[worst] < FAR:
        return True, f"the mean field at theta* is zero within its error (largest t {t[worst]:.1f})"
    return False, f"the mean field at theta* is not zero: coordinate {worst} has t = {t[worst]:.1f} over {rows:,} rows"


def steps(world: Problem, rows: int, seed: int) -> Found:
    """Whether SGD, capped where there is a bound, stays bounded."""
    learner = SGD if world.curvature is None else CappedSGD
    try:
        run = learner(world, step=PowerStep(0.5, 0.6), seed=seed).run(rows)
    except Diverged as error:
        return False, f"{learner.__name__} with steps 0.5 k^-0.6 diverges: {error}"
    size = float(np.abs(run.theta).max())
    reach = 1e3 * (1.0 + float(np.abs(np.asarray(world.theta_0)).max()))
    if size < reach:
        return True, f"{learner.__name__} with steps 0.5 k^-0.6 ends within {size:.2g} of zero"
    return False, f"{learner.__name__} with steps 0.5 k^-0.6 ends at {size:.2g}: is the field's sign right?"
