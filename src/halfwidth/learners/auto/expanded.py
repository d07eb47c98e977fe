"""Which batches an interval rests on where chunks are unlike each other and the loss is curved.

Features that come in the order of time show what they can be in the course of the stream. Until then a point is far
from where the root ends for what comes next, and an expansion there leaves out more than can be corrected. Batches know
where they were expanded: with x_j the distance of the mean point of batch j from the root, n_j its rows, m those of a
chunk and u what is not linear per unit of x'H x over a chunk (`probes`),

    u m x_j'H_j x_j / n_j

is the share of curvature that its expansion leaves out. Where it is above `NEAR` the batch counts by the square of
`NEAR` over that share; the root is solved for again, a few times. The first fifth of all rows is left out altogether:
theta, its response and its noise were least known there.

A loss that saturates, as a logistic one does, has no curvature left far out, and no distance shows there: a column that
is large in a few spells of rows may be held far from its root by points at which these rows say nothing. Three things
are left of it. The column's Hessian per row was never, in the last half of the batches, a twentieth of what it was in
some batch before; or what is left of the column is nearly collinear with others, as that of an event is, outside of it,
with a constant: its variance inflation A_jj (A^-1)_jj is above 30, A the sum of Hessians. Or the points of the batches
were, in its own coordinate, further than 1.5 standard errors from the estimate, f in the mean square by curvature, and
u m f^2 L is above a fifth, L the largest curvature per row that a chunk has shown of it: at such a distance a fifth of
that is lost, where distances lose curvature at all and do not add to it (`saturates`). Such coefficients are doubted,
those that really are collinear among them.

Weights also change what is known of a coefficient's degrees of freedom. Where a column shows in a few spells of rows,
and the estimate is off, the batches that say so most count for least: what is left is spread over more batches, and has
more degrees of freedom the further the estimate is off. Those by the batches' own Hessians (`unweighted_degrees`) vary
much less: of a loss that saturates a coefficient is `rare`, too, if it has few of them. Far points have large Hessians
under an exponential, and the weights are right there; but a coefficient's t has the smaller ones of both.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from halfwidth.equation import Equation, Sums
from halfwidth.equation.errors import Errors
from halfwidth.equation.jackknife import Deletions
from halfwidth.equation.linear_algebra import whitening
from halfwidth.errors import NotIdentified
from halfwidth.kernels.arrays import Vector

BURN_IN, NEAR = 0.2, 0.02
FADED, COLLINEAR = 0.05, 30.0
FAR, LOST = 1.5, 0.2
_TURNS = 3
_WEIGHTED = ("H", "b", "U", "R")


def late_batches(sums: Sums, began: int, rows: int) -> Sums:
    """The batches after the first fifth of all rows; estimation began at this row."""
    first = int(np.searchsorted(np.cumsum(sums.n), BURN_IN * rows - began))
    return Sums(*(array[min(first, len(sums.n) - 1) :] for array in sums))


def near_batches(sums: Sums, share: float, unit: float) -> Sums:
    """The same batches, those that were expanded far from the root with less weight.

    The root is that of data that respond by the share; `unit` is u m.
    """
    found = sums
    for _ in range(_TURNS):
        away = sums.T / sums.n[:, None] - _root(found, share)
        lost = unit * np.einsum("ki,kij,kj->k", away, sums.H, away, optimize=True) / sums.n
        found = _weighted(sums, np.minimum(1.0, NEAR / np.maximum(lost, NEAR)) ** 2)
    return found


def _root(sums: Sums, share: float) -> Vector:
    """The root in the coordinates that rows have shown; nothing is known of the others, and no Hessian asks."""
    equation = Equation.of(sums, share=share)
    shown = np.diag(equation.A.sum(axis=0)) != 0.0
    root = np.zeros(len(shown))
    with suppress(NotIdentified):  # the result refuses it, by name
        root[shown] = Equation(equation.A[:, shown][:, :, shown], equation.B[:, shown], equation.rows).solve()[0]
    return root


def _weighted(sums: Sums, weights: Vector) -> Sums:
    arrays = sums._asdict()
    for name in _WEIGHTED:
        arrays[name] = arrays[name] * weights.reshape(-1, *[1] * (arrays[name].ndim - 1))
    return Sums(**arrays)


def flat(sums: Sums) -> NDArray[np.bool_]:
    """Which coefficients may be held where the loss is flat, by all batches."""
    size = np.abs(np.diagonal(sums.H, axis1=1, axis2=2)) / sums.n[:, None]
    faded = size[len(size) // 2 :].max(axis=0) < FADED * size.max(axis=0)
    A = sums.H.sum(axis=0)
    shown = np.flatnonzero(np.diag(A) != 0.0)
    scale = np.sqrt(np.abs(np.diag(A)[shown]))
    correlation = A[np.ix_(shown, shown)] / np.outer(scale, scale)
    collinear = np.zeros(len(A), dtype=bool)
    collinear[shown] = np.diag(np.linalg.pinv(correlation)) > COLLINEAR
    return np.asarray(faded | collinear)


def far(sums: Sums, root: Vector, errors: Vector, largest: Vector) -> NDArray[np.bool_]:
    """Which coefficients rest on batches that were expanded too far from the root, in their own coordinate.

    `largest` is u m times the largest curvature per row of each column.
    """
    curvature = np.maximum(np.diagonal(sums.H, axis1=1, axis2=2), 0.0)
    distance = (curvature * np.square(sums.T / sums.n[:, None] - root)).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        distance /= curvature.sum(axis=0)
        return np.asarray((distance > (FAR * errors) ** 2) & (distance * largest > LOST))


def unweighted_degrees(sums: Sums, errors: Errors, freedom: float) -> Vector:
    """The degrees of freedom of the coefficients if every batch counts in full, for the kernel of these errors.

    The response leaves `freedom` of them to a coefficient that is known by all rows.
    """
    equation = Equation(0.5 * (sums.H + np.swapaxes(sums.H, 1, 2)), sums.b, sums.n)
    while len(equation.rows) > errors.batches:
        equation = equation.in_pairs()
    shown = np.flatnonzero(np.diag(equation.A.sum(axis=0)) != 0.0)
    A = equation.A[:, shown][:, :, shown]
    deletions = Deletions.of(A, np.zeros(A.shape[:2]), whitening(A.sum(axis=0)))
    found = np.full(sums.b.shape[1], np.inf)
    df = deletions.degrees_of_freedom(np.eye(len(shown)), errors.bandwidth)
    found[shown] = df / (1.0 + df / freedom)
    return found
