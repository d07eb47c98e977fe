"""What `ask` and `tell` cost: `python -m benchmarks.ask_tell`.

Linear regression, 20 dimensions, 1,024 rows a chunk, the same rows for all: the compiled loop of `auto` that looks for
feedback, and loops in Python that ask, make gradients with NumPy and tell. With a Hessian or without; gradients summed
over the rows, or row by row. One thread, one process; contenders take turns and each keeps its best time.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from numpy.typing import NDArray

import halfwidth as hw
from benchmarks.overhead import best_times

DIM, CHUNK_ROWS, CHUNKS = 20, 1_024, 200
MOST = 1.5


def told(rows: NDArray[np.float64], *, hessian: bool, summed: bool) -> hw.Auto:
    """A learner that was told what NumPy says of the rows."""
    learner = hw.Auto(dim=DIM, chunk_rows=CHUNK_ROWS)
    for at in range(0, len(rows), CHUNK_ROWS):
        request = learner.ask()
        X, y = rows[at : at + CHUNK_ROWS, :DIM], rows[at : at + CHUNK_ROWS, DIM]
        errors = request.points @ X.T - y
        gradients = errors @ X if summed else errors[:, :, None] * X
        learner.tell(request, gradients, X.T @ X if hessian else None)
    return learner


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((CHUNKS * CHUNK_ROWS, DIM))
    rows = np.column_stack([X, X @ np.linspace(0.0, 1.0, DIM) + rng.standard_normal(len(X))])
    problem = hw.problem("iid-linear", dim=DIM)
    print(f"d = {DIM}, {CHUNK_ROWS:,} rows a chunk, {len(rows):,} rows, us per row and ratio to the compiled loop")
    for hessian in (True, False):

        def loop(hessian: bool = hessian) -> hw.Auto:
            learner = hw.Auto(problem, feedback="detect", chunk_rows=CHUNK_ROWS, gradient_only=not hessian)
            return learner.consume(rows)

        contenders = {
            "compiled loop": loop,
            "ask and tell, sums": lambda hessian=hessian: told(rows, hessian=hessian, summed=True),
            "ask and tell, row by row": lambda hessian=hessian: told(rows, hessian=hessian, summed=False),
        }
        results = [run().result() for run in contenders.values()]
        apart = max(np.abs(result.interval().upper / results[0].interval().upper - 1.0).max() for result in results)
        us = best_times(contenders, len(rows))
        print(f"{'with a Hessian' if hessian else 'gradients only'}: intervals apart by {apart:.0e} of themselves")
        for name, value in us.items():
            bar = "" if name == "compiled loop" else f" (<= {MOST})"
            print(f"  {name:<26}{value:>8.3f}{value / us['compiled loop']:>8.2f}{bar}")


if __name__ == "__main__":
    main()
