"""Ask and tell: any loop in any framework drives `auto`, without a problem and without compiled functions.

    request = learner.ask()
    rows = simulate(request.theta, request.rows)
    learner.tell(request, [gradients(point, rows) for point in request.points])

`request.theta` is to be deployed while so many rows come; gradients are wanted at every one of `request.points`, on the
same rows: row by row, (p, rows, d), or summed over the rows, (p, d). A Hessian, if there is one, is the sum over the
rows at `request.points[1]`, the linearisation point; without it some requests have d points more, for differences.

As in the compiled loop, steps and dithers are planned for several chunks. What is due between chunks is done when the
last of them is told, or before someone reads the engine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.checks import check_real
from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto.arguments import FINE, Cursor, Notes, Plan, told_for
from halfwidth.learners.auto.chunks import request_points, told_chunk
from halfwidth.learners.auto.slopes import TINY
from halfwidth.learners.auto.steered import Steered
from halfwidth.problems import Problem

FEWEST_ROWS, MANY_MEANS, ALIKE = 8, 8, 3.0
"""From so many rows a request, and for so many requests in a row: a mean in place of a sum is told from a bend, unless
a request has shown before that they are alike within this factor, for such a mistake is made from the first on."""
NO_PROBLEM = "this learner has no problem, which knows about rows: drive it by ask() and tell()"


@dataclass(frozen=True, eq=False)
class Request:
    """What to do next; its arrays are read-only, for they say what the rows are held against.

    Attributes
    ----------
    theta : ndarray of shape (d,)
        The parameter to deploy while the rows come.
    points : ndarray of shape (p, d)
        Where gradients are wanted, all on the same rows.
    rows : int
        How many rows.
    """

    theta: Vector
    points: Vector
    rows: int


class Conversation:
    """Requests to, and responses for, a steered engine; one request is open at a time."""

    def __init__(self, engine: Steered) -> None:
        self.engine = engine
        self._told, self._every = told_for(engine.dim), np.ones(engine.m)
        self._open: Request | None = None
        self._ahead: tuple[Plan, Notes, Cursor] | None = None  # the plan, where it is noted, and the next chunk's batch
        self._done = self._clipped = 0  # chunks of the plan that were told, and how many of their steps were clipped
        self._count = 0  # points of the next request, once they are written
        self._means, self._mean_of = 0, ""  # requests in a row in which something looks like a mean, and what
        self._checked = engine.chunks > 0  # whether gradients and Hessians are known to be summed over the rows alike

    def ask(self) -> Request:
        """The open request, or the next one."""
        if self._open is None:
            engine, (plan, _, cursor) = self.engine, self._planned()
            if not self._count:
                self._count = request_points(cursor, plan, engine.steering, engine.moving, self._told)
            theta, points = engine.moving.theta + plan.dithers[self._done], self._told.points[: self._count].copy()
            theta.flags.writeable = points.flags.writeable = False
            self._open = Request(theta, points, engine.m)
        return self._open

    def tell(self, request: Request, gradients: ArrayLike, hessian: ArrayLike | None) -> Vector:
        """Take in what the rows of the open request say; returns where the step led, before anything else is done."""
        if request is not self._open:
            raise InputError(
                "request must be the one that ask() gave last, and be told once: this one was told before, or is of "
                "before a resume, or of another learner; ask again"
            )
        engine, (plan, notes, cursor) = self.engine, self._planned()
        sums = self._told.gradients[: len(request.points)]
        add_up(gradients, self._every, sums)
        H = None if hessian is None else checked_hessian(hessian, engine.dim)
        if engine.chunks == 0 and H is not None:
            engine.use_hessian()
            plan.differences[:] = 0.0
        if (H is None) != engine.differences:
            others = "all before it had one" if H is None else "none before it had one"
            raise InputError(f"hessian must be given with every tell, or with none from the first on; {others}")
        if H is not None:
            if not self._checked:
                self._check_sums(request, sums, H)
            engine.moving.H[:] = H
        clipped, event, self._count = told_chunk(
            self._done, cursor, plan, engine.steering, engine.moving, engine.store.sums, notes, self._told
        )
        self._open, self._done, self._clipped = None, self._done + 1, self._clipped + int(clipped)
        theta = engine.moving.theta.copy()
        if event != FINE or self._done == len(plan.steps):
            self.settle(event)
        elif engine.store.sums.n[cursor.batch] >= cursor.length:
            self._ahead = plan, notes, cursor._replace(batch=cursor.batch + 1)
        return theta

    def _check_sums(self, request: Request, sums: Vector, H: Vector) -> None:
        """Refuse means over rows in place of sums: from the first on, the other one says as many times that."""
        move, rows = request.points[0] - request.points[1], request.rows
        expected = abs(float(move.dot(H).dot(move)))
        if rows < FEWEST_ROWS or expected == 0.0:
            return
        changed = abs(float(move.dot(sums[0] - sums[1]))) / expected
        name, other = ("hessian", changed) if changed > 1.0 else ("gradients", 1.0 / max(changed, TINY))
        self._checked = other < ALIKE
        if not rows / 1.5 < other < 1.5 * rows:
            self._means, self._mean_of = 0, ""
            return
        self._means, self._mean_of = (self._means + 1 if name == self._mean_of else 1), name
        if self._means == MANY_MEANS:
            self._means -= 1
            raise InputError(
                f"{name} must be summed over the {rows} rows of the request; got what looks like a mean: gradients "
                f"change by {changed:.3g} times what the Hessian says"
            )

    def settle(self, event: int = FINE) -> None:
        """Do what is due after the chunks that were told, the last of which ended in the event."""
        done, clipped = self._done, self._clipped
        self._ahead, self._done, self._clipped, self._count = None, 0, 0, 0
        if done:
            self.engine.advance(done, clipped, event)

    @property
    def settled(self) -> bool:
        """Whether nothing is due."""
        return self._done == 0

    def _planned(self) -> tuple[Plan, Notes, Cursor]:
        """The plan, where its chunks are noted, and the batch of the next one."""
        if self._ahead is None:
            engine = self.engine
            self._ahead = engine.plan(), engine.notes.blank(), engine.cursor(engine.m)
        return self._ahead


def check_request(request: object, asked: bool) -> None:
    """Refuse what is no request, or what an earlier learner asked for."""
    if not isinstance(request, Request):
        raise InputError("request must be what ask() gave; a theta of your own is told by name, theta=...")
    if not asked:
        raise InputError("request must be the one that ask() gave last; ask first")


def add_up(gradients: ArrayLike, every: Vector, sums: Vector) -> None:
    """Write the gradient sums (p, d) of a response; raises where the shape or a number is wrong."""
    (points, dim), rows = sums.shape, len(every)
    if isinstance(gradients, (list, tuple)) and len(gradients) == points:
        arrays = [check_real("gradients", one) for one in gradients]
        if all(one.shape == (rows, dim) for one in arrays):
            gradients = [every @ one for one in arrays]  # stacked, they would be copied
    array = gradients if is_plain(gradients) else check_real("gradients", gradients)
    if array.shape == (points, rows, dim):
        np.matmul(every, array, out=sums)
    elif array.shape == (points, dim):
        sums[:] = array
    else:
        rule = f"have shape ({points}, {rows}, {dim}), or ({points}, {dim}) where they are summed over the rows"
        raise InputError.of("gradients", rule, array.shape)
    if not is_finite(sums):
        raise InputError.of("gradients", "be finite", float(sums[~np.isfinite(sums)][0]))


def is_plain(values: object) -> TypeGuard[NDArray[np.float64]]:
    """Whether these are float64 already, in an array that is not of a subclass."""
    return type(values) is np.ndarray and values.dtype == np.float64


def is_finite(array: Vector) -> bool:
    """Whether all numbers are finite: their squares add up to one that is, or overflow."""
    return math.isfinite(np.vdot(array, array)) or bool(np.isfinite(array).all())


def told_sums(gradients: ArrayLike, dim: int) -> tuple[Vector, int]:
    """The sum of row by row gradients (rows, d), and the number of rows."""
    array = check_real("gradients", gradients)
    if array.ndim != 2 or array.shape[1] != dim or not len(array):
        raise InputError.of("gradients", f"have shape (rows, {dim})", array.shape)
    if not np.isfinite(array).all():
        row, column = np.argwhere(~np.isfinite(array))[0].tolist()
        raise InputError.of("gradients", "be finite", f"{array[row, column]} in row {row}, column {column}")
    return np.asarray(array.sum(axis=0)), len(array)


def told_problem(dim: int) -> Problem:
    """The problem of a learner that is told everything."""
    return Problem(dim, _nobody_asks, row_size=1, name="told")


def is_told(problem: Problem) -> bool:
    """Whether this is the problem of a learner that is told everything."""
    return problem.gradient is _nobody_asks


def _nobody_asks(theta: Vector, row: Vector, params: Vector, grad: Vector) -> None:
    raise InputError(NO_PROBLEM)


def checked_hessian(hessian: ArrayLike, dim: int) -> NDArray[np.float64]:
    """A Hessian that the caller brings: finite, of shape (dim, dim)."""
    array = hessian if is_plain(hessian) else check_real("hessian", hessian)
    if array.shape != (dim, dim):
        raise InputError.of("hessian", f"have shape ({dim}, {dim}), summed over the rows", array.shape)
    if not is_finite(array):
        raise InputError.of("hessian", "be finite", float(array[~np.isfinite(array)][0]))
    return array
