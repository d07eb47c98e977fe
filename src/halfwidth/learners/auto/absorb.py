"""One chunk, once its gradient sums are known: what it adds to the equation, and where theta goes next.

With H, g the sums over its rows of Hessian and gradient at the linearisation point, a chunk adds, relative to `origin`,

    H,   b += H (point - origin) - g + m Q,   T += m (deployed - origin)

to the open batch (`halfwidth.equation.batch_store`), T without dithers where chunks are unlike each other. While the
last move of the linearisation point is being weighed, D collects what is not linear in it, g(previous) - g(point) - H
(previous - point). Then theta moves, theta -= eta p with p = P g(theta), never past the chunk's own minimum along p:

    eta = min(eta_k, g(theta)'p / p'(H + m J) p), and 0 if g(theta)'p <= 0.

The compiled loops and `ask` / `tell` both go through these functions.

Where chunks are unlike each other a steep one counts for less, and R is collected along dithers (`probes`).

An *excursion* is a decrement q = g(theta)'p / m that is, on two chunks in a row, `FAR` times as large as usual. What is
usual follows q slowly: it grows by 5% per chunk where q is above it, and shrinks by 5% where q is below, by half where
q is less than a ten-thousandth of it.
"""

from __future__ import annotations

import numpy as np

from halfwidth.equation import Sums
from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.compile import jitable
from halfwidth.learners.auto.arguments import (
    APPEARED,
    EXCURSION,
    FINE,
    NOT_FINITE,
    Cursor,
    Moving,
    Notes,
    Plan,
    Steering,
    Told,
)
from halfwidth.learners.auto.probes import REMEMBERED, along_dither, along_theta, is_probed, trust_in

FAR = 200.0
FORGET, UNKNOWN = 2.0, 0.5
"""Per renewal of theta, how fast its trace forgets; and what it keeps where renewals are not known."""
SHORT_MOVE = 0.1
_UP, _DOWN, _FAST_DOWN = 1.05, 0.95, 0.5
_FIRST = 4
_HIDDEN = 1e-9


@jitable
def clipped_step(step: float, slope: float, bend: float) -> float:
    """The step, shortened to the minimum along it; none against the slope."""
    if slope <= 0.0:
        return 0.0
    if step * bend > slope:
        return slope / bend
    return step


@jitable
def write_points(at: int, cursor: Cursor, plan: Plan, steering: Steering, moving: Moving, told: Told) -> int:
    """Write the points of a request; returns how many there are."""
    points, dim = told.points, moving.theta.shape[0]
    for j in range(dim):
        points[0, j] = moving.theta[j]
        points[1, j] = steering.point[j]
    count = 2
    sign = plan.differences[at]
    if sign != 0.0:
        for i in range(dim):
            for j in range(dim):
                points[count, j] = steering.point[j]
            points[count, i] += sign * steering.spacing[i]
            count += 1
    if cursor.weighing:
        for j in range(dim):
            points[count, j] = steering.previous[j]
        count += 1
        if plan.differences.shape[0] > 0 and steering.spacing[0] > 0.0:
            for j in range(dim):
                points[count, j] = steering.point[j] + SHORT_MOVE * (steering.previous[j] - steering.point[j])
            count += 1
    if is_probed(at, cursor, plan):
        for j in range(dim):
            points[count, j] = steering.point[j] + plan.dithers[at, j]
            points[count + 1, j] = steering.point[j] - plan.dithers[at, j]
        count += 2
    return count


@jitable
def difference_hessian(sign: float, steering: Steering, moving: Moving, told: Told) -> None:
    """H, column by column, from the gradient sums around the point."""
    dim = moving.theta.shape[0]
    for i in range(dim):
        width = sign * steering.spacing[i]
        for j in range(dim):
            moving.H[j, i] = (told.gradients[2 + i, j] - told.gradients[1, j]) / width


@jitable
def unusual(q: float, guard: Vector) -> bool:
    """Whether theta is far out; follows what is usual. A chunk without any gradient (no reward yet) tells nothing."""
    if q == 0.0:
        return False
    guard[2] += 1.0
    far = guard[2] > _FIRST and min(q, guard[1]) > FAR * guard[0]
    guard[1] = q
    if guard[2] <= _FIRST:
        guard[0] = max(guard[0], q)
    elif q > guard[0]:
        guard[0] *= _UP
    else:
        guard[0] *= _DOWN if 1e4 * q > guard[0] else _FAST_DOWN
    return bool(far)


@jitable
def follow(deployed: Vector, renewals: float, trace: Vector, lag: Vector) -> None:
    """Move the trace on to the deployed theta, and write what it lags behind."""
    kept = np.exp(-FORGET * renewals) if renewals > 0.0 else UNKNOWN
    if np.isnan(trace[0]):
        trace[:] = deployed
    for j in range(deployed.shape[0]):
        trace[j] = kept * trace[j] + (1.0 - kept) * deployed[j]
        lag[j] = trace[j] - deployed[j]


@jitable
def steer_by_the_rest(rest: float, b: Vector, u: Vector, steering: Steering, moving: Moving) -> None:
    """What of a chunk the equation leaves out moves the next points, and is forgotten soon."""
    k = steering.share[0]
    for i in range(b.shape[0]):
        moving.far_score[i] = REMEMBERED * moving.far_score[i] + rest * (b[i] - k * u[i])
        for j in range(b.shape[0]):
            moving.far_curvature[i, j] = REMEMBERED * moving.far_curvature[i, j] + rest * (1.0 - k) * moving.H[i, j]


@jitable
def absorb(
    at: int, cursor: Cursor, plan: Plan, steering: Steering, moving: Moving, sums: Sums, notes: Notes, told: Told
) -> tuple[bool, int]:
    """Add chunk number `at` of the plan; returns whether its step was clipped, and what it ended in."""
    m, dim = cursor.filled, moving.theta.shape[0]
    batch, g, H = cursor.batch, told.gradients[1], moving.H
    bends = np.dot(H, steering.point - steering.origin)
    if cursor.weighing:
        last = 2 if plan.differences[at] == 0.0 else 2 + dim
        move = steering.previous - steering.point
        if steering.spacing[0] > 0.0:
            short = (told.gradients[last + 1] - g) / SHORT_MOVE
            left_out = (told.gradients[last] - g - short) / (1.0 - SHORT_MOVE)
        else:
            left_out = told.gradients[last] - g - np.dot(H, move)
        moving.D[:] += left_out
        moving.spread[0] += np.dot(move, left_out) ** 2
    own = np.dot(H, moving.theta + plan.dithers[at] - steering.point)
    follow(moving.theta + plan.dithers[at], m * plan.steps[at], moving.trace, notes.lag[at])
    if not cursor.probing and (steering.spacing[0] == 0.0 or plan.differences[at] != 0.0):
        sums.R[batch] += along_theta(steering, moving, told)
    trust = 1.0
    if cursor.probing:
        trust = trust_in(H, m, steering.usual)
        steer_by_the_rest(1.0 - trust, bends - g, own + bends, steering, moving)
        if is_probed(at, cursor, plan):
            sums.R[batch] += trust * along_dither(at, plan, steering.P, moving, told)
    total = sums.H[batch]
    for i in range(dim):
        dither = plan.dithers[at, i]
        deployed = moving.theta[i] + dither
        for j in range(dim):
            total[i, j] += trust * H[i, j]
        sums.b[batch, i] += trust * (bends[i] - g[i]) + m * steering.Q[i]
        sums.T[batch, i] += m * ((moving.theta[i] if cursor.probing else deployed) - steering.origin[i])
        notes.gradient[at, i] = trust * g[i]
        notes.offset[at, i] = deployed - steering.point[i]
        notes.dither[at, i] = dither
        notes.bend[at, i] = trust * own[i]
        notes.diagonal[at, i] = trust * H[i, i]
        sums.U[batch, i] += trust * (own[i] + bends[i])
    sums.n[batch] += m
    if cursor.weighing:
        sums.moved[batch] += m
    p = np.dot(steering.P, told.gradients[0])
    slope = np.dot(told.gradients[0], p)
    if not np.isfinite(slope):
        return False, NOT_FINITE
    if unusual(slope / m, moving.guard):
        return False, EXCURSION
    bend = np.dot(p, np.dot(H, p))
    if steering.share[0] != 0.0:
        bend *= 1.0 - steering.share[0]
    else:
        bend += m * np.dot(p, np.dot(steering.J, p))
    step = clipped_step(plan.steps[at], slope, bend)
    event = FINE
    for j in range(dim):
        moving.theta[j] -= step * p[j]
        if steering.P[j, j] == 0.0 and H[j, j] != 0.0:
            event = APPEARED
    return step < plan.steps[at], event
