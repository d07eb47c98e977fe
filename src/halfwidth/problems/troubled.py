"""Regressions with one trouble each: what real tables bring, with a truth that is exact all the same.

A row is (1, u_2, ..., u_d, y) with standard normal u and y = u'theta_r + N(0, 1) (`troubled-linear`) or y ~ Bernoulli
of s(u'theta_r) (`troubled-logistic`), theta_r = linspace(0, 1, d), but for one `trouble`:

| trouble         | what happens                                                            | theta* |
|-----------------|-------------------------------------------------------------------------|---|
| `none`          | nothing                                                                 | theta_r |
| `scales`        | u_2 in units of 1e-6, u_3 of 1e6, u_4 shifted by 1e6 (dim at least 4)   | theta_r, in these units |
| `absent-column` | u_d is zero in the first `amount` rows                                  | theta_r |
| `rare-column`   | u_d is 1 with probability `amount`, else 0                              | theta_r |
| `jump`          | theta_r,d jumps from 2 to -1 after `amount` rows                        | not a number for u_d |
| `first-rows`    | u_2, ..., u_d are 100 times larger in the first `amount` rows           | theta_r |
| `noise-doubles` | the noise has standard deviation 2 after `amount` rows (linear)         | theta_r |
| `heavy-tails`   | the noise is Student's t with `amount` degrees of freedom (linear)      | theta_r |
| `random-walk`   | u_2, ..., u_d are random walks with steps N(0, 1) (linear)              | theta_r |
| `separated`     | y = 1{u_d > 0} (logistic)                                               | infinite |

Given the features, the rows are independent, so theta* = theta_r is the root of the mean field whatever the features
do. Sigma is stated for `none` only (linear: the identity); where it is unknown it is not a number.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from halfwidth.checks import check_count
from halfwidth.errors import InputError, UnknownName
from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.compile import jitable
from halfwidth.problems.base import Problem, Sampler, Truth
from halfwidth.problems.row_losses import LINEAR, LOGISTIC, RowLoss, sigmoid

SCALES, ABSENT, RARE, JUMP, FIRST, DOUBLES, HEAVY, WALK, SEPARATED = range(1, 10)
TROUBLES: dict[str, tuple[int, float]] = {
    "none": (0, 0.0),
    "scales": (SCALES, 0.0),
    "absent-column": (ABSENT, 10_000.0),
    "rare-column": (RARE, 0.0006),
    "jump": (JUMP, 25_000.0),
    "first-rows": (FIRST, 400.0),
    "noise-doubles": (DOUBLES, 25_000.0),
    "heavy-tails": (HEAVY, 2.1),
    "random-walk": (WALK, 0.0),
    "separated": (SEPARATED, 0.0),
}
"""Each trouble's number and its default `amount`."""
_ONLY = {"noise-doubles": "linear", "heavy-tails": "linear", "random-walk": "linear", "separated": "logistic"}


@jitable
def troubled_features(rng: np.random.Generator, dim: int, state: Vector, params: Vector, row: Vector) -> float:
    """Write the features, count the row in the last state, and return u'theta_r."""
    trouble, amount = params[0], params[1]
    k = state[dim]
    state[dim] += 1.0
    last = dim - 1
    row[0] = 1.0
    for j in range(1, dim):
        row[j] = rng.standard_normal()
        if trouble == WALK:
            state[j] += row[j]
            row[j] = state[j]
        if trouble == FIRST and k < amount:
            row[j] *= 100.0
    if trouble == ABSENT and k < amount:
        row[last] = 0.0
    if trouble == RARE:
        row[last] = 1.0 if rng.random() < amount else 0.0
    if trouble == SCALES:
        row[1] *= 1e-6
        row[2] *= 1e6
        row[3] += 1e6
    signal = 0.0
    for j in range(dim):
        signal += row[j] * params[2 + j]
    if trouble == JUMP:
        signal += row[last] * ((2.0 if k < amount else -1.0) - params[2 + last])
    return signal


@jitable
def sample_troubled_linear(rng: np.random.Generator, theta: Vector, state: Vector, params: Vector, row: Vector) -> None:
    """y = u'theta_r + noise, with the trouble that the parameters name."""
    dim = theta.shape[0]
    signal = troubled_features(rng, dim, state, params, row)
    noise = rng.standard_normal()
    if params[0] == HEAVY:
        noise /= np.sqrt(rng.standard_gamma(0.5 * params[1]) / (0.5 * params[1]))
    if params[0] == DOUBLES and state[dim] > params[1]:
        noise *= 2.0
    row[dim] = signal + noise


@jitable
def sample_troubled_logistic(
    rng: np.random.Generator, theta: Vector, state: Vector, params: Vector, row: Vector
) -> None:
    """y ~ Bernoulli(s(u'theta_r)), or separated by the last feature."""
    dim = theta.shape[0]
    signal = troubled_features(rng, dim, state, params, row)
    row[dim] = 1.0 if rng.random() < sigmoid(signal) else 0.0
    if params[0] == SEPARATED:
        row[dim] = 1.0 if row[dim - 1] > 0.0 else 0.0


def _parts(loss: str, trouble: str, dim: int, amount: float | None) -> tuple[Vector, float, Truth]:
    """The parameters that the sampler reads, the amount, and the truth."""
    if trouble not in TROUBLES:
        raise UnknownName.among("trouble", trouble, TROUBLES)
    if _ONLY.get(trouble, loss) != loss:
        raise InputError.of("trouble", f"be one of troubled-{loss}'s; this one is troubled-{_ONLY[trouble]}'s", trouble)
    check_count("dim", dim, at_least=4)
    number, default = TROUBLES[trouble]
    amount = default if amount is None else float(amount)
    if not (math.isfinite(amount) and amount >= 0.0):
        raise InputError.of("amount", "be finite and at least 0", amount)
    target = np.linspace(0.0, 1.0, dim)
    star = target.copy()
    if trouble == "scales":
        star[[1, 2]] *= (1e6, 1e-6)
        star[0] -= 1e6 * star[3]
    params = np.concatenate([[number, amount], star])
    if trouble == "jump":
        star[-1] = np.nan
    if trouble == "separated":
        star[:] = np.inf
    sigma = np.eye(dim) if (loss, trouble) == ("linear", "none") else np.full((dim, dim), np.nan)
    return params, amount, Truth(star, sigma)


def _troubled(
    loss: str, functions: RowLoss, sample: Sampler, last: float, dim: int, trouble: str, amount: float | None
) -> Problem:
    params, amount, truth = _parts(loss, trouble, dim, amount)
    return Problem(
        dim,
        **functions._asdict(),
        sample=sample,
        row_size=dim + 1,
        params=np.append(params, last),
        state_0=np.zeros(dim + 1),
        name=f"troubled-{loss}",
        settings={"dim": dim, "trouble": trouble, "amount": amount},
        solve=partial(Truth, truth.theta_star, truth.sigma, truth.optimum),
    )


def troubled_linear(dim: int = 5, *, trouble: str = "none", amount: float | None = None) -> Problem:
    """Linear regression with one of the troubles of real tables."""
    return _troubled("linear", LINEAR, sample_troubled_linear, 1.0, dim, trouble, amount)


def troubled_logistic(dim: int = 5, *, trouble: str = "none", amount: float | None = None) -> Problem:
    """Logistic regression with one of the troubles of real tables."""
    return _troubled("logistic", LOGISTIC, sample_troubled_logistic, 0.0, dim, trouble, amount)
