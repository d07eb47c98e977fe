"""Roots of the equation of the first batches: how the estimate came to be what it is.

    c_k = (sum_{j <= k} A_j + w_k P)^-1 (sum_{j <= k} B_j + w_k q),   w_k the share of the rows in the first k batches,

relative to the origin, with P the penalty of all rows, and q what the last estimate c knows beyond its batches (a
penalty's centre, a correction): q = (A + P) c - B, so that the last root is c. A direction that the first batches do
not determine has no value there.
"""

from __future__ import annotations

import numpy as np

from halfwidth.equation.equation import Equation
from halfwidth.equation.errors import unseen
from halfwidth.equation.linear_algebra import whitening
from halfwidth.equation.wide_errors import WIDE
from halfwidth.inference.trail import Trail, looks
from halfwidth.kernels.arrays import Vector


def prefix_trail(
    equation: Equation, origin: Vector, centre: Vector, directions: Vector, penalty: Vector | None = None
) -> Trail | None:
    """How directions (m, d) times the estimate settled; None where there are too many coefficients to look.

    Parameters
    ----------
    equation : Equation
        Of batches in time order, with symmetric A.
    origin, centre : ndarray of shape (d,)
        What the roots are relative to, and the estimate.
    directions : ndarray of shape (m, d)
        From the coordinates of the equation to coefficients.
    penalty : ndarray of shape (d,), optional
        The diagonal of P.
    """
    size = len(origin)
    if size > WIDE or not len(equation.rows):
        return None
    after = looks(equation.rows)
    total = np.cumsum(equation.rows)[after]
    P = np.diag(np.zeros(size) if penalty is None else penalty)
    whole = equation.A.sum(axis=0)
    q = (0.5 * (whole + whole.T) + P) @ (centre - origin) - equation.B.sum(axis=0)
    A, B = np.zeros((size, size)), np.zeros(size)
    found, at = np.empty((len(after), len(directions))), 0
    for i, stop in enumerate((after + 1).tolist()):
        A += equation.A[at:stop].sum(axis=0)
        B += equation.B[at:stop].sum(axis=0)
        at, share = stop, total[i] / total[-1]
        whitened = whitening(0.5 * (A + A.T) + share * P)
        root = whitened.C @ (whitened.C.T @ (B + share * q))
        found[i] = np.where(unseen(whitened, directions), np.nan, directions @ (origin + root))
    return Trail(total, found)
