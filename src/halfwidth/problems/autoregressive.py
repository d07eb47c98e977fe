"""Generalised linear models whose features and latent noise are autoregressive: `ar-logistic` and `ar-poisson`.

Every feature is AR(phi), the latent e is AR(psi), all with unit variance, independent of each other. Write b =
theta_r, z = u'b, T = |b|^2. The rows depend on each other, not on the model, so A is the mean Hessian at theta* = b;
the gradient noise is autocorrelated, so S is a sum over lags.

**ar-logistic.** y = 1{z + Q(Phi(e)) > 0} with Q the logistic quantile: given u the label is Bernoulli(s(z)), so
theta* = b for the logistic loss. The residual r = s(z) - y is a function of two independent Gaussian chains, x = z /
sqrt(T) and e. With k(x) = Phi^-1(s(-z)) the label is 1{e > k(x)}, and its Hermite coefficients in e are known in
closed form,

    E[1{e > k} He_n(e)] / sqrt(n!) = phi_N(k) He_(n-1)(k) / sqrt(n!),   n = 1, 2, ...

One trapezoidal sum over x gives c_mn, the coefficients of r in both chains, and d_mn, those of r x. Split u = z b / T +
u_perp. By Mehler's formula a term (m, n) correlates (phi^m psi^n)^h at lag h, and u_perp phi^h, so

    S = along b b' / T + across (I - b b' / T),
    along  = E[r^2 x^2] + 2 sum d_mn^2 q / (1 - q),   q = phi^m psi^n,
    across = E[r^2]     + 2 sum c_mn^2 q / (1 - q),   q = phi^(m+1) psi^n,      n >= 1.

**ar-poisson.** y ~ Poisson(exp(z) nu), nu = exp(s e - s^2 / 2), with mean 1: theta* = b for the loss exp(u'theta) - y
u'theta. A = exp(T/2) (I + b b'). The Poisson noise adds A to S; the rest, exp(z) (1 - nu) u, has at lag h, with p =
phi^|h| and by the moment generating functions of the two Gaussian pairs, the covariance

    (exp(s^2 psi^|h|) - 1) exp(T (1 + p)) (p I + (1 + p)^2 b b'),

which decays geometrically and is summed over a thousand lags on either side. theta_r is linspace(0, 1, dim) scaled to
length 1/2, so that exp(z) keeps tame moments in every dimension.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from halfwidth.checks import check_positive
from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.compile import jitable
from halfwidth.problems.base import Problem, Truth
from halfwidth.problems.quadrature import hermite_polynomials, lag_sums, normal_grid
from halfwidth.problems.row_losses import LOGISTIC, POISSON, sigmoid
from halfwidth.problems.seed_features import target_parameter

_LARGEST_CORRELATION = 0.95  # up to here 400 terms of every series, and 1,000 lags, leave less than 1e-8
_TERMS = 400


@jitable
def next_autoregressive(
    rng: Generator, theta: Vector, state: Vector, params: Vector, row: Vector, first: int, latent: float
) -> float:
    """Move features and latent e on, write u into row[:dim], and return latent e + u'theta_r, theta_r at `first`."""
    dim = theta.shape[0]
    phi, psi = params[0], params[1]
    fresh = np.sqrt(1.0 - phi * phi)
    state[dim] = psi * state[dim] + np.sqrt(1.0 - psi * psi) * rng.standard_normal()
    signal = latent * state[dim]
    for j in range(dim):
        state[j] = phi * state[j] + fresh * rng.standard_normal()
        row[j] = state[j]
        signal += row[j] * params[first + j]
    return float(signal)


@jitable
def sample_ar_logistic(rng: Generator, theta: Vector, state: Vector, params: Vector, row: Vector) -> None:
    """Move features and latent noise by one step; y = 1{Phi(e) > s(-z)}."""
    dim = theta.shape[0]
    signal = next_autoregressive(rng, theta, state, params, row, 3, 0.0)
    row[dim] = 1.0 if 0.5 * math.erfc(-state[dim] / math.sqrt(2.0)) > sigmoid(-signal) else 0.0


@jitable
def sample_ar_poisson(rng: Generator, theta: Vector, state: Vector, params: Vector, row: Vector) -> None:
    """Move features and latent noise by one step; y ~ Poisson(exp(z) nu)."""
    dim = theta.shape[0]
    spread = params[2]
    signal = next_autoregressive(rng, theta, state, params, row, 3, 0.0)
    row[dim] = rng.poisson(np.exp(signal + spread * state[dim] - 0.5 * spread * spread))


def _check_correlations(phi: float, psi: float) -> None:
    for name, value in (("phi", phi), ("psi", psi)):
        if not abs(value) <= _LARGEST_CORRELATION:
            raise InputError.of(name, f"lie within +-{_LARGEST_CORRELATION}, where the truth is exact", value)


def ar_logistic(dim: int = 5, *, phi: float = 0.7, psi: float = 0.7, theta_r: ArrayLike | None = None) -> Problem:
    """Logistic regression with autoregressive features (phi) and label noise (psi)."""
    target = target_parameter(theta_r, dim)
    _check_correlations(phi, psi)
    return Problem(
        dim,
        **LOGISTIC._asdict(),
        sample=sample_ar_logistic,
        row_size=dim + 1,
        params=np.concatenate([[phi, psi, 0.0], target, [0.0]]),
        state_0=np.zeros(dim + 1),
        name="ar-logistic",
        settings={"dim": dim, "phi": phi, "psi": psi},
        solve=partial(solve_ar_logistic, target, phi, psi),
    )


def ar_poisson(
    dim: int = 5, *, phi: float = 0.7, psi: float = 0.7, spread: float = 0.5, theta_r: ArrayLike | None = None
) -> Problem:
    """Poisson regression with autoregressive features (phi) and lognormal overdispersion (psi, spread)."""
    target = target_parameter(theta_r, dim)
    if theta_r is None and dim > 1:
        target = 0.5 * target / np.linalg.norm(target)
    _check_correlations(phi, psi)
    check_positive("spread", spread)
    return Problem(
        dim,
        **POISSON._asdict(),
        sample=sample_ar_poisson,
        row_size=dim + 1,
        params=np.concatenate([[phi, psi, spread], target]),
        state_0=np.zeros(dim + 1),
        name="ar-poisson",
        settings={"dim": dim, "phi": phi, "psi": psi, "spread": spread},
        solve=partial(solve_ar_poisson, target, phi, psi, spread),
    )


def solve_ar_logistic(b: Vector, phi: float, psi: float) -> Truth:
    """theta* and Sigma of `ar-logistic`; see the module's text for the symbols."""
    from scipy.special import expit, ndtri

    x, weights = normal_grid()
    length = float(np.linalg.norm(b))
    z = length * x
    variance = expit(z) * expit(-z)
    k = -np.sign(z) * np.abs(ndtri(expit(-np.abs(z))))  # ndtri of the smaller tail, which keeps all its digits
    n = np.arange(1, _TERMS + 1)
    density = np.exp(-0.5 * k**2) / math.sqrt(2.0 * math.pi)
    in_latent = hermite_polynomials(k, _TERMS) * density / np.sqrt(n)[:, None]
    in_features = hermite_polynomials(x, _TERMS) * weights
    ratios = float(phi) ** np.arange(_TERMS)[:, None] * float(psi) ** n
    lags_along = float(np.sum((in_features * x @ in_latent.T) ** 2 * lag_sums(ratios)))
    lags_across = float(np.sum((in_features @ in_latent.T) ** 2 * lag_sums(phi * ratios)))
    curvature_along, curvature_across = float(weights @ (variance * x**2)), float(weights @ variance)
    along = np.outer(b, b) / length**2 if length > 0 else np.zeros((b.size, b.size))
    across = np.eye(b.size) - along
    # A and S share the eigenvectors: b and everything orthogonal to it.
    sigma = (curvature_along + lags_along) / curvature_along**2 * along
    sigma = sigma + (curvature_across + lags_across) / curvature_across**2 * across
    return Truth(b, sigma)


def solve_ar_poisson(b: Vector, phi: float, psi: float, spread: float) -> Truth:
    """theta* and Sigma of `ar-poisson`; see the module's text for the symbols."""
    T = float(b @ b)
    h = np.arange(0, 1_000)
    p, latent = float(phi) ** h, float(psi) ** h
    weights = np.expm1(spread**2 * latent) * np.exp(T * (1.0 + p)) * np.where(h > 0, 2.0, 1.0)
    identity, along = np.eye(b.size), np.outer(b, b)
    A = math.exp(0.5 * T) * (identity + along)
    S = A + float(weights @ p) * identity + float(weights @ (1.0 + p) ** 2) * along
    inverse = np.linalg.inv(A)
    sigma = inverse @ S @ inverse
    return Truth(b, 0.5 * (sigma + sigma.T))
