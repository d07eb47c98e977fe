"""What `Auto` costs as rows get wider: `python -m benchmarks.auto_width [DIM ...]`.

Linear regression on independent rows, one thread, 100 d rows: given in pieces of 2,000 (`consume`), or drawn by a
problem that might respond (`run`). Processor time per row over the second half, the same over d^2, over all rows, the
time to read a result, and the most memory of a process that did nothing else.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context

import numpy as np

import halfwidth as hw

DIMS, ROWS_EACH, FEWEST, PIECE = (10, 50, 100, 200, 500, 1_000), 100, 40_000, 2_000


def measure(dim: int, way: str) -> str:
    """The line of one dimension."""
    rng, problem = np.random.default_rng(0), hw.problem("iid-linear", dim=dim)
    learner, pieces = hw.Auto(problem, seed=1), max(ROWS_EACH * dim, FEWEST) // PIECE
    first = hw.Auto(hw.problem("iid-linear", dim=2), seed=2)  # compiles
    first.run(PIECE) if way == "run" else first.consume(rng.standard_normal((PIECE, 3)))
    times = []
    for _ in range(pieces):
        given = rng.standard_normal((PIECE, dim + 1))
        given[:, dim] += given[:, 0]
        start = time.process_time()
        learner.run(PIECE) if way == "run" else learner.consume(given)
        times.append(time.process_time() - start)
    start = time.process_time()
    learner.result()
    end = time.process_time()
    us = 1e6 * np.mean(times[pieces // 2 :]) / PIECE
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    every = 1e6 * np.mean(times) / PIECE
    return f"{way:>8}{dim:>6}{us:>12.3f}{1e3 * us / dim**2:>12.3f}{every:>12.3f}{end - start:>12.3f}{memory:>12.0f}"


def main() -> None:
    dims = [int(text) for text in sys.argv[1:]] or DIMS
    print(f"{'':>8}{'d':>6}{'us per row':>12}{'ns / d^2':>12}{'all rows':>12}{'result, s':>12}{'memory, MB':>12}")
    for way, dim in product(("consume", "run"), dims):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
            print(alone.submit(measure, dim, way).result(), flush=True)


if __name__ == "__main__":
    main()
