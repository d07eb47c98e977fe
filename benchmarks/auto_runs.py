"""How often `Auto` reports feedback, and how its intervals for quantile regression cover: one table each.

    python benchmarks/auto_runs.py feedback --runs 1000 --json feedback.json
    python benchmarks/auto_runs.py quantile --runs 1000 --json quantile.json

`feedback`: a mean under AR(0.98) noise, 50,000 rows, without feedback and with a response of 0.5; run i has the seed i,
and runs that are in the JSON file already are not run again. `quantile`: linear quantile regression from gradients
alone, d = 5, 50,000 given rows, levels 0.5 and 0.9, independent and AR(0.7), scored for the sum of the coefficients;
finished replicates are kept in the cache of studies. An interrupted command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from halfwidth import Auto, Spec, run_study
from halfwidth.problems import problem
from halfwidth.state.atomic import replace_file
from halfwidth.study.store import Store

ROWS, AT_ONCE = 50_000, 40
RESPONSES = (0.0, 0.5)
QUANTILES = [{"tau": tau, **dependence} for tau in (0.5, 0.9) for dependence in ({}, {"phi": 0.7, "psi": 0.7})]


def feedback_run(epsilon: float, seed: int) -> dict[str, object]:
    """One run on the mean with this response."""
    world = problem("performative-ar", dim=1, epsilon=epsilon, psi=0.98)
    result = Auto(world, seed=seed).run(ROWS).result()
    covers = bool(result.interval().covers(world.theta_star).all())
    away = float(np.abs(result.params - world.theta_star).max() / result.bse.max())
    return {
        "epsilon": epsilon,
        "seed": seed,
        "detected": result.feedback.detected,
        "covers": covers,
        "away": away,
        "status": result.status,
    }


def feedback_table(runs: int, path: Path, jobs: int) -> list[dict[str, object]]:
    """Run what is missing in the file, then count."""
    found = json.loads(path.read_text())["runs"] if path.exists() else []
    done = {(run["epsilon"], run["seed"]) for run in found}
    missing = [(epsilon, seed) for epsilon in RESPONSES for seed in range(runs) if (epsilon, seed) not in done]
    for at in range(0, len(missing), AT_ONCE):
        found += Parallel(n_jobs=jobs)(delayed(feedback_run)(*case) for case in missing[at : at + AT_ONCE])
        replace_file(path, json.dumps({"runs": found}).encode(), "json")
        print(f"{min(at + AT_ONCE, len(missing)):,} of {len(missing):,} runs", flush=True)
    table = []
    for epsilon in RESPONSES:
        mine = [run for run in found if run["epsilon"] == epsilon]
        ok = [run for run in mine if run["status"] == "ok"]
        table.append(
            {
                "epsilon": epsilon,
                "runs": len(mine),
                "detected": float(np.mean([run["detected"] for run in mine])),
                "covered": float(np.mean([run["covers"] for run in mine])),
                "ok": len(ok) / len(mine),
                "covered_ok": float(np.mean([run["covers"] for run in ok])),
                "silently_wrong": sum(run["away"] > 5.0 for run in ok),
            }
        )
    return table


def quantile_table(runs: int, path: Path, jobs: int) -> list[dict[str, object]]:
    """A row of scores for each level and dependence."""
    table: list[dict[str, object]] = []
    for settings in QUANTILES:
        spec = Spec("quantile-linear", settings, methods=("auto-gradient",), steps=ROWS, replicates=runs, given=True)
        row = run_study(spec, jobs=jobs, store=Store())[-1]
        names = ("replicates", "coverage", "coverage_se", "mis_ratio", "mis_ratio_se", "bias_over_sd")
        table.append(settings | {name: row[name] for name in names if name in row})
        replace_file(path, json.dumps({"table": table}).encode(), "json")
        print(table[-1], flush=True)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("feedback", "quantile"))
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--json", type=Path, required=True)
    asked = parser.parse_args()
    table = (feedback_table if asked.what == "feedback" else quantile_table)(asked.runs, asked.json, asked.jobs)
    for row in table:
        print(row)


if __name__ == "__main__":
    main()
