"""Q-learning with a fixed behaviour policy on a finite process: `q-learning`, with its exact fixed point.

With features phi(s, a) (one coefficient for each pair when tabular), actions by b, and c = 0 at the end of an episode,
the field is

    phi(s, a) (phi(s, a)'theta - r - gamma c max_a' phi(s', a')'theta).

A row is (phi(s, a), r, c, phi(s', .)). Where the maximum is unique at theta*, with the greedy action a*(s'), the mean
field is smooth there, with the Jacobian A = E phi (phi(s, a) - gamma c phi(s', a*(s')))'. theta* is found by policy
iteration: the linear equation of a greedy policy is solved until the policy is that of its own solution. S follows from
the Poisson equation of the chain of pairs, as for TD. If two actions tie at theta*, the mean field has a kink there and
averages have no normal limit: the truth is refused, and a result at which two actions of a state are within 3 standard
errors of each other carries the doubt `tied-actions`.

C. Watkins and P. Dayan, Machine Learning 8 (1992); F. Melo, S. Meyn and I. Ribeiro, ICML 2008 (linear features).
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from halfwidth.errors import InputError
from halfwidth.inference import Result
from halfwidth.inference.directions import direction_variances
from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.compile import jitable
from halfwidth.problems.base import Problem, Truth
from halfwidth.problems.control.finite_mdp import FiniteMDP, garnet, poisson_solution, stationary_law
from halfwidth.problems.control.temporal_difference import draw_index
from halfwidth.problems.row_losses import squared_norm

HEAD = 4
SMALLEST_GAP = 1e-8
"""Actions whose values at theta* differ by less, relative to the largest value, are tied: above any rounding error."""
_MOST_POLICIES = 1_000
_TIED, _RECURS = 3.0, 1e-8


@jitable
def sample_q(rng: np.random.Generator, theta: Vector, state: Vector, params: Vector, row: Vector) -> None:
    """The state holds s; actions are uniform."""
    dim = theta.shape[0]
    states, actions, noise = int(params[0]), int(params[1]), params[3]
    outcomes = HEAD + states * actions * dim
    rewards = outcomes + 2 * states * states * actions
    s = int(state[0])
    pair = s * actions + int(rng.random() * actions)
    outcome = draw_index(rng, params, outcomes + 2 * states * pair, 2 * states)
    after = outcome % states
    for j in range(dim):
        row[j] = params[HEAD + pair * dim + j]
    row[dim] = params[rewards + 2 * states * pair + outcome] + noise * rng.standard_normal()
    row[dim + 1] = 1.0 if outcome < states else 0.0
    for j in range(actions * dim):
        row[dim + 2 + j] = params[HEAD + after * actions * dim + j]
    state[0] = float(after)


@jitable
def q_field(theta: Vector, row: Vector, params: Vector, grad: Vector) -> None:
    """phi (phi'theta - r - gamma c max_a' phi(s', a')'theta)."""
    dim = theta.shape[0]
    best = -np.inf
    for a in range(int(params[1])):
        value = 0.0
        for j in range(dim):
            value += row[dim + 2 + a * dim + j] * theta[j]
        best = max(best, value)
    error = -row[dim] - params[2] * row[dim + 1] * best
    for j in range(dim):
        error += row[j] * theta[j]
    for j in range(dim):
        grad[j] = row[j] * error


@jitable
def q_jacobian(theta: Vector, row: Vector, params: Vector, left: Vector, right: Vector) -> tuple[float, float]:
    """phi (phi - gamma c phi(s', a*))' with the action a* that is greedy at theta."""
    dim, greedy, best = theta.shape[0], 0, -np.inf
    for a in range(int(params[1])):
        value = 0.0
        for j in range(dim):
            value += row[dim + 2 + a * dim + j] * theta[j]
        if value > best:
            best, greedy = value, a
    for j in range(dim):
        left[j] = row[j]
        right[j] = row[j] - params[2] * row[dim + 1] * row[dim + 2 + greedy * dim + j]
    return 1.0, 0.0


@jitable
def q_curvature(theta: Vector, row: Vector, params: Vector) -> float:
    """|phi| (|phi| + gamma max_a' |phi(s', a')|), a bound of the row's Jacobian."""
    dim = theta.shape[0]
    own, largest = squared_norm(row, dim), 0.0
    for a in range(int(params[1])):
        largest = max(largest, squared_norm(row[dim + 2 + a * dim :], dim))
    return float(np.sqrt(own) * (np.sqrt(own) + params[2] * row[dim + 1] * np.sqrt(largest)))


def q_learning(
    dim: int | None = None, *, states: int = 4, actions: int = 2, branching: int = 2, discount: float = 0.6,
    noise: float = 0.5, seed: int = 0,
) -> Problem:  # fmt: skip
    """Q-learning on a random process; tabular unless `dim` asks for fewer, random features."""
    mdp = garnet(states, actions, branching, discount=discount, seed=seed)
    pairs = states * actions
    if dim is None or dim == pairs:
        features = np.eye(pairs)
    elif 1 <= dim < pairs:
        features = np.random.default_rng([2, seed]).standard_normal((pairs, dim)) / np.sqrt(dim)
    else:
        raise InputError.of("dim", f"lie between 1 and the {pairs} pairs of state and action", dim)
    if not (np.isfinite(noise) and noise >= 0.0):
        raise InputError.of("noise", "be at least 0 and finite", noise)
    told = {"states": states, "actions": actions, "branching": branching, "discount": discount}
    return q_problem(mdp, features, noise, {**told, "noise": noise, "seed": seed})


def q_problem(mdp: FiniteMDP, features: Vector, noise: float, settings: dict[str, object]) -> Problem:
    """Q-learning on a process, with features (S A, d)."""
    pairs, size = features.shape
    outcomes = np.cumsum(mdp.transitions.reshape(pairs, -1), axis=1)
    head = [mdp.states, mdp.actions, mdp.discount, noise]
    return Problem(
        size,
        q_field,
        sample_q,
        q_curvature,
        row_size=size + 2 + mdp.actions * size,
        params=np.concatenate([head, features.ravel(), outcomes.ravel(), mdp.rewards.ravel()]),
        state_0=np.zeros(1),
        name="q-learning",
        settings={"dim": size, **settings},
        solve=partial(solve_q_learning, mdp, features, noise),
        jacobian=q_jacobian,
        doubts=partial(tied_actions, mdp=mdp, features=features),
    )


def tied_actions(result: Result, mdp: FiniteMDP, features: Vector) -> list[tuple[str, str]]:
    """Whether, in a state that recurs, the best action and another one cannot be told apart."""
    recurring = np.flatnonzero(_reached(mdp) > _RECURS)
    by_state = features.reshape(mdp.states, mdp.actions, -1)
    values = by_state @ result.params
    best = values.argmax(axis=1)
    others = [(s, a) for s in recurring for a in range(mdp.actions) if a != best[s]]
    if not others:
        return []
    directions = np.array([by_state[s, best[s]] - by_state[s, a] for s, a in others])
    errors = np.sqrt(direction_variances(np.nan_to_num(result.covariance), directions) / result.n)
    below = directions @ result.params <= _TIED * errors + SMALLEST_GAP * np.abs(values).max()
    tied = [other for other, is_tied in zip(others, below, strict=True) if is_tied]
    if not tied:
        return []
    named = ", ".join(f"{a} and {best[s]} in state {s}" for s, a in tied[:4]) + (", ..." if len(tied) > 4 else "")
    text = (
        f"actions within {_TIED:g} standard errors of each other ({named}): if they tie, the mean field has a kink at "
        "theta* and there is no normal limit. More rows tell a small gap from a tie"
    )
    return [("tied-actions", text)]


def _reached(mdp: FiniteMDP) -> Vector:
    """The law of the state, long after a start in the first one, actions uniform."""
    lazy = 0.5 * (np.eye(mdp.states) + mdp.chain(mdp.uniform()))
    return np.asarray(np.linalg.matrix_power(lazy, 1 << 20)[0])


def solve_q_learning(mdp: FiniteMDP, features: Vector, noise: float) -> Truth:
    """theta* and Sigma; symbols as in the module's text."""
    states, actions = mdp.states, mdp.actions
    pairs = states * actions
    p = mdp.transitions.reshape(pairs, 2, states)
    r = mdp.rewards.reshape(pairs, 2, states)
    chain = np.repeat(p.sum(axis=1), actions, axis=1) / actions  # of pairs, actions uniform
    pi = stationary_law(chain)
    theta, greedy = _fixed_point(mdp, features, p, r, pi)
    best = features.reshape(states, actions, -1)[np.arange(states), greedy]
    A = features.T @ (pi[:, None] * (features - mdp.discount * p[:, 0] @ best))
    if not (np.linalg.eigvals(A).real > 1e-10).all():
        raise InputError("the mean field of this Q-learning is not stable at its fixed point; choose other features")
    d = r - (features @ theta)[:, None, None]
    d[:, 0] += mdp.discount * (best @ theta)[None, :]
    mean = features * (p * d).sum(axis=(1, 2))[:, None]
    g = poisson_solution(chain, pi, mean)
    after = g.reshape(states, actions, -1).mean(axis=1)
    squares = (p * (d**2 + noise**2)).sum(axis=(1, 2))
    later = np.einsum("x,xi,xs,sj->ij", pi, features, (p * d).sum(axis=1), after)
    S = np.einsum("x,xi,xj->ij", pi * squares, features, features) + later + later.T
    inverse = np.linalg.inv(A)
    return Truth(theta, inverse @ S @ inverse.T)


def _fixed_point(
    mdp: FiniteMDP, features: Vector, p: Vector, r: Vector, pi: Vector
) -> tuple[Vector, NDArray[np.int64]]:
    """theta* and the greedy action of every state; an action stays greedy until another is better beyond rounding."""
    states, actions = mdp.states, mdp.actions
    by_state, every = features.reshape(states, actions, -1), np.arange(states)
    greedy = np.zeros(states, dtype=np.int64)
    right = features.T @ (pi * (p * r).sum(axis=(1, 2)))
    for _ in range(_MOST_POLICIES):
        A = features.T @ (pi[:, None] * (features - mdp.discount * p[:, 0] @ by_state[every, greedy]))
        theta = np.linalg.solve(A, right)
        values = by_state @ theta
        smallest = SMALLEST_GAP * np.abs(values).max()
        new = np.where(values.max(axis=1) > values[every, greedy] + smallest, values.argmax(axis=1), greedy)
        if (new == greedy).all():
            ordered = np.sort(values, axis=1)
            if actions > 1 and (ordered[:, -1] - ordered[:, -2]).min() <= smallest:
                raise InputError(
                    "two actions tie at the fixed point of this Q-learning: its mean field has a kink there and "
                    "averages have no normal limit; choose another seed or other rewards"
                )
            return theta, greedy
        greedy = new
    raise InputError("policy iteration did not settle: this Q-learning has no fixed point; choose other features")
