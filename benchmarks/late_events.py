"""What `auto` says of an event that comes late: `python -m benchmarks.late_events`.

Responses follow the forecast by half. *Beijing*: real features as in the adverse battery, begun 2,000 rows later: snow,
a centred column, is constant for the first 7,000 rows then, and reaches 25 standard deviations when it comes (logistic
and Poisson, latent AR(0.9) noise). *Made up*: 30,000 rows, an event in twelve spells from row 12,000 on (logistic,
AR(0.5)). Shares of the coefficients of all runs, as `halfwidth battery --adverse` counts them, the coverage of the
coefficient that is covered least, of those that are ok in a quarter of the runs at least, and the response as measured.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from halfwidth import Auto
from halfwidth.errors import Diverged, NotEnoughData, NotIdentified
from halfwidth.problems import Problem, problem
from halfwidth.study.adverse import FAR
from halfwidth.study.real_features import with_table_file

LATER, SPELL, FIRST = 2_000, 40, 12_000
TABLE_SEED = 20_260  # no seed of a run: rows are drawn by the same generator


def made_up() -> NDArray[np.float64]:
    """An intercept, an autoregression, a season, and a centred event in twelve spells that come late."""
    rng, n = np.random.default_rng(TABLE_SEED), 30_000
    k = np.arange(n)
    weather = np.zeros(n)
    for i in range(1, n):
        weather[i] = 0.99 * weather[i - 1] + 0.14 * rng.standard_normal()
    event = ((k >= FIRST) & ((k - FIRST) % 1_500 < SPELL)).astype(np.float64)
    season = np.sin(2.0 * np.pi * k / 8_000.0)
    return np.column_stack([np.ones(n), weather, season, (event - event.mean()) / event.std()])


def made_up_world(folder: Path) -> Problem:
    """Logistic labels of the made-up table, which is written to the folder."""
    np.savez(folder / "late.npz", features=made_up())
    return problem("table-logistic", table=str(folder / "late.npz"), epsilon=0.5, psi=0.5)


def outcomes(loss: str, table: str, psi: float, seed: int) -> tuple[NDArray[np.bool_], float]:
    """Of each coefficient of one run: ok, covered, silently wrong; and the response as measured."""
    world = problem(f"table-{loss}", table=table, psi=psi, epsilon=0.5)
    try:
        result = Auto(world, seed=seed).run(len(np.load(table)["features"])).result()
    except (Diverged, NotEnoughData, NotIdentified):
        return np.zeros((3, world.dim), dtype=bool), np.nan
    flags = result.diagnostics.coefficient_flags or ((),) * world.dim
    ok = np.array([result.status == "ok" and not own for own in flags])
    interval, away = result.interval(), np.abs(result.params - world.theta_star)
    with np.errstate(invalid="ignore"):
        covered = ok & (interval.lower <= world.theta_star) & (world.theta_star <= interval.upper)
        return np.array([ok, covered, ok & (away > FAR * result.bse)]), result.feedback.strength


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="of the first run")
    parser.add_argument("--jobs", type=int, default=-1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        later, late = str(Path(name) / "later.npz"), str(Path(name) / "late.npz")
        features = np.load(with_table_file({"table": "beijing"})["table"])["features"]
        np.savez(later, features=np.roll(features, -LATER, axis=0))
        made_up_world(Path(name))
        for loss, table, psi in (("logistic", later, 0.9), ("poisson", later, 0.9), ("logistic", late, 0.5)):
            seeds = range(given.seed, given.seed + given.runs)
            runs = Parallel(n_jobs=given.jobs)(delayed(outcomes)(loss, table, psi, seed) for seed in seeds)
            found = np.array([run for run, _ in runs])
            each, size = found.sum(axis=0), found[:, 0].size
            often = each[0] >= 0.25 * given.runs
            worst = (each[1][often] / each[0][often]).min() if often.any() else np.nan
            ok, covered, wrong = each.sum(axis=1)
            print(
                f"{Path(table).stem}, {loss}: ok {ok / size:.2f}, coverage if ok {covered / max(ok, 1):.3f} (worst "
                f"{worst:.2f}), silently wrong {wrong:,} of {size:,}, response {np.nanmean([k for _, k in runs]):.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
