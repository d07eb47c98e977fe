"""Strategic classification: a population that changes its features in answer to the deployed classifier.

Agent i has base features u_i^0, a label y_i and moves the columns S at quadratic cost: its best response to theta is
u_S = u_S^0 + lambda theta_S (lambda < 0: agents who want a low score). At every row each agent, independently and with
probability `share`, takes one step of gradient ascent towards it,

    u_S <- u_S + alpha (theta_S - (u_S - u_S^0) / lambda),

that is delta <- (1 - speed) delta + speed lambda theta_S for its deviation delta, speed = alpha / lambda. Then one
agent, drawn at random, is the row (u, y). The loss is the logistic loss plus ridge |theta|^2 / 2. After Q. Li and
H.-T. Wai, *State dependent performative prediction with stochastic approximation* (AISTATS 2022), whose world this
is.

**theta\\*** is the root of F(theta) = mean_i (s(m_i) - y_i) u_i + ridge theta with u_i = u_i^0 + lambda P_S theta and
m_i = u_i'theta, found by Newton's method, with lambda grown from 0 (where the loss is convex) in steps.

**A** is the derivative of F: the static Hessian mean s'(m) u u' + ridge I, plus

    J = lambda mean_i (s'(m_i) u_i theta' + (s(m_i) - y_i) I) P_S.

**S.** At fixed theta all deviations tend to lambda theta_S with certainty, and agents are drawn independently: the
gradient noise at theta* is iid and S = mean_i g_i g_i'. The movement adds nothing in the limit: which agents moved
matters only through delta_i - lambda theta*_S, which vanishes with theta_k - theta*, so it scales the noise by 1 +
o(1); and delta lags behind theta, but sum_k delta_k and lambda sum_k theta_k differ by boundary terms only, so
averages see the same A. Sigma = A^-1 S A^-T. With slow agents (share * speed small) the limit needs more rows.

**Cost.** Nobody sees an agent until it is drawn, so its moves since it was last looked at are drawn then: their times
are geometric gaps back from now, and each picks up the theta deployed at that row, from a ring that remembers as many
rows as there are agents. One more agent is brought up to date at every row, in turn, so that nobody is older than the
ring. The law is exact, a row costs O(min(share agents, 40 / speed)) instead of O(share agents), and forgotten
moves weigh less than 1e-17.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from halfwidth.checks import check_count
from halfwidth.errors import InputError
from halfwidth.kernels.compile import jitable
from halfwidth.problems.base import Problem, Truth, Vector
from halfwidth.problems.seed_logistic import logistic_curvature, logistic_gradient, logistic_hessian, logistic_loss

_POPULATION_SEED = 20240


@jitable
def catch_up(rng: Generator, agent: int, state: Vector, params: Vector) -> None:
    """Draw the moves of one agent since it was last looked at, newest first, and apply them to its deviation.

    state: the clock; when each agent was last looked at; deviations; the ring of theta_S; room for one deviation.
    """
    agents, moving = int(params[0]), int(params[1])
    rate, speed, reach = params[2], params[3], params[4]
    now, then = int(state[0]), int(state[1 + agent])
    own = 1 + agents + agent * moving
    ring = 1 + agents + agents * moving
    fresh = ring + agents * moving
    for j in range(moving):
        state[fresh + j] = 0.0
    kept = 1.0
    at = now - int(min(rng.standard_exponential() / rate, 1.0 + agents))
    while at > then and kept > 1e-17:
        slot = ring + (at % agents) * moving
        for j in range(moving):
            state[fresh + j] += kept * speed * reach * state[slot + j]
        kept *= 1.0 - speed
        at -= 1 + int(min(rng.standard_exponential() / rate, 1.0 + agents))
    for j in range(moving):
        state[own + j] = kept * state[own + j] + state[fresh + j]
    state[1 + agent] = now


@jitable
def sample_strategic(rng: Generator, theta: Vector, state: Vector, params: Vector, row: Vector) -> None:
    dim = theta.shape[0]
    agents, moving = int(params[0]), int(params[1])
    state[0] += 1.0
    turn = int(state[0]) % agents
    slot = 1 + agents + agents * moving + turn * moving
    for j in range(moving):
        state[slot + j] = theta[int(params[5 + j])]
    catch_up(rng, turn, state, params)
    agent = int(rng.integers(0, agents))
    catch_up(rng, agent, state, params)
    base = 5 + moving + agent * dim
    for j in range(dim):
        row[j] = params[base + j]
    for j in range(moving):
        row[int(params[5 + j])] += state[1 + agents + agent * moving + j]
    row[dim] = params[5 + moving + agents * dim + agent]


@dataclass(frozen=True)
class Population:
    """Agents with base features, labels in {0, 1}, and what they can do about the classifier."""

    features: Vector
    labels: Vector
    columns: tuple[int, ...]
    reach: float
    speed: float
    share: float
    ridge: float

    def __post_init__(self) -> None:
        features, labels = self.features, self.labels
        if features.ndim != 2 or not features.size or not np.isfinite(features).all():
            raise InputError.of("features", "be a table of finite numbers, one agent a row", features.shape)
        if labels.shape != (len(features),) or not np.isin(labels, (0.0, 1.0)).all():
            raise InputError.of("labels", f"be {len(features)} numbers, each 0 or 1", labels)
        if len(set(self.columns)) < len(self.columns) or not set(self.columns) <= set(range(features.shape[1])):
            raise InputError.of("columns", f"be different columns of the {features.shape[1]} there are", self.columns)
        if not math.isfinite(self.reach):
            raise InputError.of("reach lambda", "be finite", self.reach)
        for name, value in (("speed alpha / lambda", self.speed), ("share", self.share)):
            if not 0.0 < value <= 1.0:
                raise InputError.of(name, "satisfy 0 < value <= 1", value)
        if not (math.isfinite(self.ridge) and self.ridge >= 0):
            raise InputError.of("ridge", "be at least 0 and finite", self.ridge)

    @property
    def dim(self) -> int:
        return int(self.features.shape[1])

    def packed(self) -> Vector:
        """The vector of parameters that the compiled functions read."""
        rate = -math.log1p(-self.share) if self.share < 1.0 else math.inf
        # A gap is 1 + floor(exponential / rate): geometric. A rate beyond 1e300 makes every gap one row.
        head = [len(self.features), len(self.columns), min(rate, 1e300), self.speed, self.reach, *self.columns]
        return np.concatenate([head, self.features.ravel(), self.labels, [self.ridge]])

    def answered(self, theta: Vector, reach: float) -> Vector:
        """Everybody's features at their best response to theta."""
        moved = self.features.copy()
        moved[:, list(self.columns)] += reach * theta[list(self.columns)]
        return moved

    def mean_field(self, theta: Vector, reach: float) -> tuple[Vector, Vector, Vector]:
        """The mean gradient F, its Jacobian A, and the gradient of every agent."""
        from scipy.special import expit

        u = self.answered(theta, reach)
        s = expit(u @ theta)
        residual = s - self.labels
        gradients = residual[:, None] * u + self.ridge * theta
        selector = np.zeros(self.dim)
        selector[list(self.columns)] = 1.0
        weighted = (s * (1.0 - s))[:, None] * u
        static = weighted.T @ u / len(u) + self.ridge * np.eye(self.dim)
        answer = reach * (np.outer(weighted.mean(axis=0), theta) + residual.mean() * np.eye(self.dim)) * selector
        return gradients.mean(axis=0), static + answer, gradients

    def solve(self) -> Truth:
        """theta* by Newton's method along a path in lambda, and Sigma."""
        theta = np.zeros(self.dim)
        for reach in np.linspace(0.0, self.reach, 21):
            theta = self._newton(theta, float(reach))
        _, A, gradients = self.mean_field(theta, self.reach)
        if np.linalg.eigvals(A).real.min() <= 0:
            raise InputError.of("reach lambda", "leave the equilibrium stable; the answers overwhelm it", self.reach)
        inverse = np.linalg.inv(A)
        sigma = inverse @ (gradients.T @ gradients / len(gradients)) @ inverse.T
        return Truth(theta, 0.5 * (sigma + sigma.T))

    def _newton(self, theta: Vector, reach: float) -> Vector:
        force, jacobian, _ = self.mean_field(theta, reach)
        for _ in range(100):
            move = np.linalg.solve(jacobian, force)
            length = 1.0
            while True:
                trial = theta - length * move
                trial_force, trial_jacobian, _ = self.mean_field(trial, reach)
                if np.linalg.norm(trial_force) <= (1.0 - 0.1 * length) * np.linalg.norm(force) or length < 1e-6:
                    break
                length *= 0.5
            theta, force, jacobian = trial, trial_force, trial_jacobian
            if np.linalg.norm(length * move) <= 1e-13 * (1.0 + np.linalg.norm(theta)):
                return theta
        raise InputError(
            f"no equilibrium was found at lambda = {reach:.4g}; add ridge, shrink lambda, or look for separable labels"
        )


def strategic_world(
    features: ArrayLike,
    labels: ArrayLike,
    columns: Sequence[int],
    *,
    reach: float,
    speed: float = 0.5,
    share: float = 0.1,
    ridge: float = 0.01,
    theta_0: ArrayLike | None = None,
    name: str = "strategic",
    settings: Mapping[str, Any] | None = None,
) -> Problem:
    """Strategic classification over any population.

    `columns` are those that agents modify, `reach` is lambda, `speed` is alpha / lambda and `share` the probability
    that an agent moves at a row (n_1 / agents). Features are taken as they are: scale them first.
    """
    population = Population(
        np.array(features, dtype=np.float64),
        np.array(labels, dtype=np.float64),
        tuple(int(column) for column in columns),
        float(reach),
        float(speed),
        float(share),
        float(ridge),
    )
    agents, dim, moving = len(population.features), population.dim, len(population.columns)
    own = {"dim": dim, "agents": agents, "reach": reach, "speed": speed, "share": share, "ridge": ridge}
    return Problem(
        dim,
        logistic_gradient,
        sample_strategic,
        logistic_curvature,
        logistic_hessian,
        logistic_loss,
        row_size=dim + 1,
        params=population.packed(),
        theta_0=theta_0,
        state_0=np.zeros(1 + agents + 2 * agents * moving + moving),
        name=name,
        settings=own if settings is None else settings,
        solve=population.solve,
    )


def strategic_logistic(
    dim: int = 5,
    *,
    agents: int = 1_000,
    reach: float = 0.4,
    speed: float = 0.5,
    share: float = 0.1,
    ridge: float = 0.01,
    theta_0: ArrayLike | None = None,
) -> Problem:
    """Strategic classification of a fixed synthetic population whose answers move the classifier visibly."""
    check_count("dim", dim)
    check_count("agents", agents, at_least=dim + 1)
    features, labels = synthetic_population(dim, agents)
    return strategic_world(
        features,
        labels,
        range(dim - math.ceil(0.6 * dim), dim),
        reach=reach,
        speed=speed,
        share=share,
        ridge=ridge,
        theta_0=theta_0,
        name="strategic-logistic",
    )


def synthetic_population(dim: int, agents: int) -> tuple[Vector, Vector]:
    """Standard normal features and mostly positive labels, always the same.

    The classifier has no intercept. Where seven in eight labels are positive, it comes to use the answers themselves as
    one: they lift everybody's score, that calls for a larger theta, which lifts scores further. At lambda = 0.4 this
    doubles the modifiable coefficients and more than halves the smallest eigenvalue of A against the static Hessian's.
    """
    rng = np.random.default_rng(_POPULATION_SEED)
    features = rng.standard_normal((agents, dim))
    chance = 1.0 / (1.0 + np.exp(-2.0 - features @ np.linspace(0.1, 0.5, dim)))
    return features, (rng.random(agents) < chance).astype(np.float64)
