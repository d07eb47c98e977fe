"""The root of the equation of given rows, and what it is uncertain by beside the noise of the rows.

The root of the sums is corrected for what expansions leave out, as a sample of rows shows it (`row_sample`). Two errors
of it are none of the rows' noise: that of the sample, and that of rounding. With A the sum of Hessians, known to about
`ROUNDED` of each entry, and x the distance of the root from what the sums are relative to, the right side is off by
`ROUNDED` (sum_k A_jk^2 x_k^2)^(1/2) in entry j. That is nothing, unless columns are nearly collinear (a large mean
beside a small spread) and theta_0 is far from the root; begun at the estimate, a second pass is free of it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from halfwidth.equation import BatchStore
from halfwidth.equation.field_errors import two_sided
from halfwidth.equation.linear_algebra import whitening
from halfwidth.equation.wide_errors import WIDE
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto.field import Field
from halfwidth.learners.auto.row_sample import RowSample

ROUNDED = 1e-15
_ROUNDS, _SETTLED, _NEAR = 12, 1e-6, 1e-3
_MOST_BENT = 0.2


class Root(NamedTuple):
    """What the rows so far say: the centre, what its correction is uncertain by, and whether that converged."""

    centre: Vector
    correction_error: Vector
    converged: bool


def linear_root(store: BatchStore, without_loss: bool) -> tuple[Vector, Vector]:
    """The root of the sums, and the inverse of their curvature on the directions that the rows determine."""
    inverse = _inverse(store.curvature(), without_loss)
    return store.reference + inverse @ store.score(), inverse


def _inverse(A: Vector, without_loss: bool) -> Vector:
    if without_loss:
        inverse = two_sided(A).inverse
    else:
        C = whitening(0.5 * (A + A.T)).C
        inverse = C @ np.linalg.solve(C.T @ A @ C, C.T)
    hidden = ~A.any(axis=0)  # a column that no row has shown stays where it is, to the last digit
    inverse[hidden] = inverse[:, hidden] = 0.0
    return np.asarray(inverse)


def corrected_root(store: BatchStore, without_loss: bool, sample: RowSample | None, field: Field) -> Root:
    """The root of the rows' own equation: that of the sums, corrected by the sample if there is one."""
    linear, inverse = linear_root(store, without_loss)
    if sample is None:
        return Root(linear, _rounding(store, inverse, linear), True)
    centre, before, variance, converged = linear, math.inf, np.zeros(len(linear)), True
    for _ in range(_ROUNDS):
        left, spread = sample.remainder(field, centre)
        variance = np.maximum(np.diag(inverse @ spread @ inverse.T), 0.0)
        target = linear - inverse @ left
        moved = _size(target - centre, inverse, store.curvature())
        if not moved < before:
            converged = moved <= 1.0
            break
        centre, before = target, moved
        if moved <= _SETTLED:
            break
    found = Root(centre, np.hypot(np.sqrt(variance), _rounding(store, inverse, centre)), converged)
    if len(centre) > WIDE:  # too many to move batches to the root (`at_root`): errors are those of other places
        return found._replace(converged=converged and sample.bent(field, centre) <= _MOST_BENT)
    return _polished(found, store, without_loss, sample, field)


def _polished(root: Root, store: BatchStore, without_loss: bool, sample: RowSample, field: Field) -> Root:
    """By Newton steps with the Hessian at the root, where it is another than where rows were expanded."""
    centre, before = root.centre, math.inf
    for _ in range(_ROUNDS):
        turns = (turn[0] for _, turn in sample.turned(field, centre, store.curvature()))
        turned = sum(turns, np.zeros_like(store.curvature()))
        if not np.isfinite(turned).all():
            return root._replace(converged=False)
        if not turned.any():
            return root._replace(centre=centre)
        left, spread = sample.remainder(field, centre)
        inverse = _inverse(A := store.curvature() + turned, without_loss)
        step = inverse @ (store.score() - store.curvature() @ (centre - store.reference) - left)
        moved = _size(step, inverse, A)
        error = np.sqrt(np.maximum(np.diag(inverse @ spread @ inverse.T), 0.0))
        root = Root(centre, np.hypot(error, _rounding(store, inverse, centre)), moved <= _NEAR)
        if not moved < before:
            return root
        centre, before = centre + step, moved
        if moved <= _NEAR:
            return root._replace(centre=centre)
    return root


def _size(step: Vector, inverse: Vector, A: Vector) -> float:
    """Of a step, in units of the diagonal of the inverse or, if that is more, in the metric of A.

    Along a direction that one far row knows by itself, a step may matter much and be small in every coordinate.
    """
    scale = np.sqrt(np.abs(np.diag(inverse)))
    largest = np.max(np.abs(step) / np.where(scale > 0.0, scale, 1.0), initial=0.0)
    return max(float(largest), math.sqrt(abs(float(step @ A @ step))))


def _rounding(store: BatchStore, inverse: Vector, centre: Vector) -> Vector:
    """What rounding may have done to each coefficient."""
    squares = np.square(inverse) @ (np.square(store.curvature()) @ np.square(centre - store.reference))
    return np.asarray(ROUNDED * np.sqrt(squares))
