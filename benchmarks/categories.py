"""What a category costs: CSV rows with and without one, and how soon 100,000 categories are refused.

    python -m benchmarks.categories

Writes a CSV of two million rows with three numbers and a text column of 12 levels, one with 100,000 levels, and fits

    y ~ a + b        and        y ~ a + b + kind

by turns, in one process, best of three each.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import tempfile
import time
from pathlib import Path

import numpy as np

import halfwidth
from halfwidth.errors import InputError

ROWS = 2_000_000


def write(path: Path, rows: int, levels: int) -> None:
    """Rows y, a, b, kind."""
    import pyarrow as pa
    import pyarrow.csv as pc

    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, rows)).round(5)
    code = rng.integers(0, levels, rows)
    y = (a - b + 0.1 * (code % 7) + rng.normal(size=rows)).round(5)
    kind = pa.array([f"kind-{level}" for level in range(levels)]).take(pa.array(code))
    pc.write_csv(pa.table({"y": y, "a": a, "b": b, "kind": kind}), path)


def seconds(path: Path, formula: str) -> float:
    """How long a fit takes, until its result."""
    start = time.perf_counter()
    halfwidth.fit(path, formula=formula).inference()
    return time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        few, many = Path(folder) / "few.csv", Path(folder) / "many.csv"
        write(few, ROWS, 12)
        write(many, ROWS // 4, 100_000)
        plain, with_levels = [], []
        for _ in range(3):
            plain.append(seconds(few, "y ~ a + b"))
            with_levels.append(seconds(few, "y ~ a + b + kind"))
        print(f"{ROWS:,} rows: y ~ a + b {min(plain):.2f} s, with 12 levels {min(with_levels):.2f} s,", end=" ")
        print(f"{min(with_levels) / min(plain):.2f} times")
        start = time.perf_counter()
        try:
            halfwidth.fit(many, formula="y ~ a + b + kind")
        except InputError as error:
            print(f"100,000 levels: refused after {time.perf_counter() - start:.2f} s: {error}")


if __name__ == "__main__":
    main()
