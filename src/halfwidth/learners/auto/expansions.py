"""What expansions at thetas of somebody else's leave out, from how the told Hessians change with theta.

Batch k has the mean Jacobian A_k per row, and was told u_k away from the centre. With A* the Jacobian at the root, to
second order the equation of rows that are expanded at root + u is off by (A_k - A*) u / 2, and the centre by

    delta = (sum n A)^-1 sum n_k (A_k - A*) u_k / 2     over the batches that count.

A* is read off by least squares of all A_k on s_k, how far u_k goes along the mean of u, at s = 0: delta is linear in
the A_k, and what that regression leaves gives its standard error. Where a slope J of the feedback is used, it was fitted
to the same gradients over all batches, and what these leave out looks like a response: with V the spread of theta,
batch k then counts for n_k (1 - N (u_k - mean of u)' V^-1 (mean of u over those that count)). Where theta hardly moved there is no regression. Then
delta is bounded by the distance alone: let rho be the size of u in standard deviations of a row's noise, and let the
Hessian change by at most `STEEPEST` rho times itself, the skewness of a row's score: 4 is that of labels of which a
twentieth are ones. Then delta is at most STEEPEST rho^2 sqrt(n) / 2 standard errors.
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


@np.errstate(divide="ignore", invalid="ignore")
def left_out(equation: Equation, away: Vector, first: int, covariance: Vector, fitted: bool) -> float:
    """By how many standard errors expansions may have moved some coefficient, of batches from the first one on.

    `away` (K, d) has the u_k, `covariance` is that of the centre, per row, and `fitted` says whether J is used.
    """
    n, K = equation.rows, len(equation.rows)
    A = equation.A / n[:, None, None]
    counted = np.where(np.arange(K) >= first, n, 0.0)
    N = counted.sum()
    mean = np.tensordot(n / n.sum(), A, 1)
    metric = 0.5 * (mean + mean.T)
    squared = len(mean) * counted @ np.sum(away @ metric * away, axis=1) / N / np.trace(metric @ covariance)
    bound = 0.5 * STEEPEST * float(squared) * math.sqrt(N)
    s = away @ metric @ (counted @ away)
    middle = n @ s / n.sum()
    spread = n @ (s - middle) ** 2
    if spread <= _ROUNDING * (n @ s**2):
        return bound
    slope = np.tensordot(n * (s - middle) / spread, A, 1)
    at_root = n / n.sum() - middle * n * (s - middle) / spread  # the weights of A*
    weights = counted
    if fitted:
        about = away - n @ away / n.sum()
        spread_of_theta = regular((n * about.T) @ about)
        weights = counted - n * (about @ np.linalg.solve(spread_of_theta, counted @ away))
    z = weights[:, None] * away - np.outer(at_root, weights @ away)
    parts = (A @ z[:, :, None])[:, :, 0]
    noise = parts - z @ mean.T - (s - middle)[:, None] * (z @ slope.T)
    solved = 0.5 * inverse(np.tensordot(counted, A, 1)).T
    errors = np.sqrt(np.diag(covariance) / N)
    delta = np.abs(parts.sum(axis=0) @ solved) / errors
    unsure = np.sqrt(np.square(noise @ solved).sum(axis=0) * K / (K - 2.0)) / errors
    size = np.hypot(delta, unsure)
    return float(np.where(delta > _SIGNIFICANT * unsure, size, np.minimum(size, bound)).max())
