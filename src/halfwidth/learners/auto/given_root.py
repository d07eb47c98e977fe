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
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto.field import Field
from halfwidth.learners.auto.row_sample import RowSample

ROUNDED = 1e-15
_ROUNDS, _SETTLED = 12, 1e-6


class Root(NamedTuple):
    """What the rows so far say: the centre, what its correction is uncertain by, and whether that converged."""

    centre: Vector
    correction_error: Vector
    converged: bool


def linear_root(store: BatchStore, without_loss: bool) -> tuple[Vector, Vector]:
    """The root of the sums, and the inverse of their curvature on the directions that the rows determine."""
    A = store.curvature()
    if without_loss:
        inverse = two_sided(A).inverse
    else:
        C = whitening(0.5 * (A + A.T)).C
        inverse = C @ np.linalg.solve(C.T @ A @ C, C.T)
    hidden = ~A.any(axis=0)  # a column that no row has shown stays where it is, to the last digit
    inverse[hidden] = inverse[:, hidden] = 0.0
    return store.reference + inverse @ store.score(), np.asarray(inverse)


def corrected_root(store: BatchStore, without_loss: bool, sample: RowSample | None, field: Field) -> Root:
    """The root of the rows' own equation: that of the sums, corrected by the sample if there is one."""
    linear, inverse = linear_root(store, without_loss)
    scale = np.sqrt(np.abs(np.diag(inverse)))
    centre, before, variance, converged = linear, math.inf, np.zeros(len(linear)), True
    if sample is not None:
        for _ in range(_ROUNDS):
            left, spread = sample.remainder(field, centre)
            variance = np.maximum(np.diag(inverse @ spread @ inverse.T), 0.0)
            target = linear - inverse @ left
            moved = float(np.max(np.abs(target - centre) / np.where(scale > 0.0, scale, 1.0), initial=0.0))
            if not moved < before:
                converged = moved <= 1.0
                break
            centre, before = target, moved
            if moved <= _SETTLED:
                break
    rounding = np.square(inverse) @ (np.square(store.curvature()) @ np.square(centre - store.reference))
    return Root(centre, np.sqrt(variance + ROUNDED**2 * rounding), converged)
