"""Responses that no doubt of `Auto.run` names: `python -m benchmarks.unnamed_responses [--runs 100]`.

The slope of a response at the root is what `auto` corrects for. Some responses have none that says enough: a mean that
responds by 0.8 above its root and not at all below (a kink); labels of a linear regression with ten coefficients that
move by q / (1 + q), q the squared distance of the forecast from the true one, whichever side it is on (even); a mean
that responds by 0.045 sin(20 theta), far steeper at the root than a little away from it (wiggly); one that responds
by half, 100 rows later (delayed); one that responds by half over 30 rows (late), and one by 0.3 at once and by 0.3 more
over 286 rows (partly late). For each: the share of runs with status ok, how often the coefficient that is covered
least is covered in these, and how far any is off, in standard errors.
"""

from __future__ import annotations

import argparse

import numpy as np
from joblib import Parallel, delayed
from numba import njit

import halfwidth as hw
from halfwidth.errors import HalfwidthError
from halfwidth.problems.row_losses import LINEAR

KINK, WIGGLY, DELAYED = 0.0, 1.0, 2.0
DELAY = 100
MOVING_AVERAGES = {"late": (0.0, 0.5, 30.0), "partly late": (0.3, 0.3, 286.0)}
"""By how much data respond at once, by how much more, and over how many rows."""
CASES = {
    "kink": (KINK, 1, (20_000, 200_000)),
    "wiggly": (WIGGLY, 2, (20_000, 100_000)),
    "delayed": (DELAYED, 2, (20_000, 50_000, 200_000)),
    "late": (None, 2, (50_000, 200_000)),
    "partly late": (None, 2, (50_000, 200_000)),
    "even": (None, 10, (20_000, 50_000, 200_000)),
}


@njit
def draw_mean(rng, theta, state, params, row):
    """A normal row about what the response makes of theta, or of the theta of some rows ago; the root is 0."""
    d, now = theta.shape[0], int(state[0])
    state[0] += 1.0
    for j in range(d):
        slot = 1 + (now % (DELAY + 1)) * d + j
        state[slot] = theta[j]
        if params[0] == KINK:
            mean = 0.8 * max(theta[j], 0.0)
        elif params[0] == WIGGLY:
            mean = 0.045 * np.sin(20.0 * theta[j])
        else:
            mean = 0.5 * state[1 + ((now + 1) % (DELAY + 1)) * d + j]
        row[j] = mean + rng.standard_normal()


@njit
def draw_late(rng, theta, state, params, row):
    """A normal row about a response to theta, and to the moving average of all thetas so far; the root is 0."""
    for j in range(theta.shape[0]):
        state[j] += (theta[j] - state[j]) / params[2]
        row[j] = params[0] * theta[j] + params[1] * state[j] + rng.standard_normal()


@njit
def mean_gradient(theta, row, params, grad):
    for j in range(theta.shape[0]):
        grad[j] = theta[j] - row[j]


@njit
def mean_hessian(theta, row, params, direction):
    direction[:] = 0.0
    return 0.0, 1.0


@njit
def draw_even(rng, theta, state, params, row):
    """A row of a linear regression with coefficients 1, the label of which responds to how far the forecast is off."""
    d = theta.shape[0]
    forecast, away = 0.0, 0.0
    row[0] = 1.0
    for j in range(1, d):
        row[j] = rng.standard_normal()
    for j in range(d):
        forecast += row[j]
        away += row[j] * (theta[j] - 1.0)
    row[d] = forecast + away * away / (1.0 + away * away) + rng.standard_normal()


def world_of(name: str) -> tuple[hw.Problem, float]:
    """The problem, and each coefficient of its root."""
    kind, dim, _ = CASES[name]
    if name == "even":
        own = {"row_size": dim + 1, "params": [1.0], "hessian": LINEAR.hessian}
        return hw.Problem(dim, LINEAR.gradient, draw_even, **own), 1.0
    own = {"row_size": dim, "hessian": mean_hessian}
    if name in MOVING_AVERAGES:
        own |= {"params": MOVING_AVERAGES[name], "state_0": np.zeros(dim)}
        return hw.Problem(dim, mean_gradient, draw_late, **own), 0.0
    own |= {"params": [kind], "state_0": np.zeros(1 + (DELAY + 1) * dim)}
    return hw.Problem(dim, mean_gradient, draw_mean, **own), 0.0


def one_run(name: str, rows: int, seed: int) -> tuple[bool, np.ndarray, np.ndarray]:
    """Whether the run is ok, which coefficients are covered, and their distance in standard errors; nan if doubted."""
    dim = CASES[name][1]
    world, root = world_of(name)
    unknown = np.full(dim, np.nan)
    try:
        result = hw.Auto(world, seed=seed).run(rows).result()
    except HalfwidthError:
        return False, unknown, unknown
    trusted = np.array([result.status == own == "ok" for own in result.coefficient_status])
    covered = result.interval().covers(np.full(dim, root)).astype(float)
    away = np.abs(result.params - root) / result.bse
    return result.status == "ok", np.where(trusted, covered, np.nan), np.where(trusted, away, np.nan)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=-1)
    asked = parser.parse_args()
    print(f"{'response':<12}{'rows':>9}{'ok':>7}{'covers if ok':>14}{'worst, errors':>15}")
    for name, (_, _, lengths) in CASES.items():
        for rows in lengths:
            runs = Parallel(n_jobs=asked.jobs)(delayed(one_run)(name, rows, seed) for seed in range(asked.runs))
            ok, covered, away = (np.array(part) for part in zip(*runs, strict=True))
            least, worst = (np.nanmean(covered, axis=0).min(), np.nanmax(away)) if ok.any() else (np.nan, np.nan)
            print(f"{name:<12}{rows:>9,}{ok.mean():>7.2f}{least:>14.2f}{worst:>15.1f}", flush=True)


if __name__ == "__main__":
    main()
