"""Linear quantile regression, `quantile-linear`: a loss whose gradient jumps, with its exact truth.

A row is (1, u_2, ..., u_d, y), y = u'theta_r + e; every feature is AR(phi) and the error e AR(psi), all with unit
variance. The check loss at level tau has the gradient

    g(theta) = (1{y < u'theta} - tau) u,

and no Hessian. With q the tau-quantile of the standard normal law, theta* = theta_r + (q, 0, ..., 0). The Jacobian is
A = phi_N(q) E[u u'] = phi_N(q) I. The indicator I_k = 1{e_k < q} has at lag h the covariance

    C_h = sum_{m >= 1} c_m^2 psi^(m h),   c_m = -phi_N(q) He_(m-1)(q) / sqrt(m!)

(the Hermite coefficients of 1{e < q}), the features have phi^h and the intercept 1, so that S is diagonal with entries
sum_h C_h for the intercept and sum_h C_h phi^|h| for the others, and Sigma = S / phi_N(q)^2.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.checks import check_count
from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.compile import jitable
from halfwidth.problems.base import Problem, Truth
from halfwidth.problems.quadrature import hermite_polynomials, lag_sums
from halfwidth.problems.row_losses import fitted
from halfwidth.problems.seed_features import target_parameter

_LARGEST_CORRELATION = 0.95
_TERMS = 400


@jitable
def sample_quantile_linear(rng: np.random.Generator, theta: Vector, state: Vector, params: Vector, row: Vector) -> None:
    """Move features and error by one step; write (1, u, y)."""
    dim = theta.shape[0]
    phi, psi = params[0], params[1]
    fresh = np.sqrt(1.0 - phi * phi)
    state[0] = psi * state[0] + np.sqrt(1.0 - psi * psi) * rng.standard_normal()
    row[0] = 1.0
    y = state[0] + params[3]
    for j in range(1, dim):
        state[j] = phi * state[j] + fresh * rng.standard_normal()
        row[j] = state[j]
        y += row[j] * params[3 + j]
    row[dim] = y


@jitable
def check_gradient(theta: Vector, row: Vector, params: Vector, grad: Vector) -> None:
    """(1{y < u'theta} - tau) u."""
    dim = theta.shape[0]
    slope = (1.0 if row[dim] < fitted(theta, row) else 0.0) - params[2]
    for j in range(dim):
        grad[j] = slope * row[j]


@jitable
def check_loss(theta: Vector, row: Vector, params: Vector) -> float:
    """e (tau - 1{e < 0}) with e = y - u'theta."""
    dim = theta.shape[0]
    residual = float(row[dim] - fitted(theta, row))
    return residual * (float(params[2]) - (1.0 if residual < 0.0 else 0.0))


def quantile_linear(
    dim: int = 5, *, tau: float = 0.5, phi: float = 0.0, psi: float = 0.0, theta_r: ArrayLike | None = None
) -> Problem:
    """Quantile regression (tau) with autoregressive features (phi) and errors (psi); gradients only."""
    check_count("dim", dim)
    target = target_parameter(theta_r, dim)
    if not 0.0 < tau < 1.0:
        raise InputError.of("tau", "lie strictly between 0 and 1", tau)
    for name, value in (("phi", phi), ("psi", psi)):
        if not abs(value) <= _LARGEST_CORRELATION:
            raise InputError.of(name, f"lie within +-{_LARGEST_CORRELATION}, where the truth is exact", value)
    return Problem(
        dim,
        check_gradient,
        sample_quantile_linear,
        loss=check_loss,
        row_size=dim + 1,
        params=np.concatenate([[phi, psi, tau], target]),
        state_0=np.zeros(dim),
        name="quantile-linear",
        settings={"dim": dim, "tau": tau, "phi": phi, "psi": psi},
        solve=partial(solve_quantile_linear, target, tau, phi, psi),
    )


def solve_quantile_linear(target: Vector, tau: float, phi: float, psi: float) -> Truth:
    """theta* and Sigma; see the module's text for the symbols."""
    from scipy.special import ndtri

    q = float(ndtri(tau))
    density = math.exp(-0.5 * q * q) / math.sqrt(2.0 * math.pi)
    m = np.arange(1, _TERMS + 1)
    squares: Vector = (density * hermite_polynomials(np.array([q]), _TERMS)[:, 0]) ** 2 / m
    ratios = np.asarray(float(psi) ** m, dtype=np.float64)
    at_once = tau * (1.0 - tau)
    intercept = at_once + float(squares @ lag_sums(ratios))
    others = at_once + float(squares @ lag_sums(float(phi) * ratios))
    variances = np.full(target.size, others)
    variances[0] = intercept
    star = target.copy()
    star[0] += q
    return Truth(star, np.diag(variances) / density**2)
