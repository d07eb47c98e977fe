"""Coverage on TD(0) of Garnet processes, after S. Samsonov, M. Sheshukova, E. Moulines and A. Naumov (2025).

    python -m benchmarks.garnet_td [replicates] [jobs]

As the paper's appendix draws them, ten times: 6 states, 2 actions, 3 successors, discount 0.8, a random policy (uniform
variables over their sum in each state), and d = 2 normal features, scaled to norm 1 in every state. Replicates go
through the ten processes in turn. Two 95% intervals for u'theta*, with u uniform on the circle, at n = 20,480, 204,800
and 1,024,000: overlapping batch means (OBM) of n iterates, with windows of b = 250, 1,200 and 3,600,

    b / (n - b + 1) sum_t (mean of x_t .. x_(t+b-1) - mean of all)^2,   with the normal quantile,

and `auto` from n rows. The published figures of the first are 0.873, 0.935 and 0.942, on one process that is not known
to us. Steps are c_0 (k + k_0)^(-2/3); the paper does not state c_0 and k_0, and they matter. Windows of these lengths
want c_0 lambda, with lambda the smallest eigenvalue of the Jacobian, well above 3, at every n (below, iterates mix too
slowly for them), while the Markov noise makes the average biased in proportion to c_0: the bias over the standard
deviation falls like n^(-1/6) only. The constants here, with the first n iterates left out, are those that covered best
at the smallest n, on average over the ten processes, among c_0 from 1 to 200 with first steps of 0.27 and 0.05.

How processes are drawn is taken from public notes on the paper; its own text was not at hand.
"""

import sys
from functools import cache
from multiprocessing import Pool

import numpy as np

import halfwidth as hw
from halfwidth.kernels.compile import specialise
from halfwidth.problems.control.finite_mdp import garnet
from halfwidth.problems.control.policy_evaluation import Evaluation
from halfwidth.problems.control.temporal_difference import td_problem

SIZES, WINDOWS, PUBLISHED = (20_480, 204_800, 1_024_000), (250, 1_200, 3_600), (0.873, 0.935, 0.942)
PROCESSES, SCALE, START, EXPONENT, Z = 10, 20.0, 640.0, 2.0 / 3.0, 1.959963984540054


@cache
def process(seed):
    """One of the ten evaluations."""
    mdp, rng = garnet(6, 2, 3, discount=0.8, seed=seed), np.random.default_rng([11, seed])
    policy = rng.random((6, 2))
    policy /= policy.sum(axis=1, keepdims=True)
    features = rng.standard_normal((6, 2))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    return td_problem(Evaluation(mdp, policy, policy, features), "garnet-td", {})


def trajectory(sample, field):
    """The loop over rows that writes u'theta after each step."""

    def projected_iterates(rng, theta, state, params, row, grad, settings, u, along):
        for k in range(along.shape[0]):
            sample(rng, theta, state, params, row)
            field(theta, row, params, grad)
            step = settings[0] * (k + 1.0 + settings[1]) ** -settings[2]
            total = 0.0
            for j in range(theta.shape[0]):
                theta[j] -= step * grad[j]
                total += u[j] * theta[j]
            along[k] = total

    return projected_iterates


def window_interval(x, b):
    """The interval of overlapping batch means."""
    n = len(x)
    partial = np.concatenate([[0.0], np.cumsum(x)])
    means, centre = (partial[b:] - partial[:-b]) / b, partial[-1] / n
    half = Z * np.sqrt(b / (n - b + 1.0) * np.sum(np.square(means - centre)) / n)
    return centre - half, centre + half


def replicate(index, sizes=SIZES, windows=WINDOWS):
    """Whether each interval covers, by method and size, and how long it is over that of the oracle."""
    world = process(index % PROCESSES)
    rng = np.random.default_rng([7, index])
    u = rng.standard_normal(world.dim)
    u /= np.linalg.norm(u)
    truth, sd = u @ world.theta_star, np.sqrt(u @ world.sigma @ u)
    x = np.empty(2 * sizes[-1])
    work = [np.zeros(world.dim), np.array(world.state_0), world.params, np.empty(world.row_size), np.empty(world.dim)]
    specialise(trajectory, world.sample, world.gradient)(rng, *work, np.array([SCALE, START, EXPONENT]), u, x)
    found = np.empty((2, len(sizes), 2))
    learner = hw.Auto(world, seed=index)
    for at, (n, b) in enumerate(zip(sizes, windows, strict=True)):
        learner.run(n - learner.n_seen)
        own = learner.result().interval(u)
        for method, (low, high) in enumerate((window_interval(x[n : 2 * n], b), (float(own.lower), float(own.upper)))):
            found[method, at] = low <= truth <= high, (high - low) * np.sqrt(n) / (2.0 * Z * sd)
    return found


def main(replicates=1_000, jobs=2):
    with Pool(jobs) as pool:
        found = np.array(pool.map(replicate, range(replicates), chunksize=10))
    coverage, width = found.mean(axis=0).transpose(2, 0, 1)
    print(f"{'n':>9} {'b':>6} {'published':>10} {'OBM':>7} {'auto':>7}   widths over the oracle's")
    for at, n in enumerate(SIZES):
        print(
            f"{n:>9,} {WINDOWS[at]:>6,} {PUBLISHED[at]:>10.3f} {coverage[0, at]:>7.3f} {coverage[1, at]:>7.3f}"
            f"   {width[0, at]:.2f} {width[1, at]:.2f}"
        )
    for method, name in enumerate(("OBM", "auto")):
        for at, n in enumerate(SIZES):
            each = [found[seed::PROCESSES, method, at, 0].mean() for seed in range(PROCESSES)]
            print(f"{name:>5}, n = {n:>9,}, by process: " + " ".join(f"{share:.2f}" for share in each))
    print(f"{replicates:,} replicates: a coverage of 0.95 has the standard error {np.sqrt(0.0475 / replicates):.3f}")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
