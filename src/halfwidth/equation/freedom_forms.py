"""Degrees of freedom of many directions at once: the two moments of `halfwidth.equation.jackknife` as forms in w.

With G_b = N_b - I, Q_b = N_b'G_b, R_b = sum_c W_bc G_c and s the products w_i w_j, i <= j,

    tr(W Gamma)         = w' [W_0 sum_b Q_b - sum_b G_b'R_b] w
    tr(W Gamma W Gamma) = s' [Q'W^2 Q - 2 sum_b q_b r_b' + T'T] s

where q_b and r_b are Q_b and R_b'R_b on the products (W^2 is taken entry by entry), and T maps them to the matrix
sum_b G_b w w'R_b'. Made once, they cost as many operations per direction as there are pairs of products.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from halfwidth.inference.longrun import kernel_weights, toeplitz_product
from halfwidth.kernels.arrays import Vector

MOST_PRODUCTS = 500


@dataclass(frozen=True)
class FreedomForms:
    """The first form (k, k) and the second one (q, q), on the q products of k coordinates."""

    first: Vector
    second: Vector

    @classmethod
    def of(cls, N: Vector, bandwidth: float) -> FreedomForms:
        """From N_b (K, k, k) and the bandwidth of the kernel, in batches."""
        K, k = N.shape[:2]
        kernel = kernel_weights(K, bandwidth)
        G = N - np.eye(k)
        Q = N.transpose(0, 2, 1) @ G
        R = toeplitz_product(kernel, G.reshape(K, -1)).reshape(K, k, k)
        first = kernel[0] * Q.sum(axis=0) - np.einsum("bij,bik->jk", G, R, optimize=True)
        q, r = _on_products(Q), _on_products(R.transpose(0, 2, 1) @ R)
        crossed = np.tensordot(G, R, axes=(0, 0)).transpose(0, 2, 1, 3)  # the entry i, j of sum G_b w w'R_b'
        T = _on_products(np.ascontiguousarray(crossed).reshape(k * k, k, k))
        second = q.T @ toeplitz_product(kernel**2, q) - 2.0 * q.T @ r + T.T @ T
        return cls(first, second)

    @staticmethod
    def fit(k: int) -> bool:
        """Whether the forms of k coordinates are small enough to be made."""
        return k * (k + 1) // 2 <= MOST_PRODUCTS

    def degrees_of_freedom(self, w: Vector) -> Vector:
        """df of each direction, given as w (k, m)."""
        upper = np.triu_indices(len(w))
        s = w[upper[0]] * w[upper[1]]
        first = np.einsum("im,ij,jm->m", w, self.first, w, optimize=True)
        second = np.einsum("pm,pm->m", s, self.second @ s)
        usable = (first > 0.0) & (second > 0.0)
        return np.asarray(np.where(usable, first**2 / np.where(usable, second, 1.0), 0.0))


def _on_products(matrices: Vector) -> Vector:
    """The vectors (n, q) with m'(products of w) = w'M w for each of the matrices (n, k, k)."""
    both = matrices + matrices.transpose(0, 2, 1)
    k = matrices.shape[1]
    rows, columns = np.triu_indices(k)
    return np.asarray(both[:, rows, columns] * np.where(rows == columns, 0.5, 1.0))
