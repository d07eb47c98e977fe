"""Strategic classification: a population that changes its features in response to the deployed classifier.

Agent i has base features u_i^0, a label y_i and moves the columns S at the quadratic cost sum_j c_j (u_j - u_j^0)^2 /
(2 lambda), c_j = 1 unless given: its best response to theta is u_j = u_j^0 + (lambda / c_j) theta_j (lambda < 0: agents
who want a low score). At every row each agent, independently and with probability `share`, moves a share `speed` of the
way there,

    delta_j <- (1 - speed) delta_j + speed (lambda / c_j) theta_j

for its deviation delta: with c_j = 1 one step alpha = speed lambda of gradient ascent on theta'u minus the cost, and
with speed = 1 the best response itself. Then one agent, drawn at random, is the row (u, y). The loss is the logistic
loss plus ridge |theta|^2 / 2. After Q. Li and H.-T. Wai, *State dependent performative prediction with stochastic
approximation* (AISTATS 2022).

The equilibrium theta* and Sigma are solved in `halfwidth.problems.strategic_population`.

**Cost.** The features of an agent matter only when it is drawn, so its moves since the last time are drawn then: their
times are geometric gaps back from now, and each reads the theta deployed at that row, from a ring buffer of as many
rows as there are agents. One more agent is brought up to date at every row, in turn, so that no agent needs a theta
older than the ring. The law is exact, a row costs O(min(share agents, 40 / speed)) instead of O(share agents), and the
moves that are left out weigh less than 1e-17.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from halfwidth.checks import check_count
from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.compile import jitable
from halfwidth.problems.base import Problem
from halfwidth.problems.row_losses import LOGISTIC
from halfwidth.problems.strategic_population import Population, synthetic_population


@jitable
def catch_up(rng: Generator, agent: int, state: Vector, params: Vector) -> None:
    """Draw the moves of one agent since it was last looked at, newest first, and apply them to its deviation.

    state: the clock; when each agent was last looked at; deviations; the ring of theta_S; work space for one deviation.
    """
    agents, moving = int(params[0]), int(params[1])
    rate, speed = params[2], params[3]
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
            state[fresh + j] += kept * speed * params[4 + j] * state[slot + j]
        kept *= 1.0 - speed
        at -= 1 + int(min(rng.standard_exponential() / rate, 1.0 + agents))
    for j in range(moving):
        state[own + j] = kept * state[own + j] + state[fresh + j]
    state[1 + agent] = now


@jitable
def sample_strategic(rng: Generator, theta: Vector, state: Vector, params: Vector, row: Vector) -> None:
    """Let agents move, draw one, and write its features and label."""
    dim = theta.shape[0]
    agents, moving = int(params[0]), int(params[1])
    state[0] += 1.0
    turn = int(state[0]) % agents
    slot = 1 + agents + agents * moving + turn * moving
    columns = 4 + moving
    for j in range(moving):
        state[slot + j] = theta[int(params[columns + j])]
    catch_up(rng, turn, state, params)
    agent = int(rng.integers(0, agents))
    catch_up(rng, agent, state, params)
    base = columns + moving + agent * dim
    for j in range(dim):
        row[j] = params[base + j]
    for j in range(moving):
        row[int(params[columns + j])] += state[1 + agents + agent * moving + j]
    row[dim] = params[columns + moving + agents * dim + agent]


def strategic_problem(
    features: ArrayLike,
    labels: ArrayLike,
    columns: Sequence[int],
    *,
    reach: float,
    cost: ArrayLike | None = None,
    speed: float = 0.5,
    share: float = 0.1,
    ridge: float = 0.01,
    theta_0: ArrayLike | None = None,
    name: str = "strategic",
    settings: Mapping[str, Any] | None = None,
) -> Problem:
    """Build a strategic classification problem over any population.

    Parameters
    ----------
    features : array_like of shape (agents, d)
        The base features, taken as they are: scale them first.
    labels : array_like of shape (agents,)
        The labels, 0 or 1.
    columns : sequence of int
        The columns that agents can change.
    reach : float
        How far they go (lambda): the best response moves those columns by `reach` times theta over their cost.
    cost : array_like of shape (len(columns),), optional
        What a move of each of those columns costs; 1 for all otherwise.
    speed : float, default 0.5
        The share of the way that an agent goes at each move (alpha / lambda); 1 is the best response.
    share : float, default 0.1
        The probability that an agent moves at a row (n_1 / agents).
    ridge : float, default 0.01
        The penalty: ridge |theta|^2 / 2 is added to the loss.
    theta_0 : array_like of shape (d,), optional
        Where learners start; zero otherwise.
    name : str, default "strategic"
        The name of the problem.
    settings : mapping, optional
        What tables show as the parameters of the problem; by default the arguments.

    Returns
    -------
    Problem
        The problem, with its exact equilibrium as truth.
    """
    population = Population(
        np.array(features, dtype=np.float64),
        np.array(labels, dtype=np.float64),
        tuple(int(column) for column in columns),
        np.ones(len(columns)) if cost is None else np.array(cost, dtype=np.float64),
        float(reach),
        float(speed),
        float(share),
        float(ridge),
    )
    agents, dim, moving = len(population.features), population.dim, len(population.columns)
    own = {"dim": dim, "agents": agents, "reach": reach, "speed": speed, "share": share, "ridge": ridge}
    if cost is not None:
        own["cost"] = population.costs.tolist()
    return Problem(
        dim,
        **LOGISTIC._asdict(),
        sample=sample_strategic,
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
    cost: ArrayLike | None = None,
    speed: float = 0.5,
    share: float = 0.1,
    ridge: float = 0.01,
) -> Problem:
    """Strategic classification of a fixed synthetic population whose response moves the classifier visibly."""
    check_count("dim", dim)
    check_count("agents", agents, at_least=dim + 1)
    features, labels = synthetic_population(dim, agents)
    return strategic_problem(
        features,
        labels,
        range(dim - math.ceil(0.6 * dim), dim),
        reach=reach,
        cost=cost,
        speed=speed,
        share=share,
        ridge=ridge,
        name="strategic-logistic",
    )
