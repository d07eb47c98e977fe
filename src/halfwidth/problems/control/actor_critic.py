"""An actor and a critic on a small process: `actor-critic`, a field whose rows follow the policy that is learned.

theta = (v, beta): the critic's value of every state, and the actor's coefficients. A row is a transition (s, a, r, c,
s'), drawn while the policy of the deployed beta acts; the field is (-d e_s, -kappa d psi), `policy_gradient`. kappa is
the ratio of the two step sizes, below 1: the critic is the faster one. A ratio that goes to zero (V. Konda and J.
Tsitsiklis 2000) has averages with the same limit covariance A^-1 S A^-T (A. Mokkadem and M. Pelletier 2006), and for
`auto`, which scales every direction by its own curvature, kappa makes no difference.
"""

from __future__ import annotations

import numpy as np

from halfwidth.checks import check_count, check_positive
from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.compile import jitable
from halfwidth.problems.base import Problem
from halfwidth.problems.control.finite_mdp import FiniteMDP, garnet
from halfwidth.problems.control.policy_gradient import PolicyClass
from halfwidth.problems.control.temporal_difference import draw_index

HEAD = 5
_FEATURE_SEED = 3


@jitable
def probability(theta: Vector, params: Vector, s: int, a: int) -> float:
    """pi(a | s); `params` is (S, A, tau, kappa, noise), x, and the tables of the process."""
    states, actions = int(params[0]), int(params[1])
    size = theta.shape[0] - states
    own, largest, total = 0.0, -np.inf, 0.0
    for b in range(actions):
        logit = 0.0
        for j in range(size):
            logit += params[HEAD + (s * actions + b) * size + j] * theta[states + j]
        if b == a:
            own = logit
        if logit > largest:
            total = total * np.exp(largest - logit) + 1.0
            largest = logit
        else:
            total += np.exp(logit - largest)
    return float(np.exp(own - largest) / total)


@jitable
def score(theta: Vector, params: Vector, s: int, a: int, j: int) -> float:
    """The j-th element of psi(s, a)."""
    states, actions = int(params[0]), int(params[1])
    size = theta.shape[0] - states
    value = params[HEAD + (s * actions + a) * size + j]
    for b in range(actions):
        value -= probability(theta, params, s, b) * params[HEAD + (s * actions + b) * size + j]
    return float(value)


@jitable
def difference(theta: Vector, row: Vector, params: Vector) -> float:
    """d = r - tau log pi(a | s) + c v(s') - v(s)."""
    s, a = int(row[0]), int(row[1])
    bonus = -params[2] * np.log(probability(theta, params, s, a))
    return float(row[2] + bonus + row[3] * theta[int(row[4])] - theta[s])


@jitable
def sample_actor_critic(rng: np.random.Generator, theta: Vector, state: Vector, params: Vector, row: Vector) -> None:
    """One transition under the policy of beta; the state holds s."""
    states, actions, noise = int(params[0]), int(params[1]), params[4]
    outcomes = HEAD + states * actions * (theta.shape[0] - states)
    rewards = outcomes + 2 * states * states * actions
    s, a, u = int(state[0]), 0, rng.random()
    left = u - probability(theta, params, s, 0)
    while left >= 0.0 and a < actions - 1:
        a += 1
        left -= probability(theta, params, s, a)
    pair = s * actions + a
    outcome = draw_index(rng, params, outcomes + 2 * states * pair, 2 * states)
    row[0], row[1] = float(s), float(a)
    row[2] = params[rewards + 2 * states * pair + outcome] + noise * rng.standard_normal()
    row[3] = 1.0 if outcome < states else 0.0
    row[4] = float(outcome % states)
    state[0] = row[4]


@jitable
def actor_critic_field(theta: Vector, row: Vector, params: Vector, grad: Vector) -> None:
    """(-d e_s, -kappa d psi)."""
    states, d = int(params[0]), difference(theta, row, params)
    grad[:] = 0.0
    grad[int(row[0])] = -d
    for j in range(theta.shape[0] - states):
        grad[states + j] = -params[3] * d * score(theta, params, int(row[0]), int(row[1]), j)


@jitable
def actor_critic_jacobian(theta: Vector, row: Vector, params: Vector, out: Vector) -> None:
    """(e_s, kappa psi) (e_s - c e_s', tau psi)', and kappa d cov(x | s) in the actor's block."""
    states, actions = int(params[0]), int(params[1])
    size, kappa, d = theta.shape[0] - states, params[3], difference(theta, row, params)
    s, a, after = int(row[0]), int(row[1]), int(row[4])
    out[:] = 0.0
    out[s, s] += 1.0
    out[s, after] -= row[3]
    for i in range(size):
        psi = score(theta, params, s, a, i)
        out[s, states + i] = params[2] * psi
        out[states + i, s] += kappa * psi
        out[states + i, after] -= kappa * psi * row[3]
        for j in range(size):
            spread = 0.0
            for b in range(actions):
                own = score(theta, params, s, b, i) * score(theta, params, s, b, j)
                spread += probability(theta, params, s, b) * own
            out[states + i, states + j] = kappa * (params[2] * psi * score(theta, params, s, a, j) + d * spread)


@jitable
def actor_critic_curvature(theta: Vector, row: Vector, params: Vector) -> float:
    """|(e_s, kappa psi)| |(e_s - c e_s', tau psi)| + kappa |d| tr cov(x | s), a bound of the row's Jacobian."""
    states, actions = int(params[0]), int(params[1])
    s, a = int(row[0]), int(row[1])
    norm2, trace = 0.0, 0.0
    for j in range(theta.shape[0] - states):
        norm2 += score(theta, params, s, a, j) ** 2
        for b in range(actions):
            trace += probability(theta, params, s, b) * score(theta, params, s, b, j) ** 2
    left, right = 1.0 + params[3] ** 2 * norm2, 1.0 + row[3] + params[2] ** 2 * norm2
    return float(np.sqrt(left * right) + params[3] * abs(difference(theta, row, params)) * trace)


def episodic_garnet(states: int, actions: int, branching: int, discount: float, seed: int) -> FiniteMDP:
    """A random process with rewards in [-1, 1]; episodes end with probability 1 - discount, and begin in any state."""
    mdp = garnet(states, actions, branching, discount=discount, seed=seed)
    p = discount * mdp.transitions
    p[:, :, 1] = (1.0 - discount) / states
    return FiniteMDP(p, 2.0 * mdp.rewards - 1.0, discount)


def actor_critic(
    dim: int = 6, *, states: int = 4, actions: int = 2, branching: int = 2, discount: float = 0.8,
    entropy: float = 0.5, speed: float = 0.5, noise: float = 0.1, seed: int = 0,
) -> Problem:  # fmt: skip
    """Actor and critic on a random process with episodes: a value per state, and dim - states of the policy."""
    check_count("dim", dim)
    check_count("states", states)
    check_count("actions", actions, at_least=2)
    if not 1 <= dim - states <= states * (actions - 1):
        most = states * actions
        raise InputError.of("dim", f"lie between {states + 1} (values and one of the policy) and {most}", dim)
    if not 0.0 < discount < 1.0:
        raise InputError.of("discount", "satisfy 0 < discount < 1", discount)
    check_positive("entropy", entropy)
    check_positive("speed", speed)
    if not (np.isfinite(noise) and noise >= 0.0):
        raise InputError.of("noise", "be at least 0 and finite", noise)
    mdp = episodic_garnet(states, actions, branching, discount, seed)
    features = np.random.default_rng([_FEATURE_SEED, seed]).standard_normal((states, actions, dim - states))
    outcomes = np.cumsum(mdp.transitions.reshape(states * actions, -1), axis=1)
    tables = (features, outcomes, mdp.rewards)
    settings = {"states": states, "actions": actions, "branching": branching, "discount": discount}
    policies = PolicyClass(mdp, features, entropy, speed, noise)
    return Problem(
        dim,
        actor_critic_field,
        sample_actor_critic,
        actor_critic_curvature,
        row_size=5,
        params=np.concatenate([[states, actions, entropy, speed, noise], *(table.ravel() for table in tables)]),
        state_0=np.zeros(1),
        name="actor-critic",
        settings={"dim": dim, **settings, "entropy": entropy, "speed": speed, "noise": noise, "seed": seed},
        solve=policies.truth,
        jacobian_matrix=actor_critic_jacobian,
        doubts=policies.doubts,
    )
