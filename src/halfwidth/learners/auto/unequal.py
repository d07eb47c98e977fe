"""What the batches' own Hessians say of batch means: few batches behind a coefficient, and rows that change slowly.

**Few batches.** A column that is zero in all but a few rows rests on the few batches that hold these, and the t of all
batches is too short there. With scores that vary as their Hessians do, batch b has the share

    s_bj = |(A^-1 H_b A^-T)_jj|,   A = sum H_b,

of the variance of coefficient j, which then has about (sum s)^2 / sum s^2 degrees of freedom (W. G. Cochran 1934; F. E.
Satterthwaite 1946). Above `WIDE` coefficients, or where A is singular, s_bj = |H_bjj|.

**Rows that change slowly.** One slope J stands for the response of all rows. With C'AC = I and n rows, N = n C'J C is
that slope in units in which the mean Hessian is the identity. Where data respond in proportion to their own Hessian,
and that changes along the stream, batch b responds by N + N M_b, M_b = (n / n_b) C'H_b C - I, and theta's own motion
times N M_b stays in the noise for as long as rows stay alike. In units of the noise's variance that adds about the
largest eigenvalue of the mean of N M_b M_b'N'. Products of neighbours, M_b M_b+1', have none of the noise that M_b has
where rows are independent.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from halfwidth.equation.linear_algebra import inverse
from halfwidth.errors import NotIdentified
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto.feedback import Response

WIDE = 128


def degrees_of_freedom(H: Vector) -> Vector:
    """Of every coefficient, from the Hessians of batches (K, d, d) that have shown it."""
    shares = np.abs(np.diagonal(H, axis1=1, axis2=2))
    if H.shape[1] <= WIDE:
        with suppress(NotIdentified):
            inverted = inverse(H.sum(axis=0))
            shares = np.abs(np.einsum("ji,kil,jl->kj", inverted, H, inverted, optimize=True))
    shares = shares / np.maximum(shares.max(axis=0), 1e-300)
    return np.asarray(np.square(shares.sum(axis=0)) / np.maximum(np.square(shares).sum(axis=0), 1e-300))


def wander(H: Vector, rows: Vector, response: Response) -> float:
    """What rows that change slowly add to the variance, from the Hessians of batches (K, d, d) and their rows."""
    if response.kept <= 0.0:
        return 0.0
    shown = np.flatnonzero(np.diag(H.sum(axis=0)) > 0.0)
    H = 0.5 * (H + np.swapaxes(H, 1, 2))[:, shown][:, :, shown]
    A, n = H.sum(axis=0), float(rows.sum())
    scale = 1.0 / np.sqrt(np.diag(A))
    try:
        L = np.linalg.cholesky(A * scale[:, None] * scale)
    except np.linalg.LinAlgError:
        return np.inf
    C = scale[:, None] * np.linalg.inv(L).T
    N = n * (C.T @ response.J[np.ix_(shown, shown)] @ C)
    M = N @ ((n / rows)[:, None, None] * (C.T @ H @ C) - np.eye(len(shown)))
    products = np.einsum("kij,klj->il", M[:-1], M[1:], optimize=True) / max(len(M) - 1, 1)
    if not np.isfinite(products).all():  # columns whose squares leave the range
        return np.inf
    return float(np.linalg.eigvalsh(0.5 * (products + products.T)).max(initial=0.0))
