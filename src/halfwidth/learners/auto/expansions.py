"""What expansions at thetas of somebody else's leave out, from how the told Hessians change with theta.

Batch k has the mean Jacobian A_k per row, and was told u_k away from the centre. With A* the Jacobian at the root, to
second order the equation of rows that are expanded at root + u is off by (A_k - A*) u / 2, and the centre by

    delta = (sum n_k A_k)^-1 sum [n_k (A_k - A*) u_k + W_k] / 2,

W_k the sum of (Hessian - A_k) times theta over the calls of batch k: theta that follows its noise about the root is on
average at it, and leaves out what a curved loss makes of its variance.

A* is read off by least squares of A_k on s_k, how far u_k goes along the mean of u, at s = 0: delta is linear in the
A_k, and what that regression leaves gives its standard error. Where a slope J of the feedback is used, it was fitted to
the same gradients, less the mean Hessian times theta, and the bend adds to it: with u the mean of the u_k and V their
spread, batch k then counts for n_k (1 + n (u_k - u)' V^-1 u), and n (A* - mean of A) u is added to the sum.

Where theta hardly moved there is no regression, or one that says nothing. Then delta is bounded by the distance alone:
let rho be the size of u in standard deviations of a row's noise, and let the Hessian change by at most `STEEPEST` rho
times itself; that factor is the skewness of a row's score, and 4 for labels of which a twentieth are ones. Then delta
is at most STEEPEST rho^2 sqrt(n) / 2 standard errors.
"""

from __future__ import annotations

import math

import numpy as np

from halfwidth.equation import Equation, inverse
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto.slopes import regular

STEEPEST = 4.0
_SIGNIFICANT = 2.0
_ROUNDING = 1e-12


@np.errstate(divide="ignore", invalid="ignore")  # errors of 0 are another doubt
def left_out(equation: Equation, away: Vector, within: Vector, covariance: Vector, fitted: bool) -> float:
    """By how many standard errors expansions may have moved some coefficient.

    `away` (K, d) has the u_k, `within` the W_k, `covariance` is that of the centre, per row, and `fitted` says whether
    J is used.
    """
    rows, K, n = equation.rows, len(equation.rows), float(equation.rows.sum())
    A, total = equation.A / rows[:, None, None], equation.rows @ away
    mean = np.tensordot(rows / n, A, 1)
    metric = 0.5 * (mean + mean.T)
    distance = len(mean) * float(rows @ np.sum(away @ metric * away, axis=1)) / n
    noise_size = float(np.trace(metric @ covariance))
    if noise_size == 0.0:  # the doubt `exact-fit`
        return 0.0
    bound: float = 0.5 * STEEPEST * distance / noise_size * math.sqrt(n)
    s = away @ metric @ total
    centred = s - rows @ s / n
    spread = rows @ centred**2
    if spread <= _ROUNDING * (rows @ s**2):
        return bound
    weights = rows
    if fitted:
        about = away - total / n
        weights = rows * (1.0 + about @ np.linalg.solve(regular((rows * about.T) @ about), total))
    at_root = rows / n - (rows @ s / n) * rows * centred / spread  # A* is the sum of these times A_k
    z = weights[:, None] * away - np.outer(at_root, weights @ away)
    if fitted:
        z += 2.0 * np.outer(at_root - rows / n, total)
    parts = (A @ z[:, :, None])[:, :, 0] + within
    slope = np.tensordot(rows * centred / spread, A, 1)
    noise = parts - z @ mean.T - centred[:, None] * (z @ slope.T) - np.outer(rows / n, within.sum(axis=0))
    solved = 0.5 * inverse(mean).T / n
    errors = np.sqrt(np.diag(covariance) / n)
    delta = np.abs(parts.sum(axis=0) @ solved) / errors
    unsure = np.sqrt(np.square(noise @ solved).sum(axis=0) * K / (K - 2.0)) / errors
    size = np.hypot(delta, unsure)
    return float(np.where(delta > _SIGNIFICANT * unsure, size, np.minimum(size, bound)).max())
