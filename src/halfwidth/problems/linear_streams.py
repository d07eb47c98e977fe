"""Linear regression with exact truths: `iid-linear`, `ar-linear` and the seed paper's `seed-linear`.

The gradient is scale (u'theta - y) u: half the squared loss at scale 1, the paper's squared loss at scale 2. A row is
(u, y) with y = u'theta_r + noise, so theta* = theta_r, and the scale cancels in Sigma = A^-1 S A^-1.

- iid: u ~ N(0, I): A = I, S = s^2 I.
- AR: every feature is AR(phi) and the error AR(psi), all with unit variance: the lag-h covariance of the gradient
  is (phi psi)^|h| I, so S is a geometric series and Sigma = (1 + phi psi) / (1 - phi psi) I.
- seed: the noise is fresh at every row, so the gradient at theta_r is a martingale difference:
  A = C(theta_r), S = s^2 C(theta_r), Sigma = s^2 C(theta_r)^-1 (the derivative of pi_theta drops out at theta_r).
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from halfwidth.checks import check_positive
from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.compile import jitable
from halfwidth.problems.autoregressive import next_autoregressive
from halfwidth.problems.base import Problem, Truth, scaled_truth
from halfwidth.problems.row_losses import LINEAR
from halfwidth.problems.seed_features import SeedFeatures, next_features, target_parameter


@jitable
def sample_iid_linear(rng: Generator, theta: Vector, state: Vector, params: Vector, row: Vector) -> None:
    """Draw u ~ N(0, I) and y = u'theta_r + noise."""
    dim = theta.shape[0]
    y = params[0] * rng.standard_normal()
    for j in range(dim):
        row[j] = rng.standard_normal()
        y += row[j] * params[1 + j]
    row[dim] = y


@jitable
def sample_ar_linear(rng: Generator, theta: Vector, state: Vector, params: Vector, row: Vector) -> None:
    """Move features and error, kept in `state`, by one step; write (u, y)."""
    row[theta.shape[0]] = next_autoregressive(rng, theta, state, params, row, 2, 1.0)


@jitable
def sample_seed_linear(rng: Generator, theta: Vector, state: Vector, params: Vector, row: Vector) -> None:
    """Move the features, which respond to theta, by one step; write (u, y)."""
    signal = next_features(rng, theta, state, params, row)
    row[theta.shape[0]] = signal + params[2] * rng.standard_normal()


def iid_linear(dim: int = 5, *, noise: float = 1.0, scale: float = 1.0, theta_r: ArrayLike | None = None) -> Problem:
    """Independent rows, standard normal features, normal errors."""
    target = target_parameter(theta_r, dim)
    check_positive("noise", noise)
    return Problem(
        dim,
        **LINEAR._asdict(),
        sample=sample_iid_linear,
        row_size=dim + 1,
        params=np.concatenate([[noise], target, [check_positive("scale", scale)]]),
        name="iid-linear",
        settings={"dim": dim, "noise": noise, "scale": scale},
        solve=partial(scaled_truth, target, noise**2),
    )


def ar_linear(
    dim: int = 5, *, phi: float = 0.7, psi: float = 0.7, scale: float = 1.0, theta_r: ArrayLike | None = None
) -> Problem:
    """Autoregressive features (phi) and errors (psi): the rows depend on each other, not on the model."""
    target = target_parameter(theta_r, dim)
    for name, value in (("phi", phi), ("psi", psi)):
        if not -1.0 < value < 1.0:
            raise InputError.of(name, "lie strictly between -1 and 1", value)
    return Problem(
        dim,
        **LINEAR._asdict(),
        sample=sample_ar_linear,
        row_size=dim + 1,
        params=np.concatenate([[phi, psi], target, [check_positive("scale", scale)]]),
        state_0=np.zeros(dim + 1),
        name="ar-linear",
        settings={"dim": dim, "phi": phi, "psi": psi, "scale": scale},
        solve=partial(scaled_truth, target, (1 + phi * psi) / (1 - phi * psi)),
    )


def seed_linear(
    dim: int = 5, *, epsilon: float = 0.5, rho: float = 0.5, noise: float = 1.0, scale: float = 1.0,
    theta_r: ArrayLike | None = None,
) -> Problem:  # fmt: skip
    """The seed paper's linear stream: features respond to the deployed parameter (epsilon = 0: they do not)."""
    features = SeedFeatures(dim, epsilon, rho, noise, target_parameter(theta_r, dim))
    target = features.theta_r
    return Problem(
        dim,
        **LINEAR._asdict(),
        sample=sample_seed_linear,
        row_size=dim + 1,
        params=np.append(features.packed(), check_positive("scale", scale)),
        state_0=np.zeros(dim),
        name="seed-linear",
        settings={"dim": dim, "epsilon": epsilon, "rho": rho, "noise": noise, "scale": scale},
        solve=partial(_stationary_truth, target, noise, features),
    )


def _stationary_truth(target: Vector, noise: float, features: SeedFeatures) -> Truth:
    return Truth(target, np.asarray(noise**2 * np.linalg.inv(features.stationary_covariance(target))))
