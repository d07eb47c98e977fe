"""Slow twins: what the fast code must equal, written from the definitions in plain NumPy and Python."""

import math
from itertools import pairwise

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


def sub_batch_rows(n):
    """The smallest power of two L with fewer than 256 whole batches of L rows in n."""
    rows = 1
    while n // rows >= 256:
        rows *= 2
    return rows


def whole_batches(thetas, rows):
    """The means of consecutive batches, the incomplete one left out."""
    return np.array([thetas[at : at + rows].mean(axis=0) for at in range(0, len(thetas) - rows + 1, rows)])


def batch_means(means, rows):
    """b / (m - 1) sum (Y_j - Y_bar)(Y_j - Y_bar)'."""
    gaps = means - means.mean(axis=0)
    return rows * gaps.T @ gaps / (len(means) - 1)


def degrees_of_freedom(form):
    """(tr Q)^2 / tr Q^2 of a quadratic form of independent normals."""
    return np.trace(form) ** 2 / np.trace(form @ form)


def equal_batch_means(thetas, step_exponent, constant, lugsail):
    """Batches of the smallest power of two of at least C n^((1+a)/2) rows, between the two ends of its range."""
    n, rows = len(thetas), 1
    while rows < constant * n ** ((1 + step_exponent) / 2):
        rows *= 2
    while rows > 1 and rows * (16 if lugsail else 4) > n:
        rows //= 2
    rows = max(rows, sub_batch_rows(n) * (2 if lugsail else 1))
    m = n // rows
    used = thetas[: m * rows]
    covariance = batch_means(whole_batches(used, rows), rows)
    if not lugsail:
        return covariance, m - 1
    shorter = batch_means(whole_batches(used, rows // 2), rows // 2)
    pairs = np.kron(np.eye(m), np.ones((1, 2))) / math.sqrt(2)
    form = 2 * pairs.T @ centring(m) @ pairs / (m - 1) - centring(2 * m) / (2 * m - 1)
    return 2 * covariance - shorter, degrees_of_freedom(form)


def centring(m):
    return np.eye(m) - 1 / m


def latest_groups(values, batches):
    """So many equal groups of whole sub-batches, the latest ones: their means and their rows."""
    rows = sub_batch_rows(len(values))
    whole = len(values) // rows
    together = whole // batches
    used = values[(whole - batches * together) * rows : whole * rows]
    return whole_batches(used, together * rows), together * rows


def fixed_batch_means(thetas, batches):
    return batch_means(*latest_groups(thetas, batches)), batches - 1


def increasing_ends(n, batches, step_exponent):
    """e_k = ((k+1) r)^(1/(1-a)) for k = 0, 1, ..., rounded down, with r = n^(1-a) / (M+1); e_M = n."""
    r = n ** (1 - step_exponent) / (batches + 1)
    return [math.floor(((k + 1) * r) ** (1 / (1 - step_exponent)) + 1e-6) for k in range(batches * 20)]


def increasing_batch_means(thetas, planned_rows, batches, step_exponent):
    ends = [e for e in increasing_ends(planned_rows, batches, step_exponent) if e <= len(thetas)]
    overall = thetas[ends[0] : ends[-1]].mean(axis=0)
    covariance = np.zeros((thetas.shape[1], thetas.shape[1]))
    for first, end in pairwise(ends):
        gap = thetas[first:end].mean(axis=0) - overall
        covariance += (end - first) * np.outer(gap, gap)
    return covariance / (len(ends) - 2), len(ends) - 2


def flat_top(thetas, step_exponent, constant):
    """sum_k (W_2b W_2b' - W_b W_b') / sum_k b / (1 - 3b/n), k the ends of sub-batches."""
    rows = sub_batch_rows(len(thetas))
    count = len(thetas) // rows
    width = max(1, round(constant * len(thetas) ** ((1 + step_exponent) / 2) / rows))
    centred = thetas[: count * rows] - thetas[: count * rows].mean(axis=0)
    total, form, windows = 0.0, np.zeros((count, count)), 0
    for k in range(2 * width, count + 1):
        wide = centred[(k - 2 * width) * rows : k * rows].sum(axis=0)
        narrow = centred[(k - width) * rows : k * rows].sum(axis=0)
        total = total + np.outer(wide, wide) - np.outer(narrow, narrow)
        form[k - 2 * width : k, k - 2 * width : k] += 1
        form[k - width : k, k - width : k] -= 1
        windows += 1
    nu = degrees_of_freedom(centring(count) @ form @ centring(count))
    return total / (windows * width * rows) / (1 - 3 * width / count), nu


def bartlett(thetas, step_exponent, constant):
    """The lag-window sum over batch sums, lag by lag."""
    rows = sub_batch_rows(len(thetas))
    sums = rows * whole_batches(thetas, rows)
    count = len(sums)
    width = round(constant * len(thetas) ** ((1 + step_exponent) / 2) / rows)
    width = max(1, min(width, count // 4))
    sums = sums - sums.mean(axis=0)
    total, form = sums.T @ sums, np.eye(count)
    for lag in range(1, width):
        weight = 1 - lag / width
        product = sums[:-lag].T @ sums[lag:]
        total = total + weight * (product + product.T)
        form += weight * (np.eye(count, k=lag) + np.eye(count, k=-lag))
    form = centring(count) @ form @ centring(count) / count
    return total / (count * rows) / np.trace(form), degrees_of_freedom(form)


def random_scaling(thetas):
    """6/n^2 sum_k k^2 (mean_k - mean_n)(mean_k - mean_n)'."""
    n = len(thetas)
    k = np.arange(1, n + 1)[:, None]
    gaps = np.cumsum(thetas - thetas.mean(axis=0), axis=0) / k
    return 6 * sum(np.outer(j * gap, j * gap) for j, gap in zip(k[:, 0], gaps, strict=True)) / n**2, n


def path_functional(thetas, power, mean_square):
    """(mean of |B|^m at the ends of the batches)^(2/m) / E F^2, B(k/n) = k (mean_k - mean_n) / sqrt(n)."""
    rows = sub_batch_rows(len(thetas))
    used = thetas[: len(thetas) // rows * rows]
    ends = range(rows, len(used) + 1, rows)
    mean = used.mean(axis=0)
    path = np.array([(used[:k] - mean).sum(axis=0) for k in ends]) / math.sqrt(len(used))
    return np.mean(np.abs(path) ** power, axis=0) ** (2 / power) / mean_square


def extrapolation(thetas, steps, batches):
    """Intercept and its covariance (times n) in the regression of batch means on mean steps."""
    means, _ = latest_groups(thetas, batches)
    x, _ = latest_groups(steps[:, None], batches)
    design = np.column_stack([np.ones(batches), x])
    coefficients, *_ = np.linalg.lstsq(design, means, rcond=None)
    residuals = means - design @ coefficients
    leverage = np.linalg.inv(design.T @ design)[0, 0]
    return coefficients[0], len(thetas) * leverage * residuals.T @ residuals / (batches - 2)


def burned_start(n, share, first_start):
    """The start of the youngest generation that has discarded at most `share` of n rows."""
    starts = [0, first_start]
    while starts[-1] <= n:
        starts.append(math.ceil(starts[-1] / share))
    return max(start for start in starts if start <= share * n)
