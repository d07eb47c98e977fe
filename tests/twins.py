"""Slow twins: what the fast code must equal, written from the definitions in plain NumPy and Python."""

import math

import numpy as np


def block_starts(constant, exponent, n):
    """a_1 = 1, a_m = floor(c m^beta), up to row n."""
    starts, m = [1], 2
    while (start := math.floor(constant * m**exponent)) <= n:
        starts.append(start)
        m += 1
    return starts


def overlapping_batch_means(thetas, constant, exponent):
    """Sigma_hat_n = sum_i (W_i - l_i mean)(W_i - l_i mean)' / sum_i l_i, and the sum of the l_i."""
    n, dim = thetas.shape
    centred = thetas - thetas.mean(axis=0)
    starts = block_starts(constant, exponent, n)
    scatter, ages, block = np.zeros((dim, dim)), 0, 0
    for i in range(1, n + 1):
        while block + 1 < len(starts) and starts[block + 1] <= i:
            block += 1
        first = starts[block]
        w = centred[first - 1 : i].sum(axis=0)
        scatter += np.outer(w, w)
        ages += i - first + 1
    return scatter / ages, ages


def batch_means_map(starts, n):
    """The matrix that takes n iterates (of one coordinate) to the n centred block sums W_i - l_i mean."""
    matrix = np.zeros((n, n))
    for first, end in zip(starts, [*starts[1:], n + 1], strict=True):
        for i in range(first, end):
            matrix[i - 1, first - 1 : i] = 1.0
            matrix[i - 1] -= (i - first + 1) / n
    return matrix


def studentised_means(noise, starts):
    """sqrt(n) mean and Sigma_hat of each replicate: noise is (replicates, n, q); returns (replicates, q), (., q, q)."""
    replicates, n, q = noise.shape
    means = noise.mean(axis=1)
    centred = noise - means[:, None]
    scatter, ages = np.zeros((replicates, q, q)), 0
    for first, end in zip(starts, [*starts[1:], n + 1], strict=True):
        sums = np.cumsum(centred[:, first - 1 : end - 1], axis=1)
        scatter += np.einsum("rip,riq->rpq", sums, sums)
        ages += (end - first) * (end - first + 1) // 2
    return math.sqrt(n) * means, scatter / ages


def sgd(gradient, draw, theta, steps, curvature=None):
    """theta_{k+1} = theta_k - eta_{k+1} g(theta_k, x_{k+1}), the step capped at 1/curvature if one is given.

    `draw(theta)` gives the row that the world makes while theta is deployed. Returns the iterates and the number of
    capped steps.
    """
    iterates, capped = [], 0
    for eta in steps:
        row = draw(theta)
        if curvature is not None and eta * curvature(theta, row) > 1.0:
            eta, capped = 1.0 / curvature(theta, row), capped + 1
        theta = theta - eta * gradient(theta, row)
        iterates.append(theta)
    return np.array(iterates), capped


def truncated_sgd(gradient, world, theta_0, steps, threshold, radius):
    """Algorithm 1: back to the start, world included, when a move reaches d_k or leaves K_q; k runs on."""
    theta, q, hits, iterates = theta_0, 0, [], []
    for k, eta in enumerate(steps):
        new = theta - eta * gradient(theta, world.draw(theta))
        if np.linalg.norm(new - theta) >= threshold(k) or np.linalg.norm(new) > radius(q):
            new, q = theta_0, q + 1
            world.reset()
            hits.append(k + 1)
        theta = new
        iterates.append(theta)
    return np.array(iterates), hits


class SeedLinearWorld:
    """u_k = (1 - rho) u_{k-1} + rho v_k + rho epsilon theta w_k and y = u'theta_r + noise.

    The draws come from the generator in the order w, v_1, ..., v_d, noise.
    """

    def __init__(self, rng, theta_r, *, rho=0.5, epsilon=0.5, noise=1.0):
        self.rng, self.theta_r = rng, theta_r
        self.rho, self.epsilon, self.noise = rho, epsilon, noise
        self.reset()

    def reset(self):
        self.u = np.zeros(len(self.theta_r))

    def draw(self, theta):
        w = self.noise * self.rng.standard_normal()
        v = self.noise * np.array([self.rng.standard_normal() for _ in self.u])
        self.u = (1 - self.rho) * self.u + self.rho * v + self.rho * self.epsilon * theta * w
        y = self.u @ self.theta_r + self.noise * self.rng.standard_normal()
        return np.append(self.u, y)


class SeedLogisticWorld(SeedLinearWorld):
    """The same features with y ~ Bernoulli(s(u'theta_r))."""

    def draw(self, theta):
        w = self.noise * self.rng.standard_normal()
        v = self.noise * np.array([self.rng.standard_normal() for _ in self.u])
        self.u = (1 - self.rho) * self.u + self.rho * v + self.rho * self.epsilon * theta * w
        y = float(self.rng.random() < 1.0 / (1.0 + math.exp(-self.u @ self.theta_r)))
        return np.append(self.u, y)


def linear_gradient(theta, row):
    return (row[:-1] @ theta - row[-1]) * row[:-1]


def logistic_gradient(theta, row, ridge=0.01):
    return (1.0 / (1.0 + math.exp(-row[:-1] @ theta)) - row[-1]) * row[:-1] + ridge * theta
