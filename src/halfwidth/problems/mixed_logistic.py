"""A logistic model with a random effect: `mixed-logistic`, by stochastic approximation with Metropolis steps inside.

A fixed population of M individuals, i with observations (x_ij, y_ij) and an effect b_i of its own, that nobody sees:

    P(y_ij = 1 | b_i) = s(x_ij'beta + e^l b_i),   b_i in {g_1, ..., g_K} with weights w_k,

the grid of Gauss and Hermite, a standard normal law for all purposes. theta = (beta, l) maximises the likelihood with
b_i summed out. The spread is e^l: it cannot change its sign, which would leave the likelihood as it is. At every row an
individual is drawn, its b_i takes five Metropolis steps (to a neighbour on the grid, accepted by its posterior ratio
while theta is deployed) and the field is the gradient of the completed negative log-likelihood,

    f_i(b) = sum_j (s(x_ij'beta + e^l b) - y_ij) (x_ij, e^l b).

A row is (x_i1, ..., x_im, y_i1, ..., y_im, b). Its chain is finite. With pi_i the posterior, P_i the kernel of five
steps and f~_i = f_i - E_pi_i f_i,

    A = (1/M) sum_i E_pi_i hess - Cov_pi_i f_i         (T. Louis, JRSS B 44, 1982),
    S = (1/M) sum_i E_pi_i f_i f_i' + C_i + C_i',   C_i = E_pi_i f~_i (sum_h P_i^h f~_i)', h = 1, 2, ...:

an individual is updated only when it is drawn, and draws of others in between add nothing. The truth is that of the
population: theta* is its maximum likelihood, by Newton's method, or by steps of the complete data's information where
the likelihood bends the other way. M. Gu and F. Kong, PNAS 95 (1998).
"""

from __future__ import annotations

import math
from functools import lru_cache, partial

import numpy as np
from numpy.random import Generator

from halfwidth.checks import check_count
from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.compile import jitable
from halfwidth.problems.base import Problem, Truth
from halfwidth.problems.control.finite_mdp import poisson_solution
from halfwidth.problems.row_losses import sigmoid

HEAD = 3
GRID = 8
MOVES = 5
_MOST_STEPS, _SETTLED = 100, 1e-12
_POPULATION_SEED = 11


@jitable
def log_likelihood(theta: Vector, params: Vector, first: int, size: int, b: float) -> float:
    """Of the observations that begin at `first` in `params`, given the effect b."""
    dim = theta.shape[0]
    effect, total = math.exp(theta[dim - 1]) * b, 0.0
    for j in range(size):
        eta = effect
        for i in range(dim - 1):
            eta += theta[i] * params[first + j * (dim - 1) + i]
        y = params[first + size * (dim - 1) + j]
        total += y * eta - max(eta, 0.0) - math.log1p(math.exp(-abs(eta)))
    return total


@jitable
def sample_mixed_logistic(rng: Generator, theta: Vector, state: Vector, params: Vector, row: Vector) -> None:
    """Draw an individual and move its effect, whose place on the grid is in the state, by Metropolis steps."""
    people, size, points = int(params[0]), int(params[1]), int(params[2])
    length = row.shape[0] - 1
    i = int(rng.random() * people)
    first = HEAD + 2 * points + i * length
    at = int(state[i])
    here = log_likelihood(theta, params, first, size, params[HEAD + at]) + params[HEAD + points + at]
    for _ in range(MOVES):
        to = at + (1 if rng.random() < 0.5 else -1)
        if 0 <= to < points:
            there = log_likelihood(theta, params, first, size, params[HEAD + to]) + params[HEAD + points + to]
            if math.log(rng.random()) < there - here:
                at, here = to, there
    state[i] = float(at)
    for j in range(length):
        row[j] = params[first + j]
    row[length] = params[HEAD + at]


@jitable
def mixed_logistic_gradient(theta: Vector, row: Vector, params: Vector, grad: Vector) -> None:
    """f_i(b)."""
    dim, size = theta.shape[0], int(params[1])
    effect = math.exp(theta[dim - 1]) * row[row.shape[0] - 1]
    for i in range(dim):
        grad[i] = 0.0
    for j in range(size):
        eta = effect
        for i in range(dim - 1):
            eta += theta[i] * row[j * (dim - 1) + i]
        residual = sigmoid(eta) - row[size * (dim - 1) + j]
        for i in range(dim - 1):
            grad[i] += residual * row[j * (dim - 1) + i]
        grad[dim - 1] += residual * effect


@jitable
def mixed_logistic_curvature(theta: Vector, row: Vector, params: Vector) -> float:
    """A quarter of the squared length of all (x_ij, e^l b), and e^l |b| for every label: the effect bends with l."""
    dim, size = theta.shape[0], int(params[1])
    effect = abs(math.exp(theta[dim - 1]) * row[row.shape[0] - 1])
    total = size * effect * (0.25 * effect + 1.0)
    for j in range(size * (dim - 1)):
        total += 0.25 * row[j] * row[j]
    return float(total)


def mixed_logistic(*, people: int = 50, size: int = 6, spread: float = 1.0, seed: int = 0) -> Problem:
    """An intercept, a slope and the log of the random intercepts' spread: `people` made up, with `size` labels each."""
    check_count("people", people, at_least=10)
    check_count("size", size, at_least=2)
    if not (np.isfinite(spread) and spread > 0.0):
        raise InputError.of("spread", "be positive and finite", spread)
    X, Y = _population(people, size, spread, seed)
    nodes, weights = _grid()
    data = np.concatenate([X.reshape(people, -1), Y], axis=1)
    head = [people, size, GRID]
    return Problem(
        3,
        mixed_logistic_gradient,
        sample_mixed_logistic,
        mixed_logistic_curvature,
        row_size=data.shape[1] + 1,
        params=np.concatenate([head, nodes, np.log(weights), data.ravel()]),
        state_0=np.searchsorted(np.cumsum(weights), (np.arange(people) + 0.5) / people),
        name="mixed-logistic",
        settings={"people": people, "size": size, "spread": spread, "seed": seed},
        solve=partial(solve_mixed_logistic, people, size, spread, seed),
    )


def _grid() -> tuple[Vector, Vector]:
    """g and w. Without a point at 0, where the field would not depend on l and chains would stay when l is large."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(GRID)
    return nodes, weights / weights.sum()


@lru_cache(maxsize=8)
def _population(people: int, size: int, spread: float, seed: int) -> tuple[Vector, Vector]:
    """Features (people, size, 2), the first of which is 1, and labels."""
    rng = np.random.default_rng([_POPULATION_SEED, seed])
    X = np.stack([np.ones((people, size)), rng.standard_normal((people, size))], axis=-1)
    eta = X @ np.array([-0.3, 0.8]) + spread * rng.standard_normal((people, 1))
    with np.errstate(over="ignore"):
        return X, (rng.random((people, size)) < 1.0 / (1.0 + np.exp(-eta))).astype(np.float64)


class _Moments:
    """Fields, Hessians and posteriors of all individuals at a theta, over the grid."""

    def __init__(self, X: Vector, Y: Vector, theta: Vector) -> None:
        nodes, weights = _grid()
        people, size = Y.shape
        wide = np.broadcast_to(X[:, None], (people, GRID, size, 2))
        effect = np.broadcast_to(np.exp(theta[2]) * nodes[None, :, None, None], (people, GRID, size, 1))
        Z = np.concatenate([wide, effect], axis=-1)  # (people, grid, size, 3), of d eta / d theta
        eta = Z @ np.array([theta[0], theta[1], 1.0])
        s = np.exp(-np.logaddexp(0.0, -eta))
        self.fields = np.einsum("pgj,pgji->pgi", s - Y[:, None], Z)
        self.information = np.einsum("pgj,pgji,pgjk->pgik", s * (1.0 - s), Z, Z)
        self.log_joint = (Y[:, None] * eta - np.logaddexp(0.0, eta)).sum(axis=-1) + np.log(weights)
        likelihood = np.exp(self.log_joint - self.log_joint.max(axis=1, keepdims=True))
        self.posterior = likelihood / likelihood.sum(axis=1, keepdims=True)
        self.means = np.einsum("pg,pgi->pi", self.posterior, self.fields)
        self.centred = self.fields - self.means[:, None]

    def complete(self) -> Vector:
        """The information of data whose effects are known."""
        return np.asarray(np.einsum("pg,pgik->ik", self.posterior, self.information) / len(self.means))

    def jacobian(self) -> Vector:
        """A: in l the Hessian has the field once more, as e^l is its own derivative."""
        missing = np.einsum("pg,pgi,pgk->ik", self.posterior, self.centred, self.centred) / len(self.means)
        return np.asarray(self.complete() + np.diag([0.0, 0.0, self.means[:, 2].mean()]) - missing)


def _maximum(X: Vector, Y: Vector, theta: Vector) -> Vector | None:
    """The maximum of the likelihood; None if no steps find it."""
    for _ in range(_MOST_STEPS):
        at = _Moments(X, Y, theta)
        bends = np.linalg.eigvalsh(at.jacobian())[0] > 0.0
        step = np.linalg.solve(at.jacobian() if bends else at.complete(), at.means.mean(axis=0))
        theta = theta - step / max(1.0, float(np.linalg.norm(step)))
        if bends and np.linalg.norm(step) < _SETTLED:
            return theta
    return None


def solve_mixed_logistic(people: int, size: int, spread: float, seed: int) -> Truth:
    """theta* and Sigma; symbols as in the module's text."""
    X, Y = _population(people, size, spread, seed)
    try:
        theta = _maximum(X, Y, np.array([-0.3, 0.8, math.log(spread)]))
    except np.linalg.LinAlgError:  # all labels of a person are alike, whatever the effect
        theta = None
    if theta is None:
        raise InputError(
            "Newton's method finds no maximum of this population's likelihood at a positive and finite spread; take "
            f"another seed, more people, or a spread between 0.5 and 5; got {spread:g}"
        )
    at = _Moments(X, Y, theta)
    S = np.einsum("pg,pgi,pgk->ik", at.posterior, at.fields, at.fields)
    for log_joint, pi, centred in zip(at.log_joint, at.posterior, at.centred, strict=True):
        P = np.linalg.matrix_power(metropolis_kernel(log_joint), MOVES)
        later = centred.T @ (pi[:, None] * poisson_solution(P, pi, P @ centred))
        S += later + later.T
    inverse = np.linalg.inv(at.jacobian())
    return Truth(theta, inverse @ (S / people) @ inverse.T)


def metropolis_kernel(log_joint: Vector) -> Vector:
    """The transition matrix of a Metropolis step to a neighbour on the grid."""
    count = len(log_joint)
    P = np.zeros((count, count))
    for k in range(count):
        for to in (k - 1, k + 1):
            if 0 <= to < count:
                P[k, to] = 0.5 * min(1.0, math.exp(min(log_joint[to] - log_joint[k], 0.0)))
        P[k, k] = 1.0 - P[k].sum()
    return P
