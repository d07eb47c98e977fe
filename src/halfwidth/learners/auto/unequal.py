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

**Rows that are alike after all.** A response in proportion to each chunk's own Hessian is assumed where chunks are
unlike each other, as clipped steps suggest (`careful`). Far from the root of an exponential loss steps are clipped,
too, and the response may be any. There M_b and M_b+1 are uncorrelated.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from halfwidth.equation.linear_algebra import inverse
from halfwidth.errors import NotIdentified
from halfwidth.kernels.arrays import Indices, Vector
from halfwidth.learners.auto.feedback import Response

WIDE = 128


def degrees_of_freedom(H: Vector, shown: NDArray[np.bool_] | slice = slice(None)) -> Vector:
    """Of the coefficients that some batch has shown, from the Hessians of batches (K, d, d)."""
    shares = np.abs(np.diagonal(H, axis1=1, axis2=2))[:, shown]
    if shares.shape[1] <= WIDE:
        inside = H[:, shown][:, :, shown]
        with suppress(NotIdentified):
            inverted = inverse(inside.sum(axis=0))
            shares = np.abs(np.einsum("ji,kil,jl->kj", inverted, inside, inverted, optimize=True))
    shares = shares / np.maximum(shares.max(axis=0), 1e-300)
    return np.asarray(np.square(shares.sum(axis=0)) / np.maximum(np.square(shares).sum(axis=0), 1e-300))


def neighbours(H: Vector, rows: Vector) -> float:
    """How much batches next to each other are alike, from the Hessians of batches (K, d, d) and their rows.

    The correlation of the M_b of neighbours over all entries: about 0, with a standard error of at most K^(-1/2), where
    rows are alike throughout. 1 where the mean Hessian has no inverse.
    """
    M = _deviations(H, rows)
    squares = 0.0 if M is None else float(np.square(M).sum())
    return float(np.sum(M[:-1] * M[1:])) / squares if M is not None and 0.0 < squares < np.inf else 1.0


def wander(H: Vector, rows: Vector, response: Response) -> float:
    """What rows that change slowly add to the variance, from the Hessians of batches (K, d, d) and their rows."""
    if response.kept <= 0.0:
        return 0.0
    shown, C = _whitened(H)
    if C is None:
        return np.inf
    M = _deviations(H, rows)
    N = rows.sum() * (C.T @ response.J[np.ix_(shown, shown)] @ C)
    M = N @ M
    products = np.einsum("kij,klj->il", M[:-1], M[1:], optimize=True) / max(len(M) - 1, 1)
    if not np.isfinite(products).all():  # columns whose squares leave the range
        return np.inf
    return float(np.linalg.eigvalsh(0.5 * (products + products.T)).max(initial=0.0))


def _whitened(H: Vector) -> tuple[Indices, Vector | None]:
    """The coordinates that some batch has shown, and their C; None where their mean Hessian is not positive."""
    A = H.sum(axis=0)
    shown = np.flatnonzero(np.diag(A) > 0.0)
    A = 0.5 * (A + A.T)[np.ix_(shown, shown)]
    scale = 1.0 / np.sqrt(np.diag(A))
    try:
        L = np.linalg.cholesky(A * scale[:, None] * scale)
    except np.linalg.LinAlgError:
        return shown, None
    return shown, scale[:, None] * np.linalg.inv(L).T


def _deviations(H: Vector, rows: Vector) -> Vector | None:
    """The M_b of all batches."""
    shown, C = _whitened(H)
    if C is None:
        return None
    own = 0.5 * (H + np.swapaxes(H, 1, 2))[:, shown][:, :, shown]
    return np.asarray((rows.sum() / rows)[:, None, None] * (C.T @ own @ C) - np.eye(len(shown)))
