"""What `Auto.consume` costs as rows get wider: `python -m benchmarks.auto_width [DIM ...]`.

Linear regression on independent rows, one thread; processor time per row, the same over d^2, the time to read a result,
and the most memory that the process had so far, the rows themselves included. Wide ones come last.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import resource
import sys
import time

import numpy as np

import halfwidth as hw

ROWS = {10: 400_000, 50: 200_000, 100: 40_000, 200: 20_000, 500: 8_000, 1_000: 6_000}


def measure(dim: int, rows: int) -> str:
    rng = np.random.default_rng(0)
    given = rng.standard_normal((rows, dim + 1))
    given[:, dim] += given[:, 0]
    problem = hw.problem("iid-linear", dim=dim)
    hw.Auto(problem).consume(given[:1_100])
    start = time.process_time()
    learner = hw.Auto(problem).consume(given)
    middle = time.process_time()
    learner.result()
    end = time.process_time()
    us = 1e6 * (middle - start) / rows
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return f"{dim:>6}{us:>12.3f}{1e3 * us / dim**2:>12.3f}{end - middle:>12.3f}{memory:>12.0f}"


def main() -> None:
    print(f"{'d':>6}{'us per row':>12}{'ns / d^2':>12}{'result, s':>12}{'memory, MB':>12}")
    for dim in [int(text) for text in sys.argv[1:]] or list(ROWS):
        print(measure(dim, ROWS.get(dim, 6_000)), flush=True)


if __name__ == "__main__":
    main()
