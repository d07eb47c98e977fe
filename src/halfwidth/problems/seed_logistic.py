"""The seed paper's logistic stream, `seed-logistic`, with its exact truth.

Features follow the seed stream, y ~ Bernoulli(s(u'theta_r)) with s the logistic function, and the loss is the
logistic loss plus ridge |theta|^2 / 2 (the paper's 0.005 |theta|^2 is ridge = 0.01). The gradient is
(s(u'theta) - y) u + ridge theta.

theta*: write b = theta_r and z = u'b. By symmetry theta* = c b, and by Stein's identity c solves a scalar
equation in one-dimensional Gaussian integrals of h(z) = s(cz) - s(z).

A: the Jacobian of the mean field has two parts. The static Hessian is E[s'(cz) u u'] + ridge I. The stationary law
N(0, C(theta)) moves too: with dC/dtheta_j = kappa e^2 (e_j theta' + theta e_j') and d/dC E f = E f'' / 2,

    J = kappa e^2 c { T E[h''(z) u] b' + E[h'(z)] b b' + T E[h'(z)] I },   T = |b|^2.

S: the label noise is a martingale difference, with covariance E[s(z)(1 - s(z)) u u']. The rest, h(z) u, is a
function of a Gaussian chain whose features correlate (1 - rho)^k at lag k. Split u = z Cb/tau^2 + u_perp; expand
h(z) and z h(z) in Hermite polynomials of z/tau: a degree-m term correlates (1 - rho)^(k m) at lag k (Mehler), so that
the sums over lags are geometric and no two-dimensional integral is left.

All integrals are trapezoidal sums over the normal density, which converge exponentially for these integrands.
"""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.compile import jitable
from halfwidth.problems.base import Problem, Truth
from halfwidth.problems.quadrature import normal_grid
from halfwidth.problems.row_losses import LOGISTIC, sigmoid
from halfwidth.problems.seed_features import SeedFeatures, next_features, target_parameter

_HERMITE_TERMS = 400


@jitable
def sample_seed_logistic(rng: Generator, theta: Vector, state: Vector, params: Vector, row: Vector) -> None:
    """Move the features, which respond to theta, by one step; draw the label."""
    signal = next_features(rng, theta, state, params, row)
    row[theta.shape[0]] = 1.0 if rng.random() < sigmoid(signal) else 0.0


def seed_logistic(
    dim: int = 5, *, epsilon: float = 0.5, rho: float = 0.5, noise: float = 1.0, ridge: float = 0.01,
    theta_r: ArrayLike | None = None,
) -> Problem:  # fmt: skip
    """The seed paper's logistic stream: features respond to the deployed parameter (epsilon = 0: they do not)."""
    features = SeedFeatures(dim, epsilon, rho, noise, target_parameter(theta_r, dim))
    if not (np.isfinite(ridge) and ridge >= 0):
        raise InputError.of("ridge", "be at least 0 and finite", ridge)
    return Problem(
        dim,
        **LOGISTIC._asdict(),
        sample=sample_seed_logistic,
        row_size=dim + 1,
        params=np.append(features.packed(), ridge),
        state_0=np.zeros(dim),
        name="seed-logistic",
        settings={"dim": dim, "epsilon": epsilon, "rho": rho, "noise": noise, "ridge": ridge},
        solve=partial(_solved, dim, epsilon, rho, noise, tuple(features.theta_r.tolist()), ridge),
    )


@lru_cache(maxsize=64)
def _solved(dim: int, epsilon: float, rho: float, noise: float, theta_r: tuple[float, ...], ridge: float) -> Truth:
    """The truth, once per process: a study builds the same problem many times over."""
    return solve_seed_logistic(SeedFeatures(dim, epsilon, rho, noise, np.array(theta_r)), ridge)


class _Normal:
    """Means of functions of x ~ N(0, 1), by the trapezoidal rule."""

    def __init__(self) -> None:
        self.x, self.weights = normal_grid(20_001)

    def mean(self, values: Vector) -> float:
        return float(self.weights @ values)

    def hermite_coefficients(self, values: Vector) -> Vector:
        """E[f(x) He_m(x)] / sqrt(m!) for m = 0, 1, ...; their squares sum to E f^2."""
        coefficients = np.empty(_HERMITE_TERMS)
        previous, current = np.zeros_like(self.x), np.ones_like(self.x)
        for m in range(_HERMITE_TERMS):
            coefficients[m] = self.mean(values * current)
            previous, current = current, (self.x * current - np.sqrt(m) * previous) / np.sqrt(m + 1.0)
        return coefficients


def solve_seed_logistic(features: SeedFeatures, ridge: float) -> Truth:
    """theta* and Sigma of the logistic stream; see the module's text for the symbols."""
    from scipy.optimize import brentq
    from scipy.special import expit

    normal, b = _Normal(), features.theta_r
    kappa, e2 = features.kappa, features.epsilon**2
    T = float(b @ b)
    if T == 0.0:
        A0 = (0.25 * kappa + ridge) * np.eye(features.dim)
        return Truth(b, np.linalg.inv(A0) @ (0.25 * kappa * np.eye(features.dim)) @ np.linalg.inv(A0))

    def stretch(c: float) -> float:
        """C(c b) b = stretch(c) b."""
        return kappa * (1.0 + e2 * c**2 * T)

    def mean_field(c: float) -> float:
        tau = np.sqrt(stretch(c) * T)
        z = tau * normal.x
        return float(stretch(c) * normal.mean((expit(c * z) - expit(z)) * z) / tau**2 + ridge * c)

    c = 1.0 if ridge == 0.0 else float(brentq(mean_field, 0.0, 1.0, xtol=1e-15, rtol=1e-14))
    theta_star = c * b
    C, m = features.stationary_covariance(theta_star), stretch(c)
    tau = float(np.sqrt(m * T))
    z = tau * normal.x
    along, across = np.outer(C @ b, C @ b) / tau**4, C - np.outer(C @ b, C @ b) / tau**2

    def second_moment(values: Vector) -> Vector:
        """E[f(z) u u']."""
        return np.asarray(normal.mean(values * z**2) * along + normal.mean(values) * across)

    s, sc = expit(z), expit(c * z)
    ds, dsc = s * (1.0 - s), sc * (1.0 - sc)
    h, h1 = sc - s, c * dsc - ds
    h2 = c**2 * dsc * (1.0 - 2.0 * sc) - ds * (1.0 - 2.0 * s)
    push = T * m * normal.mean(z * h2) / tau**2
    identity = np.eye(features.dim)
    J = kappa * e2 * c * ((push + normal.mean(h1)) * np.outer(b, b) + T * normal.mean(h1) * identity)
    A = second_moment(dsc) + ridge * identity + J

    decay = 1.0 - features.rho
    lags = decay ** np.arange(1.0, _HERMITE_TERMS + 1.0)
    hermite_h, hermite_hz = normal.hermite_coefficients(h), normal.hermite_coefficients(h * z)
    later = 2.0 * lags / (1.0 - lags)
    along_sum = normal.mean((h * z) ** 2) - hermite_hz[0] ** 2 + float(later[:-1] @ hermite_hz[1:] ** 2)
    across_sum = normal.mean(h**2) + float(later @ hermite_h**2)
    S = second_moment(ds) + along_sum * along + across_sum * across
    inverse = np.linalg.inv(A)
    sigma = inverse @ S @ inverse.T
    return Truth(theta_star, 0.5 * (sigma + sigma.T))
