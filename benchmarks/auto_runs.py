"""How `Auto` does under feedback that is hard to tell, or slow, and for quantile regression: one table each.

    python benchmarks/auto_runs.py feedback --runs 1000 --json feedback.json
    python benchmarks/auto_runs.py slow --runs 400 --json slow.json
    python benchmarks/auto_runs.py quantile --runs 1000 --json quantile.json

`feedback`: a mean under AR(0.98) noise, 50,000 rows, without feedback and with a response of 0.5. `slow`: a mean that
responds over 100 rows, 50,000 of them, and over 1,000 rows, a million. Run i has the seed i, and runs that are in the
JSON file already are not run again. `quantile`: linear quantile regression from gradients
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
from halfwidth.errors import Diverged, NotEnoughData, NotIdentified
from halfwidth.problems import problem
from halfwidth.state.atomic import replace_file
from halfwidth.study.store import Store

ROWS, AT_ONCE = 50_000, 40
Case = tuple[str, dict[str, float], int]
CASES: dict[str, list[Case]] = {
    "feedback": [("performative-ar", {"dim": 1, "epsilon": epsilon, "psi": 0.98}, ROWS) for epsilon in (0.0, 0.5)],
    "slow": [("performative-mean", {"dim": 2, "rho": rho}, rows) for rho, rows in ((0.01, ROWS), (0.001, 1_000_000))],
}
QUANTILES = [{"tau": tau, **dependence} for tau in (0.5, 0.9) for dependence in ({}, {"phi": 0.7, "psi": 0.7})]


def one_run(case: Case, seed: int) -> dict[str, object]:
    """What this run ends in."""
    name, settings, rows = case
    world = problem(name, **settings)
    found: dict[str, object] = {"case": case, "seed": seed}
    try:
        result = Auto(world, seed=seed).run(rows).result()
    except (Diverged, NotEnoughData, NotIdentified):
        return found | {"status": "refused"}
    return found | {
        "detected": result.feedback.detected,
        "covers": float(result.interval().covers(world.theta_star).mean()),
        "away": float(np.abs((result.params - world.theta_star) / result.bse).max()),
        "status": result.status,
    }


def runs_table(cases: list[Case], runs: int, path: Path, jobs: int) -> list[dict[str, object]]:
    """Run what is missing in the file, then count."""
    found = json.loads(path.read_text())["runs"] if path.exists() else []
    done = {(json.dumps(run["case"]), run["seed"]) for run in found}
    missing = [(case, seed) for case in cases for seed in range(runs) if (json.dumps(case), seed) not in done]
    for at in range(0, len(missing), AT_ONCE):
        found += Parallel(n_jobs=jobs)(delayed(one_run)(*case) for case in missing[at : at + AT_ONCE])
        replace_file(path, json.dumps({"runs": found}).encode(), "json")
        print(f"{min(at + AT_ONCE, len(missing)):,} of {len(missing):,} runs", flush=True)
    table: list[dict[str, object]] = []
    for case in cases:
        mine = [run for run in found if json.dumps(run["case"]) == json.dumps(case)]
        ended = [run for run in mine if run["status"] != "refused"]
        ok = [run for run in ended if run["status"] == "ok"]
        table.append(
            {
                "case": case,
                "runs": len(mine),
                "refused": 1.0 - len(ended) / len(mine),
                "detected": float(np.mean([run["detected"] for run in ended])),
                "covered": float(np.mean([run["covers"] for run in ended])),
                "ok": len(ok) / len(mine),
                "covered_ok": float(np.mean([run["covers"] for run in ok])) if ok else None,
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
    parser.add_argument("what", choices=(*CASES, "quantile"))
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--json", type=Path, required=True)
    asked = parser.parse_args()
    if asked.what == "quantile":
        table = quantile_table(asked.runs, asked.json, asked.jobs)
    else:
        table = runs_table(CASES[asked.what], asked.runs, asked.json, asked.jobs)
    for row in table:
        print(row)


if __name__ == "__main__":
    main()
