"""Directions that rows have not shown yet, though they have shown every column of them.

A column that has been constant so far, as that of a rare event is outside of the event once columns are centred, is
collinear with the intercept: rows fix the sum of the two terms, and nothing else. A prior in each column's own units
gives both the same share of that sum, so that the coefficient of a column with values of -0.07 moves 14 times as far as
the intercept does. When the event comes, with values of 30, the forecast is off by as many units: labels that follow
forecasts then follow it, and a logistic loss is flat there. The same holds for a dither of theta.

So, where chunks are unlike each other, such directions have a prior of their own. With D the diagonal of the mean
Hessian H, u the eigenvectors of D^-1/2 H D^-1/2 of eigenvalues below `HIDDEN`, that is where the columns of all rows
cancel to a hundredth of their size, Q an orthonormal basis of the directions D^-1/2 u, and h the median of D,

    (I - Q Q') prior (I - Q Q') + n h Q Q'

replaces a diagonal prior worth n rows: a move along Q costs what one along a column of the usual size does, and nothing
else moves theta there. Among all thetas that say the same of every row so far the nearest one is taken then; what rows
say of theta, in any other direction, is left alone. Columns should therefore be of about the same size, as for every
other step. For dithers H itself is filled up by h Q Q'.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from halfwidth.kernels.arrays import Vector

HIDDEN = 1e-4


def hidden_directions(H: Vector) -> Vector:
    """Q, of shape (d, number of directions); columns without any curvature are left out of them."""
    size = np.diag(H)
    shown = np.flatnonzero(size > 0.0)
    scale = np.sqrt(size[shown])
    scaled = 0.5 * (H + H.T)[np.ix_(shown, shown)] / np.outer(scale, scale)
    with suppress(
        np.linalg.LinAlgError
    ):  # mostly there are none, and a Cholesky factor shows it for a tenth of the cost
        np.linalg.cholesky(scaled - HIDDEN * np.eye(len(shown)))
        return np.zeros((len(H), 0))
    values, vectors = np.linalg.eigh(scaled)
    hidden = values < HIDDEN
    Q = np.zeros((len(H), int(hidden.sum())))
    Q[shown] = np.linalg.qr(vectors[:, hidden] / scale[:, None])[0]
    return Q


def usual_size(H: Vector) -> float:
    """h, the curvature of the median column; 0 where there is none."""
    size = np.diag(H)[np.diag(H) > 0.0]
    return float(np.median(size)) if len(size) else 0.0


def filled_up(H: Vector) -> Vector:
    """The mean Hessian with the usual curvature in the directions that no row has shown."""
    Q = hidden_directions(H)
    return np.asarray(H if not Q.size else H + usual_size(H) * (Q @ Q.T))


def with_hidden(prior: Vector, H: Vector, rows: float) -> Vector:
    """A diagonal prior, worth so many rows, as a matrix that holds the directions that no row has shown."""
    Q, matrix = hidden_directions(H), np.diag(prior)
    if not Q.size:
        return matrix
    rest = matrix - Q @ (Q.T @ matrix)
    return np.asarray(rest - (rest @ Q) @ Q.T + rows * usual_size(H) * (Q @ Q.T))
