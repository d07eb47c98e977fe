"""The built-in problems of policy evaluation: rows of TD(lambda) on a finite chain, with the truth of `Evaluation`.

| problem          | process                                        | features                                 |
|------------------|------------------------------------------------|------------------------------------------|
| `garnet-td`      | 6 states, 2 actions, 3 successors of each pair | standard normal, the same for every seed |
| `random-walk-td` | a line of states, episodes                     | one coefficient for each state           |
| `frozen-lake-td` | FrozenLake-v1, episodes                        | one coefficient for each state           |

`params` holds the counts, gamma, gamma lambda, the noise, and then, one after the other, the tables of the process: the
features, the cumulated probabilities of actions and outcomes, the rewards and the importance weights. The state holds
s, c and z.
"""

from __future__ import annotations

import numpy as np

from halfwidth.checks import check_count
from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.compile import jitable
from halfwidth.problems.base import Problem
from halfwidth.problems.control.finite_mdp import FiniteMDP, frozen_lake, garnet, random_walk
from halfwidth.problems.control.policy_evaluation import Evaluation
from halfwidth.problems.row_losses import squared_norm

HEAD = 6
_FEATURE_SEED = 1


@jitable
def draw_index(rng: np.random.Generator, table: Vector, first: int, count: int) -> int:
    """An index in 0 .. count - 1 by the cumulated probabilities that begin at `first`."""
    u = rng.random()
    at = 0
    while at < count - 1 and u >= table[first + at]:
        at += 1
    return at


@jitable
def sample_td(rng: np.random.Generator, theta: Vector, state: Vector, params: Vector, row: Vector) -> None:
    """One transition of the chain, and the trace before it."""
    dim = theta.shape[0]
    states, actions = int(params[0]), int(params[1])
    gamma, decay, noise = params[3], params[4], params[5]
    policy = HEAD + states * dim
    outcomes = policy + states * actions
    rewards = outcomes + 2 * states * states * actions
    weights = rewards + 2 * states * states * actions
    s, c = int(state[0]), state[1]
    for j in range(dim):
        state[2 + j] = decay * c * state[2 + j] + params[HEAD + s * dim + j]
    pair = s * actions + draw_index(rng, params, policy + s * actions, actions)
    outcome = draw_index(rng, params, outcomes + 2 * states * pair, 2 * states)
    reward = params[rewards + 2 * states * pair + outcome] + noise * rng.standard_normal()
    after = outcome % states
    c = 1.0 if outcome < states else 0.0
    for j in range(dim):
        row[j] = params[weights + pair] * state[2 + j]
        row[dim + j] = params[HEAD + s * dim + j] - gamma * c * params[HEAD + after * dim + j]
    row[2 * dim] = reward
    state[0], state[1] = float(after), c


@jitable
def td_field(theta: Vector, row: Vector, params: Vector, grad: Vector) -> None:
    """z ((phi - gamma c phi')'theta - r)."""
    dim = theta.shape[0]
    error = -row[2 * dim]
    for j in range(dim):
        error += row[dim + j] * theta[j]
    for j in range(dim):
        grad[j] = row[j] * error


@jitable
def td_jacobian(theta: Vector, row: Vector, params: Vector, left: Vector, right: Vector) -> tuple[float, float]:
    """z (phi - gamma c phi')'."""
    dim = theta.shape[0]
    for j in range(dim):
        left[j] = row[j]
        right[j] = row[dim + j]
    return 1.0, 0.0


@jitable
def td_curvature(theta: Vector, row: Vector, params: Vector) -> float:
    """|z| |phi - gamma c phi'|, a bound of the row's Jacobian."""
    dim = theta.shape[0]
    return float(np.sqrt(squared_norm(row, dim) * squared_norm(row[dim:], dim)))


def td_problem(evaluation: Evaluation, name: str, settings: dict[str, object]) -> Problem:
    """The rows of an evaluation as a problem."""
    mdp, dim = evaluation.mdp, evaluation.features.shape[1]
    pairs = mdp.states * mdp.actions
    outcomes = np.cumsum(mdp.transitions.reshape(pairs, -1), axis=1)
    head = [mdp.states, mdp.actions, dim, mdp.discount, mdp.discount * evaluation.trace, evaluation.noise]
    tables = (
        evaluation.features,
        np.cumsum(evaluation.behaviour, axis=1),
        outcomes,
        mdp.rewards,
        evaluation.weights,
    )
    return Problem(
        dim,
        td_field,
        sample_td,
        td_curvature,
        row_size=2 * dim + 1,
        params=np.concatenate([head, *(table.ravel() for table in tables)]),
        state_0=np.append([0.0, 0.0], np.zeros(dim)),
        name=name,
        settings={"dim": dim, **settings},
        solve=evaluation.truth,
        jacobian=td_jacobian,
    )


def mixed_policy(mdp: FiniteMDP, greed: float) -> Vector:
    """The first action with probability `greed` more than the uniform policy gives it."""
    policy = (1.0 - greed) * mdp.uniform()
    policy[:, 0] += greed
    return np.asarray(policy)


def garnet_td(
    dim: int = 2, *, states: int = 6, actions: int = 2, branching: int = 3, discount: float = 0.8,
    trace: float = 0.0, off_policy: float = 0.0, noise: float = 0.0, seed: int = 0,
) -> Problem:  # fmt: skip
    """TD(lambda) on a random process; `off_policy` is how much likelier the evaluated policy takes the first action."""
    check_count("dim", dim)
    if dim > states:
        raise InputError.of("dim", f"be at most the {states} states", dim)
    if not 0.0 <= off_policy <= 1.0:
        raise InputError.of("off_policy", "lie between 0 and 1", off_policy)
    mdp = garnet(states, actions, branching, discount=discount, seed=seed)
    features = np.random.default_rng([_FEATURE_SEED, seed]).standard_normal((states, dim))
    evaluation = Evaluation(mdp, mdp.uniform(), mixed_policy(mdp, off_policy), features, trace, noise)
    told = {"states": states, "actions": actions, "branching": branching, "discount": discount, "trace": trace}
    return td_problem(evaluation, "garnet-td", {**told, "off_policy": off_policy, "noise": noise, "seed": seed})


def random_walk_td(dim: int = 5, *, discount: float = 0.9, trace: float = 0.0, noise: float = 0.0) -> Problem:
    """TD(lambda) for the values of a random walk with episodes, one coefficient for each of `dim` states."""
    mdp = random_walk(dim, discount=discount)
    evaluation = Evaluation(mdp, mdp.uniform(), mdp.uniform(), np.eye(dim), trace, noise)
    return td_problem(evaluation, "random-walk-td", {"discount": discount, "trace": trace, "noise": noise})


def frozen_lake_td(dim: int = 11, *, discount: float = 0.95, trace: float = 0.0, noise: float = 0.0) -> Problem:
    """TD(lambda) for the values of the uniform policy on FrozenLake-v1, one coefficient for each of its 11 states."""
    mdp = frozen_lake(discount=discount)
    if dim != mdp.states:
        raise InputError.of("dim", f"be {mdp.states}, the states of the lake", dim)
    evaluation = Evaluation(mdp, mdp.uniform(), mdp.uniform(), np.eye(dim), trace, noise)
    return td_problem(evaluation, "frozen-lake-td", {"discount": discount, "trace": trace, "noise": noise})
