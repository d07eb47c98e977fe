"""The estimate corrected for what the expansions leave out, measured on the kept sample.

With F the expanded equation at all rows and m rows of the sample that stand for M m,

    G(c) = (sum H + P) (c - c_0) + M sum_sample w_i remainder_i(c) z_i = 0,

solved by Newton steps from c_0, the root of F alone; if these do not settle, from the sample's own fit, where it has
one: it needs more rows than coefficients. Of wide rows they end where the curvature is not positive. The sampling
covariance of the correction is M (M - 1) A^-1 (sum w_i^2 remainder_i^2 z_i z_i') A^-1, of which a root is kept. Where
one sampled row carries over a quarter of what the sample tells about some direction, nothing is corrected: such a row
stands for M others that it need not resemble, and a sample may be separated where the rows are not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from halfwidth.equation import solve_spd
from halfwidth.equation.linear_algebra import whitening, with_diagonal
from halfwidth.equation.wide_errors import WIDE
from halfwidth.families import Loss
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.newton.kept_sample import RowSample
from halfwidth.learners.newton.newton_solver import Rows, squared
from halfwidth.learners.newton.offline_fit import fit_rows

_ROUNDS = 25
_CLOSE = 1e-8
_FAR = 1.0
LEAST_KEPT, MOST_KEPT = 0.5, 2.0
LARGEST_LEVERAGE = 0.25
"""A direction that fewer than four of the sampled rows tell about is not corrected by them."""


class Refined(NamedTuple):
    """The corrected centre, the curvature there, the root of the correction's covariance, and whether it settled."""

    centre: Vector
    curvature: Vector
    root: Vector
    """R with R'R the covariance."""
    settled: bool
    remainders: Vector
    """Of every sampled row, times its weight."""


def refine(sample: RowSample, own: Rows, loss: Loss, centre: Vector, curvature: Vector, penalty: Vector) -> Refined:
    """Correct the root `centre` of the expanded equation by the sample, whose `own` rows are given.

    A loss with a scale takes the sample's.
    """
    rows, size = sample.standing_for_all(own), len(centre)
    start = centre
    if loss.uses_scale:
        start = fit_rows(rows, loss, centre, penalty)
    if loss.rough:  # its remainder is no smaller than its score: the sample only says how far it is
        gap = (start - centre) @ curvature @ (start - centre) / sample.multiple
        settled = bool(gap < _FAR * (size + 6.0 * np.sqrt(2.0 * size) + 20.0))
        none = np.zeros((0, size))
        return Refined(centre if settled else start, curvature, none, settled, np.zeros(sample.count))
    found = _steps(sample, rows, loss, centre, curvature, penalty, start)
    if not found.settled and start is centre and len(rows) > size:
        del found
        start = fit_rows(rows, loss, centre, penalty)
        found = _steps(sample, rows, loss, centre, curvature, penalty, start)
    if size <= WIDE and _largest_leverage(rows, loss, found.centre, penalty) > LARGEST_LEVERAGE:
        return Refined(centre, curvature, np.zeros((0, size)), False, np.zeros_like(sample.expansion()[0]))
    return found


def _largest_leverage(rows: Rows, loss: Loss, centre: Vector, penalty: Vector) -> float:
    """The largest share of one sampled row in what the sample tells about any direction."""
    root = rows.root(loss.weight(rows.eta(centre), rows.y))
    shares = np.square(root @ whitening(squared(root), penalty).C)
    return float(shares.reshape(len(rows), -1).sum(axis=1).max(initial=0.0))


def _steps(
    sample: RowSample, rows: Rows, loss: Loss, centre: Vector, curvature: Vector, penalty: Vector, start: Vector
) -> Refined:
    (k, weight), size = sample.expansion(), len(centre)
    point, best, settled = start, np.inf, False
    step = np.zeros_like(centre)
    kept = None
    for _ in range(_ROUNDS):
        trial = point - step
        eta = rows.eta(trial)
        remainder = rows.weighted(loss.root(eta, rows.y) - k - loss.bend(weight, eta))
        away = trial - centre
        gradient = curvature @ away + penalty * away + rows.pulled(remainder)
        weight_here = loss.weight(eta, rows.y)
        bent = _bent(rows, weight_here, weight, curvature)
        if size > WIDE and not _regular(bent, penalty):
            break
        new_step = solve_spd(bent, gradient, penalty)
        del bent  # a large one is not kept while the next is made
        decrement = float(gradient @ new_step)
        if not 0.0 <= decrement < best:
            step = 0.5 * step
            if kept is None:
                break
            continue
        point, best, step, kept = trial, decrement, new_step, (remainder, weight_here)
        if decrement < _CLOSE:
            settled = True
            break
    if kept is None:
        eta = rows.eta(point)
        remainder = rows.weighted(loss.root(eta, rows.y) - k - loss.bend(weight, eta))
        bent = rows.gram(loss.weight(eta, rows.y))
    else:
        remainder = kept[0]
        bent = _bent(rows, kept[1], weight, curvature)
    bent, held = _within(bent, curvature, penalty)
    scores = np.sqrt(1.0 - 1.0 / sample.multiple) * rows.each(remainder)
    if len(scores) > size:  # as many as there are coefficients say the same
        scores = np.linalg.qr(scores, mode="r")
    return Refined(point, bent, solve_spd(bent, scores.T, penalty).T, settled and held, remainder)


def _bent(rows: Rows, new: Vector, old: Vector, curvature: Vector) -> Vector:
    """The curvature that the old weights have a part in, with the new ones in their place."""
    bent = (rows.Z.T * rows.weighted(new - old)) @ rows.Z if new.ndim == 1 else rows.gram(new) - rows.gram(old)
    bent += curvature
    return np.asarray(bent)


def _regular(bent: Vector, penalty: Vector) -> bool:
    from scipy.linalg.lapack import dpotrf

    return bool(dpotrf(with_diagonal(bent, penalty).T, lower=1, clean=0, overwrite_a=1)[1] == 0)


def _within(bent: Vector, curvature: Vector, penalty: Vector) -> tuple[Vector, bool]:
    """The corrected curvature, no less than half and no more than twice the expanded one; and whether it was so.

    A direction that few of the sampled rows tell about would else be left with no curvature, or a negative one.
    """
    if len(bent) > WIDE:  # too dear to look at every direction
        return (bent, True) if _regular(bent, penalty) else (curvature, False)
    A, full = with_diagonal(curvature, penalty), np.diag(penalty)
    C = whitening(A).C
    values, vectors = np.linalg.eigh(C.T @ (bent + full) @ C)
    if values.min(initial=1.0) >= LEAST_KEPT and values.max(initial=1.0) <= MOST_KEPT:
        return bent, True
    back = A @ C @ vectors
    return np.asarray(back * np.clip(values, LEAST_KEPT, MOST_KEPT) @ back.T - full), False
