"""What inference costs on top of SGD: `python -m benchmarks.overhead`.

Everything runs on one thread, on the same rows, in one process; contenders take turns and each keeps its best time, so
that a busy machine slows all of them alike. Ratios travel between machines; microseconds do not.

`python -m benchmarks.overhead --against PATH` compares this checkout to another one: this file measures both, in
processes that take turns, and prints the best time of each and their ratio. scikit-learn and dsyrk are the same code on
both sides: how far their ratio is from 1 shows how noisy the machine is.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow
from pyarrow import parquet
from scipy.linalg.blas import dsyrk
from sklearn.linear_model import SGDRegressor

import halfwidth as hw
from halfwidth.models import LinearRegression
from halfwidth.watchers import Watcher

ROUNDS = int(os.environ.get("ROUNDS", "7"))
LEARNERS = ((10, 400_000, 0.5), (50, 200_000, 0.6))  # dimension, rows, target of (SGD + full) / scikit-learn
REGRESSIONS = ((20, 2_000_000), (50, 1_000_000))
PAPER_MILLISECONDS = {2: 0.28, 30: 0.49, 50: 0.70}


def best_times(contenders: dict[str, Callable[[], object]], rows: int) -> dict[str, float]:
    """The best time of each contender over several rounds, in microseconds per row."""
    best = dict.fromkeys(contenders, np.inf)
    for _ in range(ROUNDS):
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], 1e6 * (time.perf_counter() - start) / rows)
    return best


def learners(dim: int, rows: int) -> dict[str, float]:
    """Our SGD with and without watchers against scikit-learn's averaged SGD, which gives no inference."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, dim))
    y = X @ np.linspace(0, 1, dim) + rng.standard_normal(rows)
    given = np.column_stack([X, y])
    problem = hw.problem("iid-linear", dim=dim)
    step = hw.PowerStep(0.1, 0.505)

    def ours(*watchers: Watcher) -> object:
        return hw.SGD(problem, step=step, watchers=watchers).consume(given)

    def sklearn() -> object:
        model = SGDRegressor(average=True)
        return model.partial_fit(X, y)

    return best_times(
        {
            "scikit-learn": sklearn,
            "auto": lambda: hw.Auto(problem).consume(given).result(),
            "sgd": ours,
            "sgd + full": lambda: ours(hw.OverlappingBatchMeans(dim)),
            "sgd + equal batches": lambda: ours(hw.EqualBatchMeans(dim)),
            "sgd + flat-top": lambda: ours(hw.FlatTopBatchMeans(dim)),
            "sgd + one direction": lambda: ours(
                hw.OverlappingBatchMeans(dim, view="projection", projection=np.ones((1, dim)))
            ),
        },
        rows,
    )


def against_dsyrk(dim: int, rows: int) -> dict[str, float]:
    """update_many against the symmetric rank-k product that any such estimator must at least do."""
    thetas = np.random.default_rng(0).standard_normal((rows, dim))
    block = 256

    def product() -> None:
        c = np.zeros((dim, dim), order="F")
        for at in range(0, rows, block):
            c = dsyrk(1.0, thetas[at : at + block].T, beta=1.0, c=c, overwrite_c=1)

    return best_times(
        {"dsyrk": product, "update_many": lambda: hw.OverlappingBatchMeans(dim).update_many(thetas)}, rows
    )


def paper_setting(dim: int, rows: int) -> float:
    """The paper's linear experiment, drawing the rows included."""
    problem = hw.problem("seed-linear", dim=dim)

    def run() -> object:
        return hw.CappedSGD(problem, step=hw.PowerStep(2.0, 0.505), watchers=[hw.OverlappingBatchMeans(dim)]).run(rows)

    return best_times({"run": run}, rows)["run"]


def regression(dim: int, rows: int) -> float:
    """A linear regression on rows in memory, the result included."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, dim))
    y = X @ np.linspace(0, 1, dim) + rng.standard_normal(rows)
    return best_times({"fit": lambda: LinearRegression().fit(X, y).inference()}, rows)["fit"]


def fit_of_a_file(dim: int, rows: int) -> float:
    """`halfwidth.fit` of a linear regression, from a Parquet file to the result."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, dim))
    columns = {f"x{j}": X[:, j] for j in range(dim)} | {"y": X @ np.linspace(0, 1, dim) + rng.standard_normal(rows)}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.parquet")
        parquet.write_table(pyarrow.table(columns), path)
        return best_times({"fit": lambda: hw.fit(path, target="y")}, rows)["fit"]


def figures() -> dict[str, float]:
    """Every time, in microseconds per row."""
    found = {f"d = {dim}, fit of a Parquet file": fit_of_a_file(dim, rows) for dim, rows in REGRESSIONS}
    found |= {f"d = {dim}, linear regression": regression(dim, rows) for dim, rows in REGRESSIONS}
    for dim, rows, _ in LEARNERS:
        found |= {f"d = {dim}, {name}": us for name, us in learners(dim, rows).items()}
    found |= {f"d = 200, {name}": us for name, us in against_dsyrk(200, 50_000).items()}
    return found | {f"paper, d = {dim}": paper_setting(dim, 50_000) for dim in PAPER_MILLISECONDS}


def report(us: dict[str, float]) -> None:
    """Print every ratio with its target."""
    for dim, _, target in LEARNERS:
        here = {name.partition(", ")[2]: value for name, value in us.items() if name.startswith(f"d = {dim},")}
        here = {
            name: value for name, value in here.items() if name not in ("linear regression", "fit of a Parquet file")
        }
        print(f"d = {dim}: " + ", ".join(f"{name} {value:.3f} us/row" for name, value in here.items()))
        ratio = here["sgd + full"] / here["scikit-learn"]
        print(f"  (SGD + full covariance) / scikit-learn: {ratio:.2f} (<= {target})")
        ratio = here["auto"] / here["scikit-learn"]
        print(f"  auto / scikit-learn:                    {ratio:.2f}" + (" (<= 1.0)" if dim == 50 else ""))
        ratio = here["sgd + one direction"] / here["sgd"]
        print(f"  (SGD + one direction) / SGD alone:      {ratio:.2f}" + (" (<= 1.5)" if dim == 50 else ""))
        for name in ("equal batches", "flat-top"):
            ratio = here[f"sgd + {name}"] / here["sgd"]
            print(f"  {f'(SGD + {name}) / SGD alone:':<40}{ratio:.2f}" + (" (<= 1.3)" if dim == 50 else ""))
    for dim, rows in REGRESSIONS:
        for name in ("linear regression", "fit of a Parquet file"):
            print(f"d = {dim}: {name}, {rows:,} rows: {us[f'd = {dim}, {name}']:.3f} us/row")
    product, ours = us["d = 200, dsyrk"], us["d = 200, update_many"]
    print(f"d = 200: dsyrk {product:.2f}, update_many {ours:.2f} us/row")
    print(f"  fraction of the dsyrk rate: {product / ours:.2f} (>= 0.5)")
    for dim, milliseconds in PAPER_MILLISECONDS.items():
        ours = us[f"paper, d = {dim}"]
        ratio = 1000 * milliseconds / ours
        print(f"paper, d = {dim}: theirs {milliseconds} ms, ours {ours:.2f} us per row: {ratio:,.0f} times faster")


def compare(here: Path, there: Path, turns: int) -> None:
    """The best times of two checkouts, measured by processes that take turns."""
    best: dict[Path, dict[str, float]] = {here: {}, there: {}}
    for _ in range(turns):
        for checkout, times in best.items():
            environment = os.environ | {"PYTHONPATH": str(checkout / "src"), "ROUNDS": "2"}
            command = [sys.executable, __file__, "--json"]
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
            for name, us in json.loads(done.stdout).items():
                times[name] = min(us, times.get(name, np.inf))
    print(f"{'us per row, best of ' + str(turns) + ' turns':<32}{'here':>10}{'there':>10}{'here / there':>15}")
    for name, us in best[here].items():
        other = best[there][name]
        print(f"{name:<32}{us:>10.3f}{other:>10.3f}{us / other:>15.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overhead", description=__doc__.splitlines()[0])
    parser.add_argument("--against", type=Path, metavar="PATH", help="another checkout, to compare this one to")
    parser.add_argument("--turns", type=int, default=6, help="processes per checkout with --against (6)")
    parser.add_argument("--json", action="store_true", help="print the times as JSON")
    asked = parser.parse_args()
    if asked.against is not None:
        if not (asked.against / "src" / "halfwidth").is_dir():
            parser.error(f"--against must be a checkout of halfwidth; got {asked.against}")
        compare(Path(__file__).parents[1], asked.against.resolve(), asked.turns)
    elif asked.json:
        print(json.dumps(figures()))
    else:
        report(figures())


if __name__ == "__main__":
    main()
