"""The population of a strategic classification problem, and its exact equilibrium.

With s the logistic function, L the diagonal matrix of lambda / c_j in the columns S and 0 elsewhere, u_i = u_i^0 + L
theta the features of agent i at its best response to theta, and m_i = u_i'theta:

theta* is the root of F(theta) = mean_i (s(m_i) - y_i) u_i + ridge theta, found by Newton's method, with lambda
grown from 0 (where the loss is convex) in steps.

A is the derivative of F: the static Hessian mean s'(m) u u' + ridge I, plus the response

    J = mean_i (s'(m_i) u_i theta' + (s(m_i) - y_i) I) L.

S: at fixed theta all deviations tend to L theta with certainty, and agents are drawn independently: the
gradient noise at theta* is iid and S = mean_i g_i g_i'. The movement adds nothing in the limit: which agents moved
matters only through delta_i - L theta*, which vanishes with theta_k - theta*, so it scales the noise by 1 +
o(1); and delta lags behind theta, but sum_k delta_k and L sum_k theta_k differ by boundary terms only, so
averages see the same A. Sigma = A^-1 S A^-T. With slow agents (share * speed small) the limit needs more rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.problems.base import Truth

_POPULATION_SEED = 20240


@dataclass(frozen=True)
class Population:
    """Agents with base features and labels, and how they respond to a classifier: as `strategic_problem` says."""

    features: Vector
    labels: Vector
    columns: tuple[int, ...]
    costs: Vector
    reach: float
    speed: float
    share: float
    ridge: float

    def __post_init__(self) -> None:
        features, labels = self.features, self.labels
        if features.ndim != 2 or not features.size or not np.isfinite(features).all():
            raise InputError.of("features", "be a table of finite numbers, one agent in each row", features.shape)
        if labels.shape != (len(features),) or not np.isin(labels, (0.0, 1.0)).all():
            raise InputError.of("labels", f"be {len(features)} numbers, each 0 or 1", labels)
        if len(set(self.columns)) < len(self.columns) or not set(self.columns) <= set(range(features.shape[1])):
            raise InputError.of("columns", f"be different columns of the {features.shape[1]} there are", self.columns)
        if self.costs.shape != (len(self.columns),) or not (np.isfinite(self.costs) & (self.costs > 0.0)).all():
            raise InputError.of("cost", f"be {len(self.columns)} positive numbers, one for each column", self.costs)
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
        head = [len(self.features), len(self.columns), min(rate, 1e300), self.speed]
        lengths = self.reach / self.costs
        return np.concatenate([head, lengths, self.columns, self.features.ravel(), self.labels, [self.ridge]])

    def lengths(self, reach: float) -> Vector:
        """The diagonal of L at this lambda."""
        lengths = np.zeros(self.dim)
        lengths[list(self.columns)] = reach / self.costs
        return lengths

    def responded(self, theta: Vector, reach: float) -> Vector:
        """Return the features of all agents at their best response to theta."""
        return np.asarray(self.features + self.lengths(reach) * theta)

    def mean_field(self, theta: Vector, reach: float) -> tuple[Vector, Vector, Vector]:
        """The mean gradient F, its Jacobian A, and the gradient of every agent."""
        from scipy.special import expit

        u = self.responded(theta, reach)
        s = expit(u @ theta)
        residual = s - self.labels
        gradients = residual[:, None] * u + self.ridge * theta
        weighted = (s * (1.0 - s))[:, None] * u
        static = weighted.T @ u / len(u) + self.ridge * np.eye(self.dim)
        response = np.outer(weighted.mean(axis=0), theta) + residual.mean() * np.eye(self.dim)
        return gradients.mean(axis=0), static + response * self.lengths(reach), gradients

    def solve(self) -> Truth:
        """theta* by Newton's method along a path in lambda, and Sigma."""
        theta = np.zeros(self.dim)
        for reach in np.linspace(0.0, self.reach, 21):
            theta = self._newton(theta, float(reach))
        _, A, gradients = self.mean_field(theta, self.reach)
        if np.linalg.eigvals(A).real.min() <= 0:
            raise InputError.of("reach lambda", "leave the equilibrium stable; the response is too strong", self.reach)
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


def synthetic_population(dim: int, agents: int) -> tuple[Vector, Vector]:
    """Standard normal features and mostly positive labels, always the same.

    The classifier has no intercept. With seven in eight labels positive, the response of the agents takes its place: it
    raises all scores, which calls for a larger theta, which raises scores further. At lambda = 0.4 this doubles the
    modifiable coefficients and more than halves the smallest eigenvalue of A against the static Hessian's.
    """
    rng = np.random.default_rng(_POPULATION_SEED)
    features = rng.standard_normal((agents, dim))
    chance = 1.0 / (1.0 + np.exp(-2.0 - features @ np.linspace(0.1, 0.5, dim)))
    return features, (rng.random(agents) < chance).astype(np.float64)
