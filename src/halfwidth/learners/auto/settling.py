"""Whether a steered run has settled, from where its rows were expanded and from what its last half says.

Corrections for moves of the linearisation point allow for each move by itself: moves that lead the same way, from a far
start, leave out more than that. Under a loss that bends as exponentials do, early batches may also have been expanded
where their Hessian is many times that at the root: then they decide the estimate, with a small error, and may be far
off. Either is `not-settled`:

- the last linearisation point is further from the estimate than `FAR_POINT` times what a standard error is, in the
  metric of the Hessian. A point that is renewed with every 20% of the rows is about 0.4 of them away. Where the
  gradient is linear in theta it may be anywhere;
- the root of the last half of the batches differs from that of all by more than its own standard errors allow for, in
  some coefficient: Student's test, at `LEVEL` for all of them together. The difference has at most the variance of the
  root of the last half; it has half of it where batches are alike. Where they are not, in the median coefficient. A
  root of all rows that is near the mean of all deployed thetas does not rest on J; that of the last half does, where
  thetas were deployed on the other side of it: what an error of J adds is in its variance (`slope_error`).
"""

from __future__ import annotations

import math

import numpy as np

from halfwidth.equation import Equation
from halfwidth.errors import NotIdentified
from halfwidth.inference import Result
from halfwidth.inference.student_law import student_tail
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto.careful_result import shown_only
from halfwidth.learners.auto.facts import Flag

FAR_POINT, LEVEL = 1.5, 0.001


def unsettled(
    equation: Equation, result: Result, point: Vector | None, *, alike: bool = True, leverage: float = 0.0
) -> tuple[Flag, ...]:
    """The doubt about a result of these batches, if there is one; `point` is the last one, where a loss is curved.

    `alike` says whether batches are alike: where they are not, few of them may know one coefficient. `leverage` is by
    which share an error of J adds to the variance of the root of the last half.
    """
    inside, shown = shown_only(equation)
    if point is not None:
        away = _distance(inside, (result.params - point)[shown], result.covariance[np.ix_(shown, shown)])
        if away > FAR_POINT:
            text = (
                f"rows are still expanded {away:.0f} standard errors from the estimate, on the way there from a far "
                "start. Feed more rows, or start nearer to the solution (theta_0)"
            )
            return (("not-settled", text),)
    apart, chance = _late_half(inside, alike, leverage)
    if chance < LEVEL:
        text = (
            f"the last half of the rows by itself says something else, by {apart:.0f} standard errors: early rows were "
            "expanded where the loss bends otherwise, or the rows have changed. Start nearer to the solution "
            "(theta_0), or feed more rows"
        )
        return (("not-settled", text),)
    return ()


def _distance(equation: Equation, move: Vector, covariance: Vector) -> float:
    """The size of a move in standard errors, on average over coefficients."""
    A = equation.A.sum(axis=0)
    metric = 0.5 * (A + A.T)
    size, usual = float(move @ metric @ move), float(np.sum(metric * covariance)) / equation.rows.sum()
    return math.sqrt(max(size, 0.0) / usual) if usual > 0.0 else 0.0


def _late_half(equation: Equation, alike: bool, leverage: float) -> tuple[float, float]:
    """By how many of its own standard errors the root of the last half differs from that of all, and its p-value."""
    half = len(equation.rows) // 2
    late = Equation(equation.A[half:], equation.B[half:], equation.rows[half:])
    K = len(late.rows)
    try:
        root, influences = late.solve()
    except NotIdentified:  # a column that no late row shows
        return 0.0, 1.0
    errors = np.sqrt(np.square(influences).sum(axis=0) * (1.0 + leverage) * K / max(K - 1.0, 1.0))
    away = np.abs(root - equation.solve()[0])
    t = np.divide(away, errors, out=np.zeros_like(away), where=errors > 0.0)
    found, tests = (float(t.max()), len(t)) if alike else (float(np.median(t)), 1)
    return found, tests * float(student_tail(found, max(K - 1.0, 1.0)))
