"""Coverage on TD(0) of Garnet processes, after S. Samsonov, M. Sheshukova, E. Moulines and A. Naumov (2025).

    python -m benchmarks.garnet_td [replicates] [jobs]

Processes are drawn as in the paper's appendix: 6 states, 2 actions, 3 successors, discount 0.8, a random policy
(uniform variables over their sum in each state), and d = 2 normal features, scaled to norm 1 in every state. Three 95%
intervals for u'theta*, with u uniform on the circle, at n = 20,480, 204,800 and 1,024,000: overlapping batch means
(OBM) of n iterates, with windows of b = 250, 1,200 and 3,600,

    b / (n - b + 1) sum_t (mean of x_t .. x_(t+b-1) - mean of all)^2,   with the normal quantile,

the same average with its true limit variance, and `auto` from n rows. Steps are c_0 (k + k_0)^(-2/3).

The published figures are those of one process, and neither the process nor c_0, k_0 and theta_0 are known to us. They
matter: windows of these lengths want c_0 lambda, with lambda the smallest eigenvalue of the Jacobian, well above 3
(below, iterates mix too slowly for them), Markov noise makes the average biased in proportion to c_0, and a start far
from theta* stays in the average. So there are two designs:

- `NEAREST`, chosen: a process and steps that came near to all six published figures, in a search over the processes of
  seeds 0 to 99 and 49 pairs (c_0, k_0) with c_0 from 10 to 300, with theta_0 = (0, 0) or (5, 5) and averages from the
  first iterate or with the first n left out. It computed the bias of averages from the exact means of iterates and the
  expected windows from linear theory, and simulated 21 of the nearest; replicates here are drawn anew.
- `TYPICAL`: the first ten processes in turn, none chosen, with the steps that covered best at the smallest n on average
  over the ten, among c_0 from 1 to 200 with first steps of 0.27 and 0.05, and the first n iterates left out.

How processes are drawn and what was published are taken from public notes on the paper; its own text was not at hand.
"""

import sys
from functools import cache, partial
from multiprocessing import Pool
from typing import NamedTuple

import numpy as np

import halfwidth as hw
from halfwidth.kernels.compile import specialise
from halfwidth.problems.control.finite_mdp import garnet
from halfwidth.problems.control.policy_evaluation import Evaluation
from halfwidth.problems.control.temporal_difference import td_problem

SIZES, WINDOWS = (20_480, 204_800, 1_024_000), (250, 1_200, 3_600)
PUBLISHED, PUBLISHED_TRUE = (0.873, 0.935, 0.942), (0.881, 0.945, 0.948)
METHODS = ("OBM", "true variance", "auto")
EXPONENT, Z = 2.0 / 3.0, 1.959963984540054


class Design(NamedTuple):
    """Processes, taken in turn; c_0 and k_0; both coordinates of theta_0; whether the first n iterates are left out."""

    processes: tuple[int, ...]
    scale: float
    delay: float
    first: float
    left_out: bool


NEAREST = Design((15,), 50.0, 10_000.0, 5.0, False)
TYPICAL = Design(tuple(range(10)), 20.0, 640.0, 0.0, True)


@cache
def process(seed):
    """One of the evaluations."""
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


def direction_and_iterates(world, rng, design, rows):
    """u, uniform on the circle, and u'theta after each step."""
    u = rng.standard_normal(world.dim)
    u /= np.linalg.norm(u)
    x, theta = np.empty(rows), np.full(world.dim, design.first)
    work = [theta, np.array(world.state_0), world.params, np.empty(world.row_size), np.empty(world.dim)]
    settings = np.array([design.scale, design.delay, EXPONENT])
    specialise(trajectory, world.sample, world.gradient)(rng, *work, settings, u, x)
    return u, x


def window_interval(x, b):
    """The interval of overlapping batch means."""
    n = len(x)
    partial_sums = np.concatenate([[0.0], np.cumsum(x)])
    means, centre = (partial_sums[b:] - partial_sums[:-b]) / b, partial_sums[-1] / n
    half = Z * np.sqrt(b / (n - b + 1.0) * np.sum(np.square(means - centre)) / n)
    return centre - half, centre + half


def replicate(index, design, sizes=SIZES, windows=WINDOWS):
    """Whether each interval covers, by method and size, and how long it is over that of the oracle."""
    world = process(design.processes[index % len(design.processes)])
    rng = np.random.default_rng([7, index])
    u, x = direction_and_iterates(world, rng, design, (1 + design.left_out) * sizes[-1])
    truth, sd = u @ world.theta_star, np.sqrt(u @ world.sigma @ u)
    found = np.empty((len(METHODS), len(sizes), 2))
    learner = hw.Auto(world, seed=index)
    for at, (n, b) in enumerate(zip(sizes, windows, strict=True)):
        averaged = x[n : 2 * n] if design.left_out else x[:n]
        centre, half = averaged.mean(), Z * sd / np.sqrt(n)
        own = learner.run(n - learner.n_seen).result().interval(u)
        bounds = window_interval(averaged, b), (centre - half, centre + half), (float(own.lower), float(own.upper))
        for method, (low, high) in enumerate(bounds):
            found[method, at] = low <= truth <= high, (high - low) / (2.0 * half)
    return found


def report(name, found):
    print(f"{name}, {len(found):,} replicates: coverages, and widths over the oracle's")
    print(f"{'n':>9} {'b':>6}" + "".join(f" {text:>14}" for text in ("published", *METHODS, "widths")))
    coverage, width = found.mean(axis=0).transpose(2, 0, 1)
    for at, n in enumerate(SIZES):
        shares = "".join(f" {share:>14.3f}" for share in (PUBLISHED[at], *coverage[:, at]))
        print(f"{n:>9,} {WINDOWS[at]:>6,}{shares}      {width[0, at]:.2f} {width[2, at]:.2f}")


def main(replicates=1_000, jobs=2):
    with Pool(jobs) as pool:
        nearest, typical = (
            np.array(pool.map(partial(replicate, design=design), range(replicates), chunksize=10))
            for design in (NEAREST, TYPICAL)
        )
    report(f"process {NEAREST.processes[0]}, chosen as the nearest of 100", nearest)
    print("published with the true variance: " + " ".join(f"{share:.3f}" for share in PUBLISHED_TRUE))
    report("ten processes in turn, none chosen", typical)
    turns = len(TYPICAL.processes)
    for method in (0, 2):
        for at, n in enumerate(SIZES):
            each = [typical[seed::turns, method, at, 0].mean() for seed in range(turns)]
            shares = " ".join(f"{share:.2f}" for share in each)
            print(f"{METHODS[method]:>5}, n = {n:>9,}, by process: {shares}")
    print(f"a coverage of 0.95 has the standard error {np.sqrt(0.0475 / replicates):.3f}")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
