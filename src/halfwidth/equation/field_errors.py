"""Errors of the root of a field that is not the gradient of a loss: its matrices H_b are not symmetric.

As in `halfwidth.equation.jackknife`, deleting batch b moves the root by (A - H_b)^-1 r_b. With rows and columns of A
scaled, its singular values give L (k, d) and C (d, k) with L A C = I on what the rows determine, and

    X_b = L H_b C,   N_b = (I - X_b)^-1,   w = C'v for a direction v,   p_b = N_b'w,   g_b = p_b - w,
    u_b(v) = p_b'L r_b,                                the influence of batch b on v'c, deleted exactly
    F_b = (X_b X_b')^(1/2),   F = sum F_b,             what stands for the covariance of L r_b
    Gamma_bc = 1{b = c} p_b'F_b p_b - p_b'F_b g_c - g_b'F_c p_c + g_b'F g_c.

Where all H_b are symmetric and non-negative, F_b = X_b, F = I, and everything is what the jackknife has there. Degrees
of freedom rest on F_b being of the right shape, as they do on H_b there; influences and variances do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from halfwidth.equation.equation import Equation
from halfwidth.equation.errors import Errors
from halfwidth.equation.jackknife import DELETED, Along, Deletions
from halfwidth.equation.linear_algebra import SINGULAR, Whitening
from halfwidth.inference.longrun import kernel_weights, toeplitz_product
from halfwidth.inference.slow_dependence import reach
from halfwidth.kernels.arrays import Vector

_DIFFERENCED = 0.02
_SCALINGS = 10
_SAFE = 0.5


class TwoSided(NamedTuple):
    """L (k, d) and C (d, k) with L A C = I; null space and scale of the columns; the smallest scaled singular value."""

    L: Vector
    C: Vector
    null: Vector
    D: Vector
    smallest: float

    @property
    def inverse(self) -> Vector:
        """A^-1 on the directions that the rows determine."""
        return np.asarray(self.C @ self.L)


def two_sided(A: Vector) -> TwoSided:
    """From the singular values of A, with rows and columns scaled to about unit length (D. Ruiz 2001)."""
    rows, columns = np.ones(len(A)), np.ones(len(A))
    for _ in range(_SCALINGS):
        R = A * rows[:, None] * columns
        rows, columns = rows * _unit(np.linalg.norm(R, axis=1)), columns * _unit(np.linalg.norm(R, axis=0))
    U, values, Vt = np.linalg.svd(A * rows[:, None] * columns)
    kept = values > SINGULAR * max(values[0], 1e-300)
    root = np.sqrt(values[kept])
    L, C = (U[:, kept] / root).T * rows, columns[:, None] * Vt[kept].T / root
    return TwoSided(np.asarray(L), np.asarray(C), np.asarray(Vt[~kept].T), columns, float(values[-1]))


def _unit(norms: Vector) -> Vector:
    return np.asarray(1.0 / np.sqrt(np.where(norms > 0.0, norms, 1.0)))


def is_field(A: Vector) -> bool:
    """Whether batches (K, d, d), made of differences of a smooth field, are those of one that has no loss.

    Those of a gradient are symmetric up to the error of differences, far below 2%.
    """
    scale = _unit(np.abs(np.diag(A.sum(axis=0))))
    A = A * scale[:, None] * scale
    skew = 0.5 * (A - A.transpose(0, 2, 1))
    return bool(np.square(skew).sum() > _DIFFERENCED**2 * np.square(A).sum())


@dataclass(frozen=True)
class FieldDeletions(Deletions):
    """As `Deletions`, with s = L r_b, N_b not symmetric and no M; F stands for the covariances of s (K, k, k)."""

    F: Vector

    @classmethod
    def of_field(cls, A: Vector, residuals: Vector, sides: TwoSided) -> FieldDeletions:
        """From the batches' own matrices (K, d, d) and their residuals (K, d)."""
        X = sides.L @ A @ sides.C
        U, values, _ = np.linalg.svd(X)
        F = (U * values[:, None, :]) @ U.transpose(0, 2, 1)
        N, lone = _inverses(X)
        return cls(sides.C, X[:0].copy(), sides.C @ N, residuals @ sides.L.T, sides.C @ lone, F)

    def along(self, directions: Vector) -> FieldAlong:
        """What deletions do along the directions (m, d)."""
        return FieldAlong(directions @ self.C, directions @ self.P, self.s, self.is_lone(directions), self.F)

    def degrees_of_freedom(self, directions: Vector, bandwidth: float) -> Vector:
        """df of each direction (m, d); the forms of symmetric N_b do not serve."""
        return self.along(directions).degrees_of_freedom(bandwidth)


@dataclass(frozen=True)
class FieldAlong(Along):
    """As `Along`, with p_b = N_b'w and F."""

    F: Vector

    @cached_property
    def information(self) -> Vector:
        """p_b'F_b p_b for the directions, (K, m)."""
        return np.asarray(np.einsum("bmk,bmk->bm", self.p, self.p @ self.F))

    def degrees_of_freedom(self, bandwidth: float) -> Vector:
        """df of each direction, for the kernel of this bandwidth, in batches."""
        kernel = kernel_weights(len(self.p), bandwidth)
        return np.array([self._df(w, self.p[:, j], kernel) for j, w in enumerate(self.w)])

    def _df(self, w: Vector, p: Vector, kernel: Vector) -> float:
        # Gamma = diag(D) + U M U' with U = (g, F p) and M = ((F, -I), (-I, 0)).
        Fp = np.einsum("bkl,bl->bk", self.F, p)
        D, k = np.einsum("bk,bk->b", p, Fp), len(w)
        U = np.concatenate([p - w, Fp], axis=1)
        WU = toeplitz_product(kernel, U)
        M = np.zeros((2 * k, 2 * k))
        M[:k, :k] = self.F.sum(axis=0)
        M[:k, k:] = M[k:, :k] = -np.eye(k)
        inside = M @ (U.T @ WU)
        first = kernel[0] * D.sum() + np.trace(inside)
        second = D @ toeplitz_product(kernel**2, D[:, None])[:, 0]
        second += 2.0 * np.sum(M * (WU.T @ (WU * D[:, None]))) + np.sum(inside * inside.T)
        return float(first**2 / second) if first > 0.0 and second > 0.0 else 0.0


def _inverses(X: Vector) -> tuple[Vector, Vector]:
    """(I - X_b)^-1 for every batch, pseudo-inverses where there is none, and the null vectors (k, m) of those."""
    k = X.shape[1]
    E, N, lone = np.eye(k) - X, np.empty_like(X), [np.empty((k, 0))]
    safe = np.einsum("bij,bij->b", X, X) < _SAFE**2
    N[safe] = np.linalg.inv(E[safe])
    for b in np.flatnonzero(~safe).tolist():
        left, size, right = np.linalg.svd(E[b])
        kept = size > DELETED
        N[b] = right[kept].T / size[kept] @ left[:, kept].T
        lone.append(right[~kept].T)
    return N, np.concatenate(lone, axis=1)


def field_errors(equation: Equation, residuals: Vector) -> Errors:
    """Errors for batches in time order; see `halfwidth.equation.errors.jackknife_errors`."""
    sides = two_sided(equation.A.sum(axis=0))
    found = reach(residuals @ sides.inverse.T)
    deletions = FieldDeletions.of_field(equation.A, residuals, sides)
    return Errors(deletions, Whitening(sides.C, sides.null, sides.D), found.bandwidth, 1, level=found.level)
