"""What the error of the slope J does to the root of the equation, and to the variance that batches show.

J is fitted by least squares, with x the deployed theta and V its centred sum of m x x' (`feedback`). Its error E has
the covariance Omega (x) V^-1, Omega that of a row's noise.

**Leverage.** The root c moves by (H + J)^-1 E (mean of x - c): its covariance is multiplied by

    1 + n (mean of x - c)' V^-1 (mean of x - c),

as in every regression that is read away from the mean of its rows. Where theta follows its noise, the mean of x is at
the root. Where theta is deployed at c_k + p (c_k - mean of x so far), c_k the root of the k rows so far, then in units
of Sigma / k the mean of x has the variance 1 / (2p + 1) about c_k, and theta itself 1 + p^2 / (2p + 1) about theta*,
which is what a curved response is shifted by: p = 2 takes four fifths of the first for four fifths more of the second.

**What J takes.** J is fitted to the same noise that batch means measure. With T_j the sum over the rows of batch j of
x, about its mean, least squares removes the share u = sum_j T_j' V^-1 T_j / n of the noise that batches show.

**What J adds.** With Sigma = (H + J)^-1 Omega (H + J)^-T, to second order in E,

    mean of (H + J + E)^-1 Omega (H + J + E)^-T = Sigma (1 + tr V^-1 Sigma) + 2 Sigma V^-1 Sigma,

on average over directions the share a = 2 (d + 2) / R too much, R = 2 d / tr V^-1 Sigma. The covariance is divided by
1 + a - u once theta is settled (`steered`), and by 1 - u before: where theta follows its noise, T_j has the true
(H + J)^-1 in it, which makes up for E, and where R is small the second order does not say enough. It is divided by
1 - u, too, where gradients are not linear in theta: E has a mean then. A response that saturates, or comes late by a
part of a chunk, is measured low by some per cent, H + J comes out too large, and a is used up by that.
"""

from __future__ import annotations

import numpy as np

from halfwidth.equation import Sums
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto.slopes import regular

_MOST_TAKEN = 0.5


def leverage(spread: Vector, sums: Sums, centre: Vector) -> float:
    """By which share the error of J, for the spread V, adds to the variance of the centre of these batches."""
    n = float(sums.n.sum())
    away = sums.T.sum(axis=0) / n - centre
    return n * float(away @ np.linalg.solve(regular(spread), away))


def taken(spread: Vector, sums: Sums) -> float:
    """The share u of these batches' noise that the fit of J has removed from them."""
    n = float(sums.n.sum())
    T = sums.T - np.outer(sums.n, sums.T.sum(axis=0) / n)
    return min(float(np.sum(T * np.linalg.solve(regular(spread), T.T).T)) / n, _MOST_TAKEN)


def added(dim: int, renewals: float) -> float:
    """The share a by which the error of J makes the variance that batches show too large."""
    return 2.0 * (dim + 2.0) / renewals
