"""The compiled loop over chunks: rows are drawn (or given), the gradient sums of the request are made, and absorbed.

The loop ends after as many chunks as the plan has, at the end of the rows, and after a chunk on which something
happened (`halfwidth.learners.auto.arguments`). Rows that do not fill a chunk wait in `source.chunk`. It
returns how many rows were used, how many wait, how many chunks were absorbed, how many of their steps were clipped, and
what the last chunk ended in.
"""

from __future__ import annotations

import numpy as np

from halfwidth.equation import Sums
from halfwidth.kernels.arrays import Function, Vector
from halfwidth.kernels.compile import jitable, kernel
from halfwidth.learners.auto.absorb import absorb, difference_hessian, write_points
from halfwidth.learners.auto.arguments import FINE, Cursor, Moving, Notes, Plan, Source, Steering, Told
from halfwidth.learners.auto.row_derivatives import Scratch

Ended = tuple[int, int, int, int, int]


@jitable
def fill_chunk(
    draw: Function, rng: np.random.Generator, theta: Vector, source: Source, used: int, filled: int
) -> tuple[int, int]:
    """Move rows into the chunk until it is full, or the rows end."""
    end = min(used + source.chunk.shape[0] - filled, source.rows.shape[0])
    while used < end:
        row = source.rows[used]
        draw(rng, theta, source.state, source.params, row)
        for j in range(row.shape[0]):
            source.chunk[filled, j] = row[j]
        used += 1
        filled += 1
    return used, filled


@jitable
def count_theta(theta: Vector, rows: int, moving: Moving) -> None:
    """Theta is deployed for so many rows."""
    for j in range(theta.shape[0]):
        moving.total[j] += rows * (theta[j] - moving.theta_0[j])


@jitable
def deploy(theta: Vector, first: int, end: int, moving: Moving, source: Source) -> None:
    """Theta is deployed for the rows from the first one to the end."""
    count_theta(theta, end - first, moving)
    if source.thetas.shape[0]:
        for i in range(first, end):
            for j in range(theta.shape[0]):
                source.thetas[i, j] = theta[j]


@jitable
def sum_gradients(gradient: Function, count: int, told: Told, source: Source, grad: Vector) -> None:
    """The gradient sums of the chunk's rows at so many points."""
    for q in range(count):
        point, total = told.points[q], told.gradients[q]
        total[:] = 0.0
        for i in range(source.chunk.shape[0]):
            gradient(point, source.chunk[i], source.params, grad)
            for j in range(grad.shape[0]):
                total[j] += grad[j]


def with_derivative(sample: Function, gradient: Function, add_up: Function, derivative: Function) -> Function:
    """The loop for problems with a Hessian or a Jacobian, which `add_up` sums (`row_derivatives`)."""

    def curved_chunks(
        rng: np.random.Generator,
        source: Source,
        plan: Plan,
        cursor: Cursor,
        steering: Steering,
        moving: Moving,
        sums: Sums,
        notes: Notes,
    ) -> Ended:
        m, dim = source.chunk.shape[0], moving.theta.shape[0]
        told = Told(np.empty((4, dim)), np.empty((4, dim)))
        grad, scratch = np.zeros(dim), Scratch(np.empty((m, dim)), np.empty((m, dim)), np.empty((dim, dim)))
        used, filled, done, clipped, event, batch = 0, cursor.filled, 0, 0, FINE, cursor.batch
        while used < source.rows.shape[0] and done < plan.steps.shape[0] and event == FINE:
            theta, first = moving.theta + plan.dithers[done], used
            used, filled = fill_chunk(sample, rng, theta, source, used, filled)
            if filled < m:
                deploy(theta, first, used, moving, source)
                break
            filled = 0
            deploy(theta, first, used - 1, moving, source)
            count = write_points(done, cursor, plan, steering, moving, told)
            sum_gradients(gradient, count, told, source, grad)
            add_up(derivative, steering.point, source.params, source.chunk, scratch, moving.H)
            here = Cursor(m, batch, cursor.length, cursor.weighing, cursor.probing)
            short, event = absorb(done, here, plan, steering, moving, sums, notes, told)
            clipped += short
            batch += sums.n[batch] >= cursor.length
            done += 1
            deploy(moving.theta, used - 1, used, moving, source)
        return used, filled, done, clipped, event

    return curved_chunks


def with_differences(sample: Function, gradient: Function) -> Function:
    """The loop for problems with a gradient only."""

    def differenced_chunks(
        rng: np.random.Generator,
        source: Source,
        plan: Plan,
        cursor: Cursor,
        steering: Steering,
        moving: Moving,
        sums: Sums,
        notes: Notes,
    ) -> Ended:
        m, dim = source.chunk.shape[0], moving.theta.shape[0]
        told = Told(np.empty((dim + 4, dim)), np.empty((dim + 4, dim)))
        grad = np.zeros(dim)
        used, filled, done, clipped, event, batch = 0, cursor.filled, 0, 0, FINE, cursor.batch
        while used < source.rows.shape[0] and done < plan.steps.shape[0] and event == FINE:
            theta, first = moving.theta + plan.dithers[done], used
            used, filled = fill_chunk(sample, rng, theta, source, used, filled)
            if filled < m:
                deploy(theta, first, used, moving, source)
                break
            filled = 0
            deploy(theta, first, used - 1, moving, source)
            count = write_points(done, cursor, plan, steering, moving, told)
            sum_gradients(gradient, count, told, source, grad)
            if plan.differences[done] != 0.0:
                difference_hessian(plan.differences[done], steering, moving, told)
            here = Cursor(m, batch, cursor.length, cursor.weighing, cursor.probing)
            short, event = absorb(done, here, plan, steering, moving, sums, notes, told)
            clipped += short
            batch += sums.n[batch] >= cursor.length
            done += 1
            deploy(moving.theta, used - 1, used, moving, source)
        return used, filled, done, clipped, event

    return differenced_chunks


@kernel
def request_points(cursor: Cursor, plan: Plan, steering: Steering, moving: Moving, told: Told) -> int:
    """`write_points` by itself, for the first chunk of a plan."""
    return int(write_points(0, cursor, plan, steering, moving, told))


@kernel
def told_chunk(
    at: int,
    cursor: Cursor,
    plan: Plan,
    steering: Steering,
    moving: Moving,
    sums: Sums,
    notes: Notes,
    told: Told,
) -> tuple[bool, int, int]:
    """`absorb` by itself; then writes the points of the plan's next chunk, if there is one, and says how many."""
    count_theta(moving.theta + plan.dithers[at], cursor.filled - 1, moving)
    if plan.differences[at] != 0.0:
        difference_hessian(plan.differences[at], steering, moving, told)
    clipped, event = absorb(at, cursor, plan, steering, moving, sums, notes, told)
    count_theta(moving.theta, 1, moving)
    count = 0
    if event == FINE and at + 1 < plan.steps.shape[0]:
        count = write_points(at + 1, cursor, plan, steering, moving, told)
    return clipped, event, count
