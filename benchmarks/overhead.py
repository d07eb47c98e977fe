"""What inference costs on top of SGD: `python -m benchmarks.overhead`.

Everything runs on one thread, on the same rows, in one process; contenders take turns and each keeps its best time, so
that a busy machine slows all of them alike. Ratios travel between machines; microseconds do not.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import time
from collections.abc import Callable

import numpy as np
from scipy.linalg.blas import dsyrk
from sklearn.linear_model import SGDRegressor

import halfwidth as hw
from halfwidth.watchers import Watcher

ROUNDS = 7
PAPER_MILLISECONDS = {2: 0.28, 30: 0.49, 50: 0.70}


def best_times(contenders: dict[str, Callable[[], object]], rows: int) -> dict[str, float]:
    """The best time of each contender over several rounds, in microseconds a row."""
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


def main() -> None:
    """Print every ratio with its target."""
    for dim, rows, target in ((10, 400_000, 0.5), (50, 200_000, 0.6)):
        us = learners(dim, rows)
        print(f"d = {dim}: " + ", ".join(f"{name} {value:.3f} us/row" for name, value in us.items()))
        print(f"  (SGD + full covariance) / scikit-learn: {us['sgd + full'] / us['scikit-learn']:.2f} (<= {target})")
        ratio = us["auto"] / us["scikit-learn"]
        print(f"  auto / scikit-learn:                    {ratio:.2f}" + (" (<= 1.0)" if dim == 50 else ""))
        ratio = us["sgd + one direction"] / us["sgd"]
        print(f"  (SGD + one direction) / SGD alone:      {ratio:.2f}" + (" (<= 1.5)" if dim == 50 else ""))
        for name in ("equal batches", "flat-top"):
            ratio = us[f"sgd + {name}"] / us["sgd"]
            print(f"  {f'(SGD + {name}) / SGD alone:':<40}{ratio:.2f}" + (" (<= 1.3)" if dim == 50 else ""))
    us = against_dsyrk(200, 50_000)
    print(f"d = 200: dsyrk {us['dsyrk']:.2f}, update_many {us['update_many']:.2f} us/row")
    print(f"  fraction of the dsyrk rate: {us['dsyrk'] / us['update_many']:.2f} (>= 0.5)")
    for dim, milliseconds in PAPER_MILLISECONDS.items():
        ours = paper_setting(dim, 50_000)
        ratio = 1000 * milliseconds / ours
        print(f"paper, d = {dim}: theirs {milliseconds} ms, ours {ours:.2f} us a row: {ratio:,.0f} times faster")


if __name__ == "__main__":
    main()
