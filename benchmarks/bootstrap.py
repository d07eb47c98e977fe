"""What the multiplier bootstrap costs: `python -m benchmarks.bootstrap`.

The paper's linear experiment with B = 200 copies, drawing the rows included, on one thread, against the milliseconds an
iteration that the paper reports for its Boot.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import time

import halfwidth as hw

COPIES = 200
ROWS = 5_000
ROUNDS = 5
PAPER_MILLISECONDS = {2: 0.63, 30: 1.37, 50: 3.39}


def microseconds(dim: int) -> float:
    """The best of several rounds, a row."""
    learner = hw.MultiplierBootstrap(hw.problem("seed-linear", dim=dim), copies=COPIES).run(100)
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        learner.run(ROWS)
        best = min(best, 1e6 * (time.perf_counter() - start) / ROWS)
    return best


def main() -> None:
    """Print the time a row and how many times faster than the paper's it is."""
    for dim, milliseconds in PAPER_MILLISECONDS.items():
        ours = microseconds(dim)
        ratio = 1_000 * milliseconds / ours
        goal = " (>= 20)" if dim == 50 else ""
        print(f"d = {dim}: {ours:.1f} us a row; theirs {milliseconds} ms: {ratio:,.0f} times faster{goal}")


if __name__ == "__main__":
    main()
