"""The batch jackknife for hundreds to thousands of coefficients, one matrix at a time.

The same as `halfwidth.equation.errors`, without the arrays of K d x d matrices that it works on. With M_b = (A -
H_b)^-1, from the Cholesky factor of A - H_b brought to unit diagonal,

    u_b = M_b r_b,   share_b(v) = 1 - v'A^-1 v / v'M_b v,   Gamma_bb(v) = v'M_b v - v'A^-1 v,

and degrees of freedom from the diagonal of Gamma alone, (sum Gamma_bb)^2 / sum Gamma_bb^2 - 1: what the off-diagonal
terms of K equal batches take away is one. A kernel reduces them in the ratio in which it does for equal batches. Where
a factor does not exist, all that is known of some direction is in that batch: a slight ridge shows which, as their
share is then one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from halfwidth.equation.equation import Equation
from halfwidth.equation.errors import reach_of, unseen
from halfwidth.equation.linear_algebra import Whitening, whitening
from halfwidth.inference.longrun import kernel_degrees_of_freedom, kernel_weights, toeplitz_product
from halfwidth.kernels.arrays import Vector

WIDE = 512
"""More coefficients than this are wide."""
_SAME = 1e-6
"""Largest difference of scaled matrices that single precision makes."""
_RIDGE, _LONE = 1e-9, 1.0 - 1e-6


@dataclass(frozen=True)
class WideErrors:
    """Errors of the directions that were given when it was made."""

    merged: ClassVar[int] = 1
    influences: Vector
    information: Vector
    """What each batch knows about the directions (K, m)."""
    whitened: Whitening
    largest_share: Vector
    df: Vector
    bandwidth: float

    @property
    def batches(self) -> int:
        return len(self.influences)

    def covariance(self, directions: Vector) -> Vector:
        """Of the directions (m, d) times the root."""
        u = self.influences @ directions.T
        V = u.T @ toeplitz_product(kernel_weights(len(u), self.bandwidth), u)
        V += V.T
        V *= 0.5
        return np.asarray(V)

    def degrees_of_freedom(self, directions: Vector) -> Vector:
        """Of the directions that were given when it was made."""
        return self.df

    def shares(self, directions: Vector) -> Vector:
        """The largest share of one batch in the information about each of them."""
        return self.largest_share

    def undetermined(self, directions: Vector) -> NDArray[np.bool_]:
        """Which of them the rows do not determine, or only those of one batch."""
        return np.asarray(unseen(self.whitened, directions) | (self.largest_share > _LONE))


def wide_errors(
    equation: Equation,
    residuals: Vector,
    curvature: Vector,
    penalty: Vector,
    directions: Vector,
    *,
    independent: bool = False,
) -> WideErrors:
    """Errors of the directions (m, d).

    The arguments are those of `jackknife_errors`, of the penalty the diagonal, and the information without it.
    """
    whitened = whitening(curvature, penalty)
    bandwidth = 0.0 if independent else reach_of(residuals, whitened).bandwidth
    K = len(equation.rows)
    A = np.diag(penalty)  # and the curvature that the batches add up to
    for H in equation.A:
        A += H
    d = 1.0 / np.sqrt(np.maximum(np.diag(A), 1e-300))
    same = all((np.abs(gap) * d * own <= _SAME).all() for gap, own in zip(_gaps(A, curvature, penalty), d, strict=True))
    work = A.copy()
    forms = _Forms(directions, d)
    whole = forms(_inverse(work, d))
    influences = np.empty((K, len(A)))
    gamma, shares = np.empty((K, len(directions))), np.zeros(len(directions))
    for b, H in enumerate(equation.A):
        np.subtract(A, H, out=work)
        M = _inverse(work, d)
        influences[b] = d * product(M, d * residuals[b])
        without = forms(M)
        gamma[b] = np.maximum(without - whole, 0.0)
        shares = np.maximum(shares, 1.0 - whole / np.maximum(without, 1e-300))
    if not same:
        influences = influences @ A @ whitened.C @ whitened.C.T
    squares = np.square(gamma).sum(axis=0)
    df = np.square(gamma.sum(axis=0)) / np.where(squares > 0.0, squares, np.inf) - 1.0
    if bandwidth > 0.0:
        df = df * kernel_degrees_of_freedom(K, bandwidth) / (K - 1.0)
    return WideErrors(influences, gamma, whitened, shares, np.maximum(df, 0.0), bandwidth)


def _gaps(A: Vector, curvature: Vector, penalty: Vector) -> Iterator[Vector]:
    """The rows of A less those of the curvature with the penalty on its diagonal."""
    for j, (one, other) in enumerate(zip(A, curvature, strict=True)):
        gap = one - other
        gap[j] -= penalty[j]
        yield gap


def _inverse(A: Vector, d: Vector) -> Vector:
    """The lower triangle of (D A D)^-1, in the memory of A; with a slight ridge where there is none."""
    from scipy.linalg.lapack import dpotrf, dpotri

    A *= d[:, None]
    A *= d
    R, diagonal = A.T, np.diag(A).copy()  # symmetric: of the transpose LAPACK needs no copy
    factor, info = dpotrf(R, lower=1, clean=0, overwrite_a=1)
    if info != 0 or np.min(np.diag(factor)) ** 2 < _RIDGE:
        for j in range(len(R)):  # the triangle that was overwritten, from the other one
            R[j + 1 :, j] = R[j, j + 1 :]
        np.fill_diagonal(R, diagonal + _RIDGE)
        factor, info = dpotrf(R, lower=1, clean=0, overwrite_a=1)
    return np.asarray(dpotri(factor, lower=1, overwrite_c=1)[0])


class _Forms:
    """v'M v for the rows v, each scaled by D, and M by its lower triangle; rows with one entry cost nothing."""

    def __init__(self, rows: Vector, d: Vector) -> None:
        used = rows != 0.0
        self.at, self.single = used.argmax(axis=1), used.sum(axis=1) == 1
        self.squares = np.square(np.take_along_axis(rows, self.at[:, None], axis=1)[:, 0] * d[self.at])
        self.several = rows[~self.single] * d

    def __call__(self, M: Vector) -> Vector:
        found: Vector = self.squares * np.diag(M)[self.at]
        found[~self.single] = [v @ product(M, v) for v in self.several]
        return found


def product(M: Vector, v: Vector) -> Vector:
    """M v for a symmetric M that is known by its lower triangle."""
    from scipy.linalg.blas import dsymv

    return np.asarray(dsymv(1.0, M, v, lower=1))
