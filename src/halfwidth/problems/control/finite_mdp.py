"""Finite Markov decision processes, and the linear algebra of the chains that policies make of them.

From state s the action a leads to an outcome (e, s'): the next state s', within the episode (e = 0) or after its end
(e = 1), where s' is the first state of the next one. A process has the probabilities p(e, s' | s, a), the rewards
r(s, a, e, s') and a discount gamma. A policy b(a | s) makes a chain on the states, P(s, s') = sum b(a | s) p(e, s' | s,
a), whose stationary law pi solves pi P = pi: ends of episodes belong to the chain.

- `garnet` (S. Bhatnagar, R. Sutton, M. Ghavamzadeh and M. Lee, Automatica 45, 2009): every pair (s, a) leads to a few
  random states, with random probabilities and rewards.
- `random_walk` (R. Sutton and A. Barto, *Reinforcement learning*, example 6.2): a line of states, left or right with
  equal chance; leaving it on the right pays 1, and the next episode begins in the middle.
- `frozen_lake`: the four by four map of Gymnasium's FrozenLake-v1, slippery; reaching the goal pays 1, and the episode
  begins again after the goal or a hole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from halfwidth.checks import check_count
from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector

LAKE = ("SFFF", "FHFH", "FFFH", "HFFG")
_MOVES = ((0, -1), (1, 0), (0, 1), (-1, 0))  # left, down, right, up, as Gymnasium numbers them


@dataclass(frozen=True)
class FiniteMDP:
    """A process of S states and A actions.

    Parameters
    ----------
    transitions, rewards : ndarray of shape (S, A, 2, S)
        p and r; the third index says whether the next state is within the episode or begins the next one.
    discount : float
        gamma, from 0 to below 1.
    """

    transitions: Vector
    rewards: Vector
    discount: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.discount < 1.0:
            raise InputError.of("discount", "satisfy 0 <= discount < 1", self.discount)

    @property
    def states(self) -> int:
        return len(self.transitions)

    @property
    def actions(self) -> int:
        return int(self.transitions.shape[1])

    def uniform(self) -> Vector:
        """The policy that chooses every action with equal probability."""
        return np.full((self.states, self.actions), 1.0 / self.actions)

    def chain(self, policy: Vector) -> Vector:
        """P(s, s') under a policy (S, A), ends of episodes included."""
        return np.asarray(np.einsum("sa,saet->st", policy, self.transitions))


def stationary_law(P: Vector) -> Vector:
    """pi with pi P = pi; refuses a chain in which some state is never reached again."""
    size = len(P)
    system = np.vstack([P.T - np.eye(size), np.ones(size)])
    pi = np.linalg.lstsq(system, np.append(np.zeros(size), 1.0), rcond=None)[0]
    if not (np.abs(pi @ P - pi).max() < 1e-9 and (pi > 1e-9).all()):
        raise InputError.of("policy", "make a chain in which every state recurs", "one with transient states")
    return np.asarray(pi)


def poisson_solution(P: Vector, pi: Vector, f: Vector) -> Vector:
    """g(s) = sum_h E[f(s_h) - pi f | s_0 = s], one column for each column of f (S, k)."""
    size = len(P)
    centred = f - pi @ f
    return np.asarray(np.linalg.solve(np.eye(size) - P + np.outer(np.ones(size), pi), centred))


def garnet(states: int = 6, actions: int = 2, branching: int = 3, *, discount: float = 0.8, seed: int = 0) -> FiniteMDP:
    """A random process: every (s, a) leads to `branching` states; rewards are uniform on [0, 1]."""
    for name, value in (("states", states), ("actions", actions), ("branching", branching)):
        check_count(name, value)
    if branching > states:
        raise InputError.of("branching", f"be at most the {states} states", branching)
    rng = np.random.default_rng(seed)
    p = np.zeros((states, actions, 2, states))
    for s in range(states):
        for a in range(actions):
            p[s, a, 0, rng.choice(states, branching, replace=False)] = rng.dirichlet(np.ones(branching))
    r = np.broadcast_to(rng.random((states, actions))[:, :, None, None], p.shape)
    return FiniteMDP(p, np.array(r), discount)


def random_walk(states: int = 5, *, discount: float = 0.9) -> FiniteMDP:
    """A line of states with one action; an episode ends beyond either end and the next begins in the middle."""
    check_count("states", states, at_least=3)
    p = np.zeros((states, 1, 2, states))
    r = np.zeros_like(p)
    for s in range(states):
        for t in (s - 1, s + 1):
            if 0 <= t < states:
                p[s, 0, 0, t] = 0.5
            else:
                p[s, 0, 1, states // 2] = 0.5
    r[-1, 0, 1] = 1.0
    return FiniteMDP(p, r, discount)


def frozen_lake(*, discount: float = 0.95) -> FiniteMDP:
    """FrozenLake-v1, slippery: the intended move or one of its two neighbours, each with probability 1/3.

    Holes and the goal are no states of the chain: the step that enters one ends the episode.
    """
    cells = [(i, j) for i in range(4) for j in range(4) if LAKE[i][j] in "SF"]
    number = {cell: k for k, cell in enumerate(cells)}
    p = np.zeros((len(cells), 4, 2, len(cells)))
    r = np.zeros_like(p)
    for (i, j), s in number.items():
        for a in range(4):
            for slip in (-1, 0, 1):
                di, dj = _MOVES[(a + slip) % 4]
                cell = (min(max(i + di, 0), 3), min(max(j + dj, 0), 3))
                if cell in number:
                    p[s, a, 0, number[cell]] += 1.0 / 3.0
                else:
                    p[s, a, 1, 0] += 1.0 / 3.0
                    r[s, a, 1, 0] = float(LAKE[cell[0]][cell[1]] == "G")  # no cell borders on both a hole and the goal
    return FiniteMDP(p, r, discount)
