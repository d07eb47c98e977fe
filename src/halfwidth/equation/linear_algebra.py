"""Solutions of small dense systems, and what is left where they have none.

A symmetric non-negative A is brought to unit diagonal first, R = D A D with D = diag(A)^-1/2, so that columns in any
units are judged alike. LAPACK works in the memory of R, of which it takes the transpose: matrices of thousands of
columns are copied once. The *whitening* C of A has C'AC = I: C = L^-T from the Cholesky factor of a regular A, on the
eigenvectors with eigenvalues above `SINGULAR` otherwise; the other eigenvectors span what the rows do not determine.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from halfwidth.errors import Diverged, NotIdentified
from halfwidth.kernels.arrays import Vector

SINGULAR = 1e-12
"""Eigenvalues of the scaled matrix below this share of the largest are taken for zero."""


class Whitening(NamedTuple):
    """C (d, k) with C'AC = I, unit vectors (d, d - k) that span the null space of R, and the diagonal of D."""

    C: Vector
    null: Vector
    D: Vector


def solution(matrix: Vector, right_side: Vector) -> Vector:
    """matrix^-1 right_side for any square matrix; raises `NotIdentified` where it is singular or not finite."""
    try:
        with np.errstate(all="ignore"):
            found = np.linalg.solve(matrix, right_side)
    except np.linalg.LinAlgError:
        found = np.full_like(right_side, np.nan)
    if not np.isfinite(found).all():
        raise NotIdentified(
            "the rows so far do not determine theta: their mean Hessian is singular or not finite. Drop constant or "
            "collinear columns, scale the columns to about one, or start nearer to the solution (theta_0)",
            "singular",
        )
    return np.asarray(found)


def inverse(matrix: Vector) -> Vector:
    """The inverse of any square matrix; raises `NotIdentified` where there is none."""
    return solution(matrix, np.eye(len(matrix)))


def solve_spd(Q: Vector, g: Vector) -> Vector:
    """Q^-1 g for a symmetric non-negative Q brought to unit diagonal; directions without curvature get zero."""
    from scipy.linalg.lapack import dposv

    d = _unit_scale(Q)
    rhs = (g.T * d).T
    factor, x, info = dposv(scaled(Q, d).T, rhs, lower=1, overwrite_a=1)
    if info == 0 and np.min(np.diag(factor)) ** 2 > SINGULAR:
        return np.asarray((x.T * d).T)
    values, vectors = _eigen(scaled(Q, d))
    keep = values > SINGULAR * max(values[-1], 1e-300)
    V = vectors[:, keep]
    return np.asarray(((V / values[keep] @ (V.T @ rhs)).T * d).T)


def whitening(A: Vector) -> Whitening:
    """C with C'AC = I on what the symmetric non-negative A determines, and a basis of the rest."""
    from scipy.linalg.lapack import dpotrf, dtrtri

    d = _unit_scale(A)
    L, info = dpotrf(scaled(A, d).T, lower=1, clean=1, overwrite_a=1)
    if info == 0 and np.min(np.diag(L)) ** 2 > SINGULAR:
        C = dtrtri(L, lower=1, overwrite_c=1)[0].T
        C *= d[:, None]
        return Whitening(np.asarray(C), np.empty((len(A), 0)), d)
    values, vectors = _eigen(scaled(A, d))
    keep = values > SINGULAR * max(values[-1], 1e-300)
    C = d[:, None] * vectors[:, keep] / np.sqrt(values[keep])
    return Whitening(np.asarray(C), np.asarray(vectors[:, ~keep]), d)


def scaled(A: Vector, d: Vector) -> Vector:
    """D A D, in memory of its own."""
    R = A * d[:, None]
    R *= d
    return np.asarray(R)


def with_diagonal(A: Vector, more: Vector) -> Vector:
    """A plus a diagonal matrix, in memory of its own."""
    total = A.copy()
    total.flat[:: len(A) + 1] += more
    return np.asarray(total)


def _eigen(R: Vector) -> tuple[Vector, Vector]:
    """Eigenvalues and vectors of a symmetric matrix; `Diverged` where it holds numbers that are none."""
    try:
        values, vectors = np.linalg.eigh(R)
    except np.linalg.LinAlgError as error:
        raise Diverged("the sums of the equation are not finite; look for extreme values in the rows") from error
    return values, vectors


def _unit_scale(Q: Vector) -> Vector:
    diagonal = np.diag(Q)
    return np.asarray(1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0)))
