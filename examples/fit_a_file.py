"""Regression on a file whose rows are in time order: one pass, and standard errors that allow for dependence."""

import csv
import tempfile
from pathlib import Path

import numpy as np

import halfwidth as hw


def write_rows(path, n=20_000, phi=0.8):
    """Two autoregressive features and an autoregressive error; the true coefficients are 1, 0.5 and -0.5."""
    rng = np.random.default_rng(0)
    noise, state = rng.standard_normal((n, 3)), np.zeros(3)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["hour", "heat", "wind", "demand"])
        for hour in range(n):
            state = phi * state + np.sqrt(1 - phi**2) * noise[hour]
            heat, wind, error = state
            writer.writerow([hour, heat, wind, 1.0 + 0.5 * heat - 0.5 * wind + error])


with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "demand.csv"
    write_rows(path)
    result = hw.fit(path, formula="demand ~ heat + wind", time="hour").inference()

print(result.summary())
print(f"standard errors for independent rows would be {np.median(result.basis.ratio_to_iid):.1f} times too small")
