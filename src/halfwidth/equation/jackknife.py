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
MANY = 128
"""So many directions at once are worth forms of their own."""
DELETED = 1e-9
"""An eigenvalue of E_b below this: the direction is known from batch b alone."""
TAKES_PART = 1e-6
_SAFE = 0.5
_SURE, _LEAST_RATIO = -5.0, 1e-3
"""Half the logarithm of det E_b, and the least ratio of diagonals, above which no eigenvalue is near `DELETED`."""
_SMALL = 16
"""Up to so many coefficients NumPy's solution of many systems at once takes less time than a call for each."""
_WIDE = 512
_AT_ONCE = 2**15
"""So many numbers at a time: memory that is used again and stays in the processor's cache."""


@dataclass(frozen=True)
class Deletions:
    """The p_b of all coordinates (K, d, k), the residuals C'r_b (K, k), and directions known from one batch alone.

    M holds C'H_b C for every batch (K, k, k) where forms may be made of them, and nothing otherwise.
    """

    C: Vector
    M: Vector
    P: Vector
    s: Vector
    lone: Vector
    forms: dict[float, FreedomForms] = field(default_factory=dict, kw_only=True)

    @classmethod
    def of(cls, A: Vector, residuals: Vector, whitened: Whitening) -> Deletions:
        """From the batches' own matrices (K, d, d) and their residuals (K, d)."""
        C = np.ascontiguousarray(whitened.C)
        if FreedomForms.fit(C.shape[1]) or not whitened.regular or len(C) > _WIDE:
            M = _inside(A, C)
            P, lone = solutions(M, C)
            return cls(C, M if FreedomForms.fit(C.shape[1]) else M[:0].copy(), P, residuals @ C, C @ lone)
        P, sure = _without(A, C)
        M = _inside(A[~sure], C)
        P[~sure], lone = solutions(M, C)
        return cls(C, M[:0].copy(), P, residuals @ C, C @ lone)

    def influences(self, directions: Vector) -> Vector:
        """u_b(v) for the directions (m, d), one in each column (K, m)."""
        return self.along(directions).influences

    def shares(self, directions: Vector) -> Vector:
        """The largest share of one batch in the information about each direction."""
        return self.along(directions).shares

    def degrees_of_freedom(self, directions: Vector, bandwidth: float) -> Vector:
        """df of each direction (m, d), for the kernel of this bandwidth, in batches."""
        k = self.C.shape[1]
        if len(directions) < MANY or not FreedomForms.fit(k):
            return self.along(directions).degrees_of_freedom(bandwidth)
        if bandwidth not in self.forms:
            self.forms[bandwidth] = FreedomForms.of(solutions(self.M, np.eye(k))[0], bandwidth)
        w = directions @ self.C
        return self.forms[bandwidth].degrees_of_freedom((w * _to_about_one(w)[:, None]).T)

    def along(self, directions: Vector) -> Along:
        """What deletions do along the directions (m, d)."""
        every = directions.shape == (len(self.C),) * 2 and bool((directions == np.eye(len(self.C))).all())
        p = self.P if every else directions @ self.P
        return Along(directions @ self.C, p, self.s, self.is_lone(directions))

    def is_lone(self, directions: Vector) -> NDArray[np.bool_]:
        """Which directions are known from one batch alone, at least in part."""
        if not self.lone.shape[1]:
            return np.zeros(len(directions), dtype=np.bool_)
        part = np.square(directions @ self.lone).max(axis=1)
        return np.asarray(part > TAKES_PART * np.maximum(np.square(directions @ self.C).sum(axis=1), 1e-300))


@dataclass(frozen=True)
class Along:
    """w (m, k) and p_b (K, m, k) of m directions, C'r_b (K, k), and which of them are known from one batch alone."""

    w: Vector
    p: Vector
    s: Vector
    lone: NDArray[np.bool_]

    @cached_property
    def influences(self) -> Vector:
        """u_b(v), one direction in each column (K, m)."""
        return np.asarray((self.p @ self.s[:, :, None])[:, :, 0])

    @cached_property
    def information(self) -> Vector:
        """What each batch knows about the directions (K, m), without it: p_b'g_b."""
        return np.asarray(np.einsum("bmk,bmk->bm", self.p, self.p) - np.einsum("bmk,mk->bm", self.p, self.w))

    @property
    def shares(self) -> Vector:
        """The largest share of one batch in the information about each direction."""
        whole = np.square(self.w).sum(axis=1)
        without = np.einsum("mk,bmk->bm", self.w, self.p).max(axis=0)
        shares = 1.0 - whole / np.maximum(without, 1e-300)
        return np.where(self.lone, 1.0, np.where(whole > 0.0, shares, 0.0))

    def degrees_of_freedom(self, bandwidth: float) -> Vector:
        """df of each direction, for the kernel of this bandwidth, in batches; a few directions at a time."""
        K, m, k = self.p.shape
        kernel = kernel_weights(K, bandwidth)
        scale = _to_about_one(self.w)
        D = self.information * scale**2
        second = np.einsum("bm,bm->m", D, toeplitz_product(kernel**2, D))
        first = kernel[0] * D.sum(axis=0)
        step = max(1, _AT_ONCE // max(K * k, 1))
        for at in range(0, m, step):
            some = slice(at, at + step)
            g = self.p[:, some] - self.w[some]
            g *= scale[some, None]
            Wg = toeplitz_product(kernel, g.reshape(K, -1)).reshape(g.shape)
            S = g.transpose(1, 2, 0) @ Wg.transpose(1, 0, 2)
            first[some] -= np.einsum("mkk->m", S)
            second[some] += np.einsum("mkl,mkl->m", S, S)
            second[some] -= 2.0 * np.einsum("bm,bm->m", D[:, some], np.einsum("bmk,bmk->bm", Wg, Wg))
        usable = (first > 0.0) & (second > 0.0)
        return np.asarray(np.where(usable, first**2 / np.where(usable, second, 1.0), 0.0))


def _to_about_one(w: Vector) -> Vector:
    """Powers of two for the directions: degrees of freedom do not depend on their size, but fourth powers overflow."""
    return np.asarray(np.ldexp(1.0, -np.frexp(np.abs(w).max(axis=1, initial=0.0))[1]))


def _inside(A: Vector, C: Vector) -> Vector:
    """C'A_b C of every batch (K, k, k)."""
    K, (d, k) = len(A), C.shape
    M = np.empty((K, k, k))
    for at in range(0, K, step := max(1, _AT_ONCE // max(d * d, 1))):
        some = slice(at, at + step)
        inside = C.T @ (A[some].reshape(-1, d) @ C).reshape(len(A[some]), d, k)
        np.add(inside, inside.transpose(0, 2, 1), out=M[some])
        M[some] *= 0.5
    return M


def _without(A: Vector, C: Vector) -> tuple[Vector, NDArray[np.bool_]]:
    """C E_b^-1 = (A - A_b)^-1 C'^-1 by one Cholesky factor per batch, for a regular A, and where that is sure.

    If A_b has no negative eigenvalue those of E_b are at most 1, and the smallest is at least their product, which is
    that of the squared ratios of the factors' diagonals.
    """
    from scipy.linalg.lapack import dposv

    root = np.linalg.inv(C).T
    total, scale = root @ root.T, np.abs(np.diag(C))
    P, sure = np.empty((len(A), *C.shape)), np.zeros(len(A), dtype=np.bool_)
    for b, own in enumerate(A):
        factor, P[b], failed = dposv((total - own).T, root, lower=1, overwrite_a=1)
        ratios = np.diag(factor) * scale
        sure[b] = not failed and ratios.min() > _LEAST_RATIO and np.log(ratios).sum() > _SURE
    return P, sure


def solutions(M: Vector, right: Vector) -> tuple[Vector, Vector]:
    """E_b^-1 of E_b = I - M_b times every row of the right side (m, k), and null vectors of the E_b (k, n).

    Of (K, m, k) numbers; by pseudo-inverses where there is no inverse.
    """
    from scipy.linalg.lapack import dposv

    K, k = M.shape[:2]
    found, lone = np.empty((K, *right.shape)), [np.empty((k, 0))]
    for at in range(0, K, step := max(1, _AT_ONCE // max(k * k, 1))):
        E, into = np.negative(M[at : at + step]), found[at : at + step]
        safe = _small(E) if k <= _WIDE else np.zeros(len(E), dtype=np.bool_)
        E.reshape(len(E), -1)[:, :: k + 1] += 1.0
        if k <= _SMALL:
            into[safe] = np.linalg.solve(E[safe], right.T).transpose(0, 2, 1)
        else:
            for b in np.flatnonzero(safe).tolist():
                into[b] = dposv(E[b].T, right.T, lower=1, overwrite_a=1)[1].T
        for b in np.flatnonzero(~safe).tolist():
            values, vectors = np.linalg.eigh(E[b])
            kept = values > DELETED
            into[b] = (right @ vectors[:, kept]) / values[kept] @ vectors[:, kept].T
            lone.append(vectors[:, ~kept])
    return found, np.concatenate(lone, axis=1)


def _small(M: Vector) -> NDArray[np.bool_]:
    """Which matrices surely have eigenvalues below `_SAFE`, by the Frobenius norm of the matrix or of its square."""
    small: NDArray[np.bool_] = np.einsum("bij,bij->b", M, M) < _SAFE**2
    for b in np.flatnonzero(~small).tolist():
        small[b] = np.square(M[b] @ M[b]).sum() < _SAFE**4
    return small
