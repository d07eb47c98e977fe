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

SINGULAR = 1e-13
"""Eigenvalues of the scaled matrix below this share of the largest are taken for zero."""
_LARGE = 512
_NEAR = 1e-4


class Whitening(NamedTuple):
    """C (d, k) with C'AC = I, unit vectors (d, d - k) that span the null space of R, and the diagonal of D."""

    C: Vector
    null: Vector
    D: Vector

    @property
    def regular(self) -> bool:
        """Whether C is triangular, and no column of R leaves less than `_NEAR` of itself beside those before it."""
        if self.null.shape[1] or np.tril(self.C, -1).any():
            return False
        return bool(np.min(np.square(self.D / np.diag(self.C)), initial=1.0) > _NEAR)


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


def solve_spd(Q: Vector, g: Vector, more: Vector | None = None) -> Vector:
    """Q^-1 g for a symmetric non-negative Q brought to unit diagonal; directions without curvature get zero.

    Where `more` is given, Q is the first matrix with that much more on its diagonal.
    """
    from scipy.linalg.lapack import dposv

    d = _unit_scale(Q, more)
    rhs = (g.T * d).T
    factor, x, info = dposv(scaled(Q, d, more).T, rhs, lower=1, overwrite_a=1)
    if info == 0 and np.min(np.diag(factor)) ** 2 > SINGULAR:
        return np.asarray((x.T * d).T)
    del factor
    values, V, _ = _eigen(scaled(Q, d, more))
    return np.asarray(((V @ ((V.T @ rhs).T / values).T).T * d).T)


def whitening(A: Vector, more: Vector | None = None) -> Whitening:
    """C with C'AC = I on what the symmetric non-negative A determines, and a basis of the rest; see `solve_spd`."""
    from scipy.linalg.lapack import dpotrf, dtrtri

    d = _unit_scale(A, more)
    L, info = dpotrf(scaled(A, d, more).T, lower=1, clean=1, overwrite_a=1)
    if info == 0 and np.min(np.diag(L)) ** 2 > SINGULAR:
        C = dtrtri(L, lower=1, overwrite_c=1)[0].T
        C *= d[:, None]
        return Whitening(np.asarray(C), np.empty((len(A), 0)), d)
    del L
    values, V, null = _eigen(scaled(A, d, more))
    C = V / np.sqrt(values)
    C *= d[:, None]
    return Whitening(np.asarray(C), null, d)


def scaled(A: Vector, d: Vector, more: Vector | None = None) -> Vector:
    """D A D, in memory of its own; with `more` on the diagonal of A."""
    R = A * d[:, None]
    R *= d
    if more is not None:
        R.flat[:: len(A) + 1] = (np.diag(A) + more) * d * d
    return np.asarray(R)


def with_diagonal(A: Vector, more: Vector) -> Vector:
    """A plus a diagonal matrix, in memory of its own."""
    total = A.copy()
    total.flat[:: len(A) + 1] += more
    return np.asarray(total)


def _eigen(R: Vector) -> tuple[Vector, Vector, Vector]:
    """Eigenvalues of a symmetric R above `SINGULAR`, their vectors, and those of the others; R is overwritten.

    `Diverged` where it holds numbers that are none.
    """
    try:
        values, vectors = symmetric_eigen(R)
    except (np.linalg.LinAlgError, ValueError) as error:
        raise Diverged("the sums of the equation are not finite; look for extreme values in the rows") from error
    first = int(np.sum(~(values > SINGULAR * max(values[-1], 1e-300))))
    return values[first:], vectors[:, first:], vectors[:, :first]


def symmetric_eigen(R: Vector) -> tuple[Vector, Vector]:
    """Eigenvalues, ascending, and vectors; a large R is overwritten, for LAPACK then needs a third of the memory."""
    from scipy.linalg import eigh

    if len(R) <= _LARGE:
        values, vectors = np.linalg.eigh(R)
    else:
        values, vectors = eigh(R.T, overwrite_a=True, driver="evr")
    return values, vectors


def _unit_scale(Q: Vector, more: Vector | None) -> Vector:
    diagonal = np.diag(Q) if more is None else np.diag(Q) + more
    return np.asarray(1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0)))
