"""What `ask` and `tell` cost: `python -m benchmarks.ask_tell`.

Linear regression, 20 dimensions, 1,024 rows a chunk, the same rows for all: the compiled loop of `auto` that looks for
feedback, and loops in Python that ask, make gradients with NumPy and tell. With a Hessian or without; gradients summed
over the rows, or row by row, also where features are a slice of the table that the compiled loop reads, over which
NumPy takes longer, or lie column by column, as those of a data frame, over which it takes less; and what NumPy takes of
that, at the same points. One thread, one process; contenders take turns and
each keeps its best time.
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


Array = NDArray[np.float64]


def said(X: Array, y: Array, points: Array, *, hessian: bool, summed: bool) -> tuple[Array, Array | None]:
    """What NumPy says of a chunk: gradients at the points, and the Hessian."""
    errors = points @ X.T - y
    return errors @ X if summed else errors[:, :, None] * X, X.T @ X if hessian else None


def told(X: Array, y: Array, *, hessian: bool, summed: bool, asked: list[Array] | None = None) -> hw.Auto:
    """A learner that was told what NumPy says of the rows; the points of its requests go to `asked`."""
    learner = hw.Auto(dim=DIM, chunk_rows=CHUNK_ROWS)
    for at in range(0, len(y), CHUNK_ROWS):
        request, chunk = learner.ask(), slice(at, at + CHUNK_ROWS)
        learner.tell(request, *said(X[chunk], y[chunk], request.points, hessian=hessian, summed=summed))
        if asked is not None:
            asked.append(request.points)
    return learner


def numpy_alone(X: Array, y: Array, points: list[Array], *, hessian: bool, summed: bool) -> None:
    """The gradients of such a run, without a learner."""
    for at, some in zip(range(0, len(y), CHUNK_ROWS), points, strict=True):
        chunk = slice(at, at + CHUNK_ROWS)
        said(X[chunk], y[chunk], some, hessian=hessian, summed=summed)


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((CHUNKS * CHUNK_ROWS, DIM))
    y = X @ np.linspace(0.0, 1.0, DIM) + rng.standard_normal(len(X))
    rows = np.column_stack([X, y])
    problem = hw.problem("iid-linear", dim=DIM)
    print(f"d = {DIM}, {CHUNK_ROWS:,} rows a chunk, {len(rows):,} rows, us per row and ratio to the compiled loop")
    for hessian in (True, False):

        def loop(hessian: bool = hessian) -> hw.Auto:
            learner = hw.Auto(problem, feedback="detect", chunk_rows=CHUNK_ROWS, gradient_only=not hessian)
            return learner.consume(rows)

        points: list[Array] = []
        told(X, y, hessian=hessian, summed=True, asked=points)
        forms = {
            "sums": (X, y, True),
            "row by row": (X, y, False),
            "of a slice": (rows[:, :DIM], rows[:, DIM], False),
            "of columns": (np.asfortranarray(X), y, False),
        }
        learners = {"compiled loop": loop} | {
            f"ask and tell, {name}": lambda hessian=hessian, form=form: told(*form[:2], hessian=hessian, summed=form[2])
            for name, form in forms.items()
        }
        alone = {
            f"NumPy alone, {name}": lambda hessian=hessian, points=points, form=form: numpy_alone(
                *form[:2], points, hessian=hessian, summed=form[2]
            )
            for name, form in forms.items()
        }
        results = [run().result() for run in learners.values()]
        apart = max(np.abs(result.interval().upper / results[0].interval().upper - 1.0).max() for result in results)
        us = best_times(learners | alone, len(rows))
        print(f"{'with a Hessian' if hessian else 'gradients only'}: intervals apart by {apart:.0e} of themselves")
        for name, value in us.items():
            bar = f" (<= {MOST})" if name.startswith("ask") else ""
            print(f"  {name:<26}{value:>8.3f}{value / us['compiled loop']:>8.2f}{bar}")


if __name__ == "__main__":
    main()
