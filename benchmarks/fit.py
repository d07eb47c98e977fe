"""Rows per second and peak memory of `halfwidth.fit` on a large Parquet file, against reading it and nothing else.

    python -m benchmarks.fit [--rows 10000000] [--features 20] [--folder DIR]

`pyarrow` reads the same columns in batches of 8,192 rows, with one thread, and `pyarrow-paged` does it through a small
buffer, without holding whole row groups, as `halfwidth.fit` does; `scikit-learn` reads as `pyarrow` does and calls
`SGDRegressor.partial_fit`, without any inference. Every measurement is a process of its own, with one thread for Arrow
and one for linear algebra, besides the thread in which `halfwidth.fit` reads; its peak memory is that of the process.
Memory is measured for 1, 3 and 10 million rows: it must not depend on their number. At the end the families are
compared on a million rows in memory, in processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "ARROW_NUM_THREADS"), "1")
MEMORY_ROWS = (1_000_000, 3_000_000, 10_000_000)
BATCH_ROWS = 8_192


def make_file(path: Path, rows: int, features: int) -> None:
    """Write y = x'b + noise as float64 Parquet, block by block."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    names = [f"x{j}" for j in range(features)]
    slopes = np.linspace(-1.0, 1.0, features)
    writer = None
    for start in range(0, rows, 500_000):
        X = rng.standard_normal((min(500_000, rows - start), features))
        table = pa.table({**dict(zip(names, X.T, strict=True)), "y": X @ slopes + rng.standard_normal(len(X))})
        writer = writer or pq.ParquetWriter(path, table.schema, compression="snappy")
        writer.write_table(table, row_group_size=100_000)
    assert writer is not None
    writer.close()


def run_halfwidth(path: str) -> int:
    import halfwidth

    model = halfwidth.fit(path, target="y")
    model.inference()
    return model.n_seen_


def run_sklearn(path: str) -> int:
    import numpy as np
    import pyarrow.parquet as pq
    from sklearn.linear_model import SGDRegressor

    file = pq.ParquetFile(path)
    names = [name for name in file.schema_arrow.names if name != "y"]
    model, rows = SGDRegressor(), 0
    for batch in file.iter_batches(batch_size=BATCH_ROWS, use_threads=False):
        X = np.column_stack([batch.column(name).to_numpy() for name in names])
        model.partial_fit(X, batch.column("y").to_numpy())
        rows += len(X)
    return rows


def run_pyarrow(path: str) -> int:
    import pyarrow.parquet as pq

    return sum(batch.num_rows for batch in pq.ParquetFile(path).iter_batches(batch_size=BATCH_ROWS, use_threads=False))


def run_paged(path: str) -> int:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
    return sum(batch.num_rows for batch in file.iter_batches(batch_size=BATCH_ROWS, use_threads=False))


RUNS = {"halfwidth": run_halfwidth, "pyarrow": run_pyarrow, "pyarrow-paged": run_paged, "scikit-learn": run_sklearn}


def in_memory(rows: int, features: int, repeats: int) -> dict[str, float]:
    """Rows per second of processor time of three families, rows and result in memory."""
    import time

    import numpy as np

    from halfwidth.models import MODELS

    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, features))
    eta = X @ np.linspace(-0.3, 0.3, features)
    targets = {
        "linear": eta + rng.standard_normal(rows),
        "logistic": (rng.random(rows) < 1.0 / (1.0 + np.exp(-eta))).astype(float),
        "poisson": rng.poisson(np.exp(eta)).astype(float),
    }
    best = {}
    for _ in range(repeats + 1):
        for family, y in targets.items():
            used = time.process_time()
            MODELS[family]().partial_fit(X, y).inference()
            best[family] = max(best.get(family, 0.0), rows / (time.process_time() - used))
    return best


def child(name: str, path: str) -> None:
    """Run one measurement; imports and compilation are not timed, reading and inference are."""
    import resource
    import time

    import pyarrow as pa

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    if name == "halfwidth":
        from halfwidth.models import fit  # noqa: F401
    elif name == "scikit-learn":
        import sklearn.linear_model  # noqa: F401
    started, used = time.perf_counter(), time.process_time()
    rows = RUNS[name](path)
    seconds, cpu = time.perf_counter() - started, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    print(json.dumps({"rows": rows, "seconds": seconds, "cpu_seconds": cpu, "peak_mb": peak}))


def measure(name: str, path: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.fit", "--child", name, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--child", nargs=2, metavar=("NAME", "FILE"))
    options = parser.parse_args()
    os.environ.update(ONE_THREAD)  # before NumPy is imported
    if options.child:
        child(*options.child)
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        largest = Path(folder) / "rows.parquet"
        make_file(largest, options.rows, options.features)
        runs = [{name: measure(name, largest) for name in RUNS} for _ in range(options.repeats)]
        best = {name: min((run[name] for run in runs), key=lambda m: m["seconds"]) for name in RUNS}
        for name, found in best.items():
            rate, peak = found["rows"] / found["seconds"], found["peak_mb"]
            print(f"{name:>13}: {found['seconds']:6.1f} s, {rate:12,.0f} rows/s, peak {peak:.0f} MB")
        for peer in list(RUNS)[1:]:
            for clock, what in (("seconds", "rows per second"), ("cpu_seconds", "rows per second of processor time")):
                print(f"{what}, times those of {peer}: {best[peer][clock] / best['halfwidth'][clock]:.2f}")
        peaks = []
        for rows in MEMORY_ROWS:
            if rows > options.rows:
                break
            path = Path(folder) / f"{rows}.parquet"
            if rows == options.rows:
                path = largest
            else:
                make_file(path, rows, options.features)
            peaks.append(measure("halfwidth", path)["peak_mb"])
            print(f"peak memory at {rows:>12,} rows: {peaks[-1]:.0f} MB")
        print(f"spread of peak memory: {max(peaks) - min(peaks):.0f} MB")
    rates = in_memory(1_000_000, options.features, options.repeats)
    for family, rate in rates.items():
        print(f"{family:>8} in memory: {rate:12,.0f} rows/s, {rate / rates['linear']:.2f} times linear's")


if __name__ == "__main__":
    main()
