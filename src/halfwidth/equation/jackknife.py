"""The batch jackknife: errors that know which batches a coefficient rests on.

A column that is zero in all but a few rows rests on a few batches, and a sandwich with normal critical values is too
short there. Deleting batch b from a linear equation moves the root by exactly (A - H_b)^-1 r_b, with A = sum H_b, and
that is by one Newton step in others. So, with C'AC = I (`whitening`), all that follows works with

    E_b = I - C'H_b C,   N_b = E_b^-1,   w = C'v for a direction v,   p_b = N_b w,   g_b = p_b - w,
    u_b(v) = p_b'C'r_b,                             the influence of batch b on v'c, jackknifed (CR3)
    V(v) = sum_bc W_bc u_b u_c,                     W the weights of a kernel, the identity for groups
    Gamma_bc = 1{b = c} p_b'g_b - g_b'g_c,          the covariance of the u_b where that of r_b is H_b
    df(v) = tr(W Gamma)^2 / tr(W Gamma W Gamma).    two moments of the quadratic form

If E_b is singular, all that is known of some direction is in batch b: its coefficients are `lone`, and N_b is the
pseudo-inverse, which leaves all others right. The share of batch b in the information about v is 1 - |w|^2 / w'N_b w.

R. M. Bell and D. F. McCaffrey, Survey Methodology 28 (2002), for the degrees of freedom; J. G. MacKinnon, M. O. Nielsen
and M. D. Webb, J. Applied Econometrics 38 (2023), for the jackknife; both with a kernel over batches here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from halfwidth.equation.freedom_forms import FreedomForms
from halfwidth.equation.linear_algebra import Whitening
from halfwidth.inference.longrun import kernel_weights, toeplitz_product
from halfwidth.kernels.arrays import Vector

MOST_FLOPS = 5e7
FEWEST_KEPT = 256
MANY = 16
"""So many directions at once are worth forms of their own."""
DELETED = 1e-9
"""An eigenvalue of E_b below this: the direction is known from batch b alone."""
TAKES_PART = 1e-6
_SAFE = 0.5
_WIDE = 512
_AT_ONCE = 2**17
"""So many numbers at a time: memory that is used again and stays in the processor's cache."""


@dataclass(frozen=True)
class Deletions:
    """N_b for every batch (K, k, k), the residuals C'r_b (K, k), and directions known from one batch alone."""

    C: Vector
    N: Vector
    s: Vector
    lone: Vector
    forms: dict[float, FreedomForms] = field(default_factory=dict, kw_only=True)

    @classmethod
    def of(cls, A: Vector, residuals: Vector, whitened: Whitening) -> Deletions:
        """From the batches' own matrices (K, d, d) and their residuals (K, d)."""
        C = whitened.C
        K, k = len(A), C.shape[1]
        N, lone = np.empty((K, k, k)), [np.empty((k, 0))]
        for at in range(0, K, step := max(1, _AT_ONCE // max(A[0].size, 1))):
            inside = C.T @ A[at : at + step] @ C
            M = inside + inside.transpose(0, 2, 1)
            M *= 0.5
            N[at : at + step], alone = _inverses(M)
            lone.append(alone)
        return cls(C, N, residuals @ C, C @ np.concatenate(lone, axis=1))

    def influences(self, directions: Vector) -> Vector:
        """u_b(v) for the directions (m, d), one in each column (K, m)."""
        return self.along(directions).influences

    def shares(self, directions: Vector) -> Vector:
        """The largest share of one batch in the information about each direction."""
        return self.along(directions).shares

    def degrees_of_freedom(self, directions: Vector, bandwidth: float) -> Vector:
        """df of each direction (m, d), for the kernel of this bandwidth, in batches."""
        if len(directions) < MANY or not FreedomForms.fit(self.C.shape[1]):
            return self.along(directions).degrees_of_freedom(bandwidth)
        if bandwidth not in self.forms:
            self.forms[bandwidth] = FreedomForms.of(self.N, bandwidth)
        w = self.C.T @ directions.T
        return self.forms[bandwidth].degrees_of_freedom(w * _to_about_one(w))

    def along(self, directions: Vector) -> Along:
        """What deletions do along the directions (m, d)."""
        w = self.C.T @ directions.T
        return Along(w, self.N @ w, self.s, self.is_lone(directions))

    def is_lone(self, directions: Vector) -> NDArray[np.bool_]:
        """Which directions are known from one batch alone, at least in part."""
        if not self.lone.shape[1]:
            return np.zeros(len(directions), dtype=np.bool_)
        w = self.C.T @ directions.T
        part = np.square(directions @ self.lone).max(axis=1)
        return np.asarray(part > TAKES_PART * np.maximum(np.einsum("km,km->m", w, w), 1e-300))


@dataclass(frozen=True)
class Along:
    """w (k, m) and p_b (K, k, m) of m directions, C'r_b (K, k), and which of them are known from one batch alone."""

    w: Vector
    p: Vector
    s: Vector
    lone: NDArray[np.bool_]

    @cached_property
    def influences(self) -> Vector:
        """u_b(v), one direction in each column (K, m)."""
        return np.asarray((self.s[:, None, :] @ self.p)[:, 0])

    @cached_property
    def information(self) -> Vector:
        """What each batch knows about the directions (K, m), without it: p_b'g_b."""
        return np.asarray(np.einsum("bkm,bkm->bm", self.p, self.p) - np.einsum("bkm,km->bm", self.p, self.w))

    @property
    def shares(self) -> Vector:
        """The largest share of one batch in the information about each direction."""
        whole = np.einsum("km,km->m", self.w, self.w)
        without = np.einsum("km,bkm->bm", self.w, self.p).max(axis=0)
        shares = 1.0 - whole / np.maximum(without, 1e-300)
        return np.where(self.lone, 1.0, np.where(whole > 0.0, shares, 0.0))

    def degrees_of_freedom(self, bandwidth: float) -> Vector:
        """df of each direction, for the kernel of this bandwidth, in batches; a few directions at a time."""
        K, k, m = self.p.shape
        kernel = kernel_weights(K, bandwidth)
        scale = _to_about_one(self.w)
        D = self.information * scale**2
        second = np.einsum("bm,bm->m", D, toeplitz_product(kernel**2, D))
        first = kernel[0] * D.sum(axis=0)
        step = max(1, _AT_ONCE // max(K * k, 1))
        for at in range(0, m, step):
            some = slice(at, at + step)
            g = np.subtract(self.p[:, :, some].transpose(0, 2, 1), self.w[:, some].T, order="C")
            g *= scale[some, None]
            Wg = toeplitz_product(kernel, g.reshape(K, -1)).reshape(g.shape)
            first[some] -= np.einsum("bmk,bmk->m", g, Wg)
            second[some] += np.square(g.transpose(1, 2, 0) @ Wg.transpose(1, 0, 2)).sum(axis=(1, 2))
            second[some] -= 2.0 * np.einsum("bm,bmk,bmk->m", D[:, some], Wg, Wg)
        usable = (first > 0.0) & (second > 0.0)
        return np.asarray(np.where(usable, first**2 / np.where(usable, second, 1.0), 0.0))


def _to_about_one(w: Vector) -> Vector:
    """Powers of two for the directions: degrees of freedom do not depend on their size, but fourth powers overflow."""
    return np.asarray(np.ldexp(1.0, -np.frexp(np.abs(w).max(axis=0, initial=0.0))[1]))


def _inverses(M: Vector) -> tuple[Vector, Vector]:
    """E_b^-1 of E_b = I - M_b, pseudo-inverses where there is none, and the null vectors (k, m) of those; M is lost."""
    K, k = M.shape[:2]
    flat, lone = M.reshape(K, -1), [np.empty((k, 0))]
    safe = np.einsum("bi,bi->b", flat, flat) < _SAFE**2 if k <= _WIDE else np.zeros(K, dtype=np.bool_)
    E = np.negative(M, out=M)
    flat[:, :: k + 1] += 1.0
    if safe.all():
        return np.linalg.inv(E), lone[0]
    N = np.empty_like(E)
    N[safe] = np.linalg.inv(E[safe])
    for b in np.flatnonzero(~safe).tolist():
        values, vectors = np.linalg.eigh(E[b])
        kept = values > DELETED
        N[b] = vectors[:, kept] / values[kept] @ vectors[:, kept].T
        lone.append(vectors[:, ~kept])
    return N, np.concatenate(lone, axis=1)
