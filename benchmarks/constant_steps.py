"""Constant steps and Richardson-Romberg extrapolation on linear stochastic approximation with Markov noise.

    python -m benchmarks.constant_steps [processes] [replicates]

After D. Huo, Y. Chen and Q. Xie (2023): a chain x_k on 10 states, theta_(k+1) = theta_k + alpha (A(x_k) theta_k +
b(x_k)) in d = 5 dimensions, T = 100,000 steps in K + 1 = 32 batches, of which the first is left out. The averages of
constant steps are biased by a multiple of alpha, as A(x_k) and theta_k are correlated; the combination of alpha_1 = 0.2
and alpha_2 = 0.02 on the same chain, batch by batch, with the weights h_m = prod alpha_l / (alpha_l - alpha_m), is not,
to first order. A 95% interval for the first coefficient is the mean of the batches +- 1.96 standard errors; the
published figures, 11% at alpha = 0.2, 90% at 0.02 and 94% extrapolated, are medians over 100 processes of the coverage
in 100 runs of each.

Processes are drawn as in that paper's appendix: P has uniform entries over their sums; the mean A_bar is a normal
matrix, less twice its largest real part of an eigenvalue where that is positive; A(x) is A_bar plus uniform noise from
-1 to 1, but for the last state, which makes the mean A_bar; b(x) is uniform from -1 to 1. A run that diverges does not
cover. How processes are drawn is taken from public notes on the paper; its own text was not at hand.
"""

import sys

import numpy as np
from numba import njit

STATES, DIM, STEPS, BATCHES = 10, 5, 100_000, 31
ALPHAS = np.array([0.2, 0.02])
WEIGHTS = np.array([ALPHAS[1], -ALPHAS[0]]) / (ALPHAS[1] - ALPHAS[0])
PUBLISHED = {"alpha = 0.2": 0.11, "alpha = 0.02": 0.90, "extrapolated": 0.94}
Z = 1.959963984540054


@njit
def batch_means(rng, cumulated, A, b, means):
    """Means of the batches (batches, alphas, d), all step sizes on the same chain."""
    length, x = STEPS // len(means), 0
    theta, change = np.zeros((len(ALPHAS), DIM)), np.zeros(DIM)
    for batch in range(len(means)):
        for _ in range(length):
            u, x_next = rng.random(), 0
            while x_next < STATES - 1 and u >= cumulated[x, x_next]:
                x_next += 1
            x = x_next
            for m in range(len(ALPHAS)):
                for i in range(DIM):
                    change[i] = b[x, i]
                    for j in range(DIM):
                        change[i] += A[x, i, j] * theta[m, j]
                for i in range(DIM):
                    theta[m, i] += ALPHAS[m] * change[i]
                    means[batch, m, i] += theta[m, i] / length


def process(seed):
    """P, cumulated, A(x), b(x) and theta*."""
    rng = np.random.default_rng([1, seed])
    P = rng.random((STATES, STATES))
    P /= P.sum(axis=1, keepdims=True)
    pi = np.linalg.matrix_power(P, 1_000)[0]
    mean = rng.standard_normal((DIM, DIM))
    mean -= 2.0 * max(np.linalg.eigvals(mean).real.max(), 0.0) * np.eye(DIM)
    noise = rng.uniform(-1.0, 1.0, (STATES, DIM, DIM))
    noise[-1] = -np.einsum("x,xij->ij", pi[:-1], noise[:-1]) / pi[-1]
    b = rng.uniform(-1.0, 1.0, (STATES, DIM))
    return np.cumsum(P, axis=1), mean + noise, b, -np.linalg.solve(mean, pi @ b)


def covered(means, truth):
    """Whether the batches' interval covers, of each coefficient."""
    half = Z * means.std(axis=0) / np.sqrt(len(means))
    return np.abs(means.mean(axis=0) - truth) <= half


def coverage(seed, replicates):
    """By coefficient: at each alpha, and extrapolated."""
    cumulated, A, b, truth = process(seed)
    found = np.zeros((len(ALPHAS) + 1, DIM))
    for index in range(replicates):
        means = np.zeros((BATCHES + 1, len(ALPHAS), DIM))
        batch_means(np.random.default_rng([2, seed, index]), cumulated, A, b, means)
        with np.errstate(invalid="ignore", over="ignore"):
            columns = [means[1:, 0], means[1:, 1], np.einsum("m,kmi->ki", WEIGHTS, means[1:])]
            found += [covered(column, truth) for column in columns]
    return found / replicates


def main(processes=100, replicates=100):
    found = np.array([coverage(seed, replicates) for seed in range(processes)])[:, :, 0]
    for (name, published), column in zip(PUBLISHED.items(), found.T, strict=True):
        low, median, high = np.quantile(column, [0.25, 0.5, 0.75])
        print(f"{name:<14} published {published:.2f}   here {median:.2f} (quartiles {low:.2f} and {high:.2f})")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
