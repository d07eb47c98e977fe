"""Peak memory and processor time of `halfwidth.fit` and its table on 3,000 columns, from a generator of chunks.

    python -m benchmarks.fit_wide [--columns 3000] [--rows 20000] [--family linear]

Only what the process itself keeps is counted: a chunk has 1,024 rows, and nothing is on disk.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
import resource
import time
from collections.abc import Iterator

import numpy as np

import halfwidth as hw

CHUNK_ROWS = 1_024


def chunks(rows: int, columns: int, family: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    slopes = np.linspace(-1.0, 1.0, columns) / np.sqrt(columns)
    for start in range(0, rows, CHUNK_ROWS):
        X = rng.standard_normal((min(CHUNK_ROWS, rows - start), columns))
        eta = X @ slopes
        if family == "linear":
            yield X, eta + rng.standard_normal(len(X))
        elif family == "poisson":
            yield X, rng.poisson(np.exp(eta)).astype(float)
        else:
            yield X, (rng.random(len(X)) < 1.0 / (1.0 + np.exp(-eta))).astype(float)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, default=3_000)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--family", default="linear", choices=["linear", "logistic", "poisson"])
    options = parser.parse_args()
    used = time.process_time()
    model = hw.fit(chunks(options.rows, options.columns, options.family), family=options.family)
    learned = time.process_time()
    result = model.inference()
    result.summary()
    ended = time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    print(f"{options.columns:,} columns, {model.n_seen_:,} rows, {result.basis.engine}, status {result.status}")
    print(f"{learned - used:.0f} s to learn, {ended - learned:.0f} s for inference, peak {peak:,.0f} MB")


if __name__ == "__main__":
    main()
