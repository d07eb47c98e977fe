"""Simulated responses to a table of real features: `table-linear`, `table-logistic` and `table-poisson`.

Rows come in the table's order, and from its beginning again when it ends. With x a row of features, b = theta_r, theta
the deployed parameter and e a latent AR(psi) noise with unit variance,

    eta = x'b + epsilon x'(theta - b),

    linear     y = eta + e,
    logistic   y = 1{Phi(e) > s(-eta)}, which is Bernoulli(s(eta)),
    poisson    y ~ Poisson(exp(eta) nu),   nu = exp(e / 2 - 1/8), with mean 1.

At theta = b the conditional mean of y given x is that of the model, so theta* = b exactly, whatever the features do and
however strongly the response shifts with theta (epsilon). Sigma depends on the features' own dependence; it is not a
number here. The table is an `.npz` file with `features` (rows, d), of which the first column should be 1; without one,
a stand-in with a trend, a season, a spell of a rare event and an autoregression takes its place.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.compile import jitable
from halfwidth.problems.base import Problem, Sampler, scaled_truth
from halfwidth.problems.row_losses import LINEAR, LOGISTIC, POISSON, RowLoss, sigmoid

_HEAD = 2
_STAND_IN_ROWS, _STAND_IN_SEED = 20_000, 7
_INTERCEPTS = {"linear": 0.0, "logistic": -1.0, "poisson": 0.0}


@jitable
def next_table_row(rng: np.random.Generator, theta: Vector, state: Vector, params: Vector, row: Vector) -> float:
    """Move on to the table's next row, write its features, move the noise, and return eta."""
    dim = theta.shape[0]
    psi, epsilon = params[0], params[1]
    first = _HEAD + dim
    rows = (params.shape[0] - first - 1) // dim
    at = first + (int(state[0]) % rows) * dim
    state[0] += 1.0
    state[1] = psi * state[1] + np.sqrt(1.0 - psi * psi) * rng.standard_normal()
    eta = 0.0
    for j in range(dim):
        row[j] = params[at + j]
        b = params[_HEAD + j]
        eta += row[j] * (b + epsilon * (theta[j] - b))
    return eta


@jitable
def sample_table_linear(rng: np.random.Generator, theta: Vector, state: Vector, params: Vector, row: Vector) -> None:
    """y = eta + e."""
    row[theta.shape[0]] = next_table_row(rng, theta, state, params, row) + state[1]


@jitable
def sample_table_logistic(rng: np.random.Generator, theta: Vector, state: Vector, params: Vector, row: Vector) -> None:
    """y = 1{Phi(e) > s(-eta)}."""
    eta = next_table_row(rng, theta, state, params, row)
    row[theta.shape[0]] = 1.0 if 0.5 * math.erfc(-state[1] / math.sqrt(2.0)) > sigmoid(-eta) else 0.0


@jitable
def sample_table_poisson(rng: np.random.Generator, theta: Vector, state: Vector, params: Vector, row: Vector) -> None:
    """y ~ Poisson(exp(eta) nu)."""
    eta = next_table_row(rng, theta, state, params, row)
    row[theta.shape[0]] = rng.poisson(np.exp(min(eta + 0.5 * state[1] - 0.125, 30.0)))


_FUNCTIONS: dict[str, tuple[RowLoss, Sampler, float]] = {
    "linear": (LINEAR, sample_table_linear, 1.0),
    "logistic": (LOGISTIC, sample_table_logistic, 0.0),
    "poisson": (POISSON, sample_table_poisson, 0.0),
}
"""The loss, the sampler, and the last parameter that the loss reads: its scale or ridge."""


def table_linear(*, table: str | None = None, psi: float = 0.0, epsilon: float = 0.0) -> Problem:
    """Linear responses to a table of features, with AR(psi) noise and a shift by theta (epsilon)."""
    return _table_problem("linear", table, psi, epsilon)


def table_logistic(*, table: str | None = None, psi: float = 0.0, epsilon: float = 0.0) -> Problem:
    """Labels for a table of features, with AR(psi) latent noise and a shift by theta (epsilon)."""
    return _table_problem("logistic", table, psi, epsilon)


def table_poisson(*, table: str | None = None, psi: float = 0.0, epsilon: float = 0.0) -> Problem:
    """Counts for a table of features, with AR(psi) latent noise and a shift by theta (epsilon)."""
    return _table_problem("poisson", table, psi, epsilon)


def _table_problem(loss: str, table: str | None, psi: float, epsilon: float) -> Problem:
    if not -1.0 < psi < 1.0:
        raise InputError.of("psi", "lie strictly between -1 and 1", psi)
    if not (np.isfinite(epsilon) and epsilon < 1.0):
        raise InputError.of("epsilon", "be below 1, or theta* is not stable", epsilon)
    features = read_table(table)
    dim = features.shape[1]
    target = table_target(features, loss)
    functions, sample, last = _FUNCTIONS[loss]
    return Problem(
        dim,
        **functions._asdict(),
        sample=sample,
        row_size=dim + 1,
        params=np.concatenate([[psi, epsilon], target, features.ravel(), [last]]),
        state_0=np.zeros(2),
        name=f"table-{loss}",
        settings={"table": "stand-in" if table is None else Path(table).stem, "psi": psi, "epsilon": epsilon},
        solve=partial(scaled_truth, target, np.nan),
    )


def table_target(features: Vector, loss: str) -> Vector:
    """theta_r: slopes of alternating sign that give x'theta_r a standard deviation of 1/2, and a stated intercept."""
    dim = features.shape[1]
    slopes = np.linspace(0.2, 1.0, dim) * (-1.0) ** np.arange(dim)
    slopes[0] = 0.0
    spread = float((features @ slopes).std())
    target = 0.5 * slopes / spread if spread > 0.0 else slopes
    target[0] = _INTERCEPTS[loss]
    return np.asarray(target)


@lru_cache(maxsize=4)
def read_table(table: str | None) -> Vector:
    """The features of a file, or the stand-in's."""
    if table is None:
        return stand_in_table()
    try:
        with Path(table).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            features = np.asarray(arrays["features"], dtype=np.float64)
    except (OSError, ValueError, KeyError) as error:
        raise InputError.of("table", "be an .npz file with an array `features`", f"{table}: {error}") from None
    if features.ndim != 2 or not features.size or not np.isfinite(features).all():
        raise InputError.of("table", "hold finite features of shape (rows, d)", f"{table}: {features.shape}")
    return features


def stand_in_table() -> Vector:
    """Made up, always the same: an intercept, a trend, a season, an autoregression, and an event in two spells."""
    rng = np.random.default_rng(_STAND_IN_SEED)
    k = np.arange(_STAND_IN_ROWS)
    weather = np.zeros(_STAND_IN_ROWS)
    for i in range(1, _STAND_IN_ROWS):
        weather[i] = 0.99 * weather[i - 1] + 0.14 * rng.standard_normal()
    event = ((k > 12_000) & (k < 12_200)) | ((k > 17_000) & (k < 17_300))
    turn = 2.0 * np.pi * k / (_STAND_IN_ROWS / 2.0)
    columns = [np.ones(_STAND_IN_ROWS), k / _STAND_IN_ROWS - 0.5, np.sin(turn), np.cos(turn), weather, event]
    return np.column_stack(columns).astype(np.float64)
