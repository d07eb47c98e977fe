"""The exact stationary point of an entropy-regularised policy, its Jacobian and its limit covariance.

Actions follow the softmax policy pi(a | s) of x(s, a)'beta. Episodes end with probability 1 - gamma after every step,
so that the objective is the discounted one, with an entropy bonus tau:

    R(beta) = E sum_k (r_k - tau log pi(a_k | s_k))   over an episode.

With values v(s), c = 1 within an episode and 0 at its end, the temporal difference is d = r - tau log pi(a | s) + c
v(s') - v(s) and the score is psi = x(s, a) - sum_b pi(b | s) x(s, b). The field of theta = (v, beta) is

    (- d e_s, - kappa d psi):

the critic's block vanishes at the values of pi, and there the mean of the actor's block is -kappa grad R(beta) over the
mean length of an episode (R. Sutton, D. McAllester, S. Singh and Y. Mansour 2000): theta* is a stationary point of R.
It is found by ascent of R from beta = 0, and by Newton's method on the field.

Rows follow beta. With q the stationary law of the chain of outcomes (s, a, e, s'), the Jacobian of the mean field is

    A = E (derivative of the field at fixed rows) + sum field (d q / d beta)',
    d log q / d beta = psi(s, a) + d log pi_s / d beta,   d pi_s / d beta = pi_s (dP / d beta) (I - P + 1 pi_s')^-1,

and S = E f f' + E f_k g(s_{k+1})' + its transpose, with g the solution of the chain's Poisson equation: f has a mean
given s where features do not tell all pairs apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import minimize

from halfwidth.errors import InputError
from halfwidth.inference import Result
from halfwidth.inference.directions import direction_variances
from halfwidth.kernels.arrays import Vector
from halfwidth.problems.base import Truth
from halfwidth.problems.control.finite_mdp import FiniteMDP, poisson_solution, stationary_law

_MOST_STEPS = 50
_NOISE_ROWS, _MOST_NOISE = 1_000, 0.4
"""A deployed theta is as noisy as an estimate from some thousand rows; where that moves log odds by more, intervals of
`auto` were too short."""


@dataclass(frozen=True)
class PolicyClass:
    """Softmax policies of features x (S, A, p) on a process whose episodes end; tau, kappa, and the rewards' noise."""

    mdp: FiniteMDP
    features: Vector
    entropy: float
    speed: float
    noise: float

    @property
    def dim(self) -> int:
        return self.mdp.states + int(self.features.shape[-1])

    def policy(self, beta: Vector) -> Vector:
        """pi(a | s), (S, A)."""
        return np.exp(self.log_policy(beta))

    def log_policy(self, beta: Vector) -> Vector:
        logits = self.features @ beta
        logits = logits - logits.max(axis=1, keepdims=True)
        return np.asarray(logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)))

    def values(self, beta: Vector) -> Vector:
        """v(s) of the policy, by its Bellman equation."""
        policy, mdp = self.policy(beta), self.mdp
        reward = np.einsum("sa,saet,saet->s", policy, mdp.transitions, mdp.rewards)
        within = np.einsum("sa,sat->st", policy, mdp.transitions[:, :, 0])
        entropy = -(policy * self.log_policy(beta)).sum(axis=1)
        return np.asarray(np.linalg.solve(np.eye(mdp.states) - within, reward + self.entropy * entropy))

    def objective(self, beta: Vector) -> float:
        """R(beta), from the law of first states."""
        first = self.mdp.transitions[0, 0, 1]
        return float(first @ self.values(beta) / first.sum())

    def doubts(self, result: Result) -> list[tuple[str, str]]:
        """Whether the policy bends over the range in which a deployed theta moves."""
        differences = (self.features[:, 1:] - self.features[:, :1]).reshape(-1, self.dim - self.mdp.states)
        covariance = result.covariance[self.mdp.states :, self.mdp.states :]
        moved = math.sqrt(direction_variances(np.nan_to_num(covariance), differences).max() / _NOISE_ROWS)
        if moved <= _MOST_NOISE:
            return []
        text = (
            f"the noise of {_NOISE_ROWS:,} rows moves the log odds of two actions by {moved:.2g} (limit "
            f"{_MOST_NOISE:g}): over that range the policy is not linear, and intervals are likely too short. Raise "
            "the entropy bonus; more rows help slowly"
        )
        return [("curved-policy", text)]

    def truth(self) -> Truth:
        """theta* and Sigma; refuses a point that is not stable."""

        def descent(beta: Vector) -> tuple[float, Vector]:
            gradient = MeanField(self, np.concatenate([self.values(beta), beta])).mean[self.mdp.states :]
            return -self.objective(beta), gradient * (lengths / self.speed)

        lengths = 1.0 / self.mdp.transitions[0, 0, 1].sum()
        start = minimize(
            descent, np.zeros(self.dim - self.mdp.states), jac=True, method="BFGS", options={"gtol": 1e-10}
        ).x
        theta = np.concatenate([self.values(start), start])
        for _ in range(_MOST_STEPS):
            at = MeanField(self, theta)
            step = np.linalg.solve(at.jacobian, at.mean)
            theta = theta - step
            if np.abs(step).max() < 1e-11 * (1.0 + np.abs(theta).max()):
                break
        else:
            raise InputError("no stationary point of this policy was found: more entropy makes it flatter")
        at = MeanField(self, theta)
        if not (np.linalg.eigvals(at.jacobian).real > 1e-10).all():
            raise InputError("the mean field of this actor and critic is not stable at its root: choose another seed")
        inverse = np.linalg.inv(at.jacobian)
        return Truth(theta, inverse @ at.long_run @ inverse.T)


class MeanField:
    """The mean field at theta, its Jacobian A and S there; symbols as in the module's text."""

    def __init__(self, of: PolicyClass, theta: Vector) -> None:
        mdp, states = of.mdp, of.mdp.states
        self.of, v, beta = of, theta[:states], theta[states:]
        self.policy = of.policy(beta)
        self.P = mdp.chain(self.policy)
        self.pi = stationary_law(self.P)
        self.joint = self.pi[:, None, None, None] * self.policy[:, :, None, None] * mdp.transitions
        self.score = of.features - np.einsum("sa,saj->sj", self.policy, of.features)[:, None]
        self.d = mdp.rewards - of.entropy * of.log_policy(beta)[:, :, None, None] - v[:, None, None, None]
        self.d[:, :, 0] += v
        eyes = np.broadcast_to(np.eye(states)[:, None], (states, mdp.actions, states))
        self.direction = np.concatenate([eyes, of.speed * self.score], axis=2)  # the field is -d times this
        self.mean = -np.einsum("saet,saet,sai->i", self.joint, self.d, self.direction)

    @cached_property
    def jacobian(self) -> Vector:
        """A."""
        return self._fixed_rows() + self._response()

    def _fixed_rows(self) -> Vector:
        of, states = self.of, self.of.mdp.states
        A = np.zeros((of.dim, of.dim))
        A[:, :states] += np.einsum("saet,sai,sj->ij", self.joint, self.direction, np.eye(states))
        A[:, :states] -= np.einsum("sat,sai->it", self.joint[:, :, 0], self.direction)
        A[:, states:] += of.entropy * np.einsum("saet,sai,saj->ij", self.joint, self.direction, self.score)
        spread = np.einsum("sa,sai,saj->sij", self.policy, self.score, self.score)
        A[states:, states:] += of.speed * np.einsum("saet,saet,sij->ij", self.joint, self.d, spread)
        return A

    def _response(self) -> Vector:
        of, states = self.of, self.of.mdp.states
        moved = np.einsum("sa,saj,saet->stj", self.policy, self.score, of.mdp.transitions)
        fundamental = np.linalg.inv(np.eye(states) - self.P + np.outer(np.ones(states), self.pi))
        law = np.einsum("s,stj,tu->uj", self.pi, moved, fundamental) / self.pi[:, None]
        change = self.score + law[:, None]
        J = np.zeros((of.dim, of.dim))
        J[:, states:] = -np.einsum("saet,saet,sai,saj->ij", self.joint, self.d, self.direction, change)
        return J

    @property
    def long_run(self) -> Vector:
        """S."""
        mean = -np.einsum("saet,saet,sai->si", self.joint, self.d, self.direction) / self.pi[:, None]
        g = poisson_solution(self.P, self.pi, mean)
        squares = self.joint * (self.d**2 + self.of.noise**2)
        later = -np.einsum("saet,saet,sai,tj->ij", self.joint, self.d, self.direction, g)
        at_once = np.einsum("saet,sai,saj->ij", squares, self.direction, self.direction)
        return np.asarray(at_once + later + later.T)
