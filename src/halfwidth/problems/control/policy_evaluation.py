"""Policy evaluation by TD(lambda) with linear features: `garnet-td`, `random-walk-td` and `frozen-lake-td`.

The chain moves from s to s' with reward r; c is 1 within an episode and 0 at its end. With features phi and the trace

    z_k = gamma lambda c_k z_{k-1} + phi(s_k),

the field is z ((phi(s) - gamma c phi(s'))'theta - r): TD(lambda), with the Jacobian z (phi(s) - gamma c phi(s'))',
which is not symmetric. A row is (z, phi(s) - gamma c phi(s'), r). Off policy, with actions by b and values of the
target policy, TD(0) takes z = rho phi(s) with the importance weight rho = target(a | s) / b(a | s).

Everything is linear algebra on the states. Write D = gamma lambda, Pc(s, s') for the transitions within episodes, m(s)
= E[z 1{s}], M(s) = E[z z' 1{s}]:

    m(s') = D sum_s Pc(s, s') m(s) + pi(s') phi(s'),
    M(s') = D^2 sum_s Pc M(s) + D sum_s Pc (m(s) phi(s')' + phi(s') m(s)') + pi(s') phi(s') phi(s')',
    A = sum_s m(s) phi(s)' - gamma sum Pc(s, s') m(s) phi(s')',   b = sum_s m(s) E[r | s],   theta* = A^-1 b.

The noise f_k = z_k d_k, d = r + gamma c phi(s')'theta* - phi(s)'theta*, is a function of the chain (s, z). Its Poisson
equation has the solution g(s, z) = a(s) z + e(s) with a = (I - D Pc)^-1 E[d | s] and e that of P (a phi), and

    S = E f f' + E f_k g(s_{k+1}, z_{k+1})' + its transpose,   Sigma = A^-1 S A^-T.

R. Sutton, Machine Learning 3 (1988); J. Tsitsiklis and B. Van Roy, IEEE Trans. Automatic Control 42 (1997).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.problems.base import Truth
from halfwidth.problems.control.finite_mdp import FiniteMDP, poisson_solution, stationary_law


@dataclass(frozen=True)
class Evaluation:
    """What is evaluated: the process, the policy that acts, the policy whose values are learned, and the features."""

    mdp: FiniteMDP
    behaviour: Vector
    target: Vector
    features: Vector
    trace: float = 0.0
    noise: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.trace <= 1.0:
            raise InputError.of("trace", "lie between 0 and 1", self.trace)
        if not (np.isfinite(self.noise) and self.noise >= 0.0):
            raise InputError.of("noise", "be at least 0 and finite", self.noise)
        if self.off_policy and self.trace > 0.0:
            raise InputError.of("trace", "be 0 off policy, where only TD(0) is built in", self.trace)
        if (self.behaviour[self.target > 0.0] <= 0.0).any():
            raise InputError("the behaviour policy must take every action that the target policy takes")

    @property
    def off_policy(self) -> bool:
        return bool((self.behaviour != self.target).any())

    @property
    def weights(self) -> Vector:
        """rho(s, a), and 0 where the behaviour policy never goes."""
        taken = self.behaviour > 0.0
        return np.where(taken, self.target / np.where(taken, self.behaviour, 1.0), 0.0)

    def truth(self) -> Truth:
        """theta* and Sigma by linear algebra; refuses a field that is not stable."""
        return _Solution(self).truth()


class _Solution:
    """The moments of the chain under an evaluation; symbols as in the module's text."""

    def __init__(self, of: Evaluation) -> None:
        self.of = of
        mdp, gamma = of.mdp, of.mdp.discount
        # Outcomes of the chain, (S, A, 2, S): the probability of each, and its part in the field.
        self.joint = of.behaviour[:, :, None, None] * mdp.transitions
        self.rho = np.broadcast_to(of.weights[:, :, None, None], self.joint.shape)
        self.P = self.joint.sum(axis=(1, 2))
        self.within = self.joint[:, :, 0].sum(axis=1)
        self.pi = stationary_law(self.P)
        self.decay = gamma * of.trace
        eye = np.eye(mdp.states)
        self.m = np.linalg.solve(eye - self.decay * self.within.T, self.pi[:, None] * of.features)
        self.M = self._second_moments()
        weighted = self.joint * self.rho
        continuing = weighted[:, :, 0].sum(axis=1)
        self.A = self.m.T @ of.features - gamma * self.m.T @ continuing @ of.features
        self.b = self.m.T @ (weighted * mdp.rewards).sum(axis=(1, 2, 3))

    def _second_moments(self) -> Vector:
        features, pi, within, decay = self.of.features, self.pi, self.within, self.decay
        arriving = np.einsum("st,si,tj->tij", within, self.m, features)
        known = decay * (arriving + np.swapaxes(arriving, 1, 2)) + np.einsum("t,ti,tj->tij", pi, features, features)
        flat = np.linalg.solve(np.eye(len(pi)) - decay**2 * within.T, known.reshape(len(pi), -1))
        return np.asarray(flat.reshape(known.shape))

    def truth(self) -> Truth:
        if not (np.linalg.eigvals(self.A).real > 1e-10).all():
            raise InputError(
                "the mean field of this evaluation is not stable (an eigenvalue of its Jacobian has no positive real "
                "part): TD diverges. Evaluate on policy, or use features that tell the states apart"
            )
        theta = np.linalg.solve(self.A, self.b)
        inverse = np.linalg.inv(self.A)
        return Truth(theta, inverse @ self._long_run(theta) @ inverse.T)

    def _long_run(self, theta: Vector) -> Vector:
        """S at theta."""
        mdp, features = self.of.mdp, self.of.features
        values = features @ theta
        d = mdp.rewards - values[:, None, None, None]
        d[:, :, 0] += mdp.discount * values[None, None, :]
        weighted = self.joint * self.rho * d
        a = np.linalg.solve(np.eye(mdp.states) - self.decay * self.within, weighted.sum(axis=(1, 2, 3)))
        shift = a[:, None] * features
        e = poisson_solution(self.P, self.pi, self.P @ shift)
        squares = (self.joint * self.rho**2 * (d**2 + self.of.noise**2)).sum(axis=(1, 2, 3))
        at_once = np.einsum("s,sij->ij", squares, self.M)
        # f_k g(s', z')' with z' = D c z + phi(s'): within an episode the old trace stays in z'.
        stays = weighted[:, :, 0].sum(axis=1)
        later = self.decay * np.einsum("st,t,sij->ij", stays, a, self.M)
        later += np.einsum("st,si,tj->ij", weighted.sum(axis=(1, 2)), self.m, shift + e)
        return np.asarray(at_once + later + later.T)
