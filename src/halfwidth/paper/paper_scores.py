"""Scores by the paper's convention, beside the exact ones, with Monte Carlo errors.

The paper knows neither theta* nor Sigma: it takes the mean of theta_bar_N over 500 runs of the same algorithm, and N
times their covariance. Fields that end in `_paper` are measured against these; all others against the exact truth.

| field                          | what it is                                                                     |
|--------------------------------|--------------------------------------------------------------------------------|
| `coverage_paper`               | how often the interval contains v' of the 500 runs' mean                       |
| `mis_paper`                    | the interval score around it                                                   |
| `sigma_error_paper`            | E |Sigma_hat - N cov(500 runs)|_2                                              |
| `estimate_bias_over_sd`        | how far that mean is from v'theta*, in exact standard deviations of v'theta_bar |
| `estimate_sigma_error`         | how far N cov(500 runs) is from Sigma, in spectral norm                        |
| `slope`, `slope_paper`         | fitted slope of log error against log n over all checkpoints (last row only)   |
| `..._se`                       | the standard error of the field over the replicates                            |

The slope is linear in the logarithms of the mean errors, so that its standard error follows from the replicates by the
delta method, correlations between checkpoints included.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from halfwidth.kernels.arrays import Vector
from halfwidth.problems import Problem
from halfwidth.study import Spec
from halfwidth.study.replicate import Notes

Row = dict[str, Any]


class Estimated(NamedTuple):
    """What many runs say about theta* and Sigma."""

    theta: Vector
    """The mean of the averages, in place of theta*."""
    sigma: Vector
    """N times their covariance, in place of Sigma."""

    @classmethod
    def of(cls, averages: Vector, steps: int) -> Estimated:
        """From the averages theta_bar_N of independent runs, one per row; runs that diverged are nan and left out."""
        kept = averages[np.isfinite(averages).all(axis=1)]
        return cls(kept.mean(axis=0), np.atleast_2d(steps * np.cov(kept, rowvar=False)))


def mean_and_error(values: Vector) -> tuple[float | None, float | None]:
    """The mean of what is finite, and its standard error."""
    finite = values[np.isfinite(values)]
    if finite.size < 2:
        return None, None
    return float(finite.mean()), float(finite.std(ddof=1) / math.sqrt(finite.size))


def log_slope(steps: Sequence[int], errors: Vector) -> tuple[float | None, float | None]:
    """The least-squares slope of log mean error against log n and its standard error; errors is (replicates, n)."""
    kept = errors[np.isfinite(errors).all(axis=1)]
    if len(kept) < 2 or len(steps) < 2:
        return None, None
    x = np.log(steps) - np.mean(np.log(steps))
    weights = x / (x @ x)
    mean = kept.mean(axis=0)
    influence = (kept / mean - 1.0) @ weights
    return float(weights @ np.log(mean)), float(influence.std(ddof=1) / math.sqrt(len(kept)))


def paper_fields(spec: Spec, problem: Problem, estimated: Estimated, notes: Sequence[Notes]) -> list[Row]:
    """What the paper's convention adds to the row of every checkpoint."""
    v = spec.directions(problem.dim)[0]
    alpha = 1.0 - spec.level
    sd_of_sum = math.sqrt(v @ problem.sigma @ v)
    columns = {name: np.array([getattr(note, name) for note in notes]) for name in ("estimate", "half_width")}
    estimate, half_width = columns["estimate"][:, :, 0], columns["half_width"][:, :, 0]
    errors = {
        "sigma_error": np.array([note.sigma_error for note in notes]),
        "sigma_error_paper": np.array([note.reference_error for note in notes]),
    }

    def scores(center: float) -> tuple[Vector, Vector]:
        miss = np.abs(estimate - center) - half_width
        covered = np.where(np.isfinite(miss), miss <= 0.0, False).astype(np.float64)
        return covered, 2.0 * half_width + 2.0 / alpha * np.maximum(miss, 0.0)

    covered_paper, mis_paper = scores(float(v @ estimated.theta))
    fields = errors | {
        "width": 2.0 * half_width,
        "mis": scores(float(v @ problem.theta_star))[1],
        "coverage_paper": covered_paper,
        "mis_paper": mis_paper,
    }
    slopes = {"slope": "sigma_error", "slope_paper": "sigma_error_paper"}
    rows = []
    for at, step in enumerate(spec.checkpoints):
        row: Row = {}
        for name, values in fields.items():
            row[name], row[f"{name}_se"] = mean_and_error(values[:, at])
        sd = sd_of_sum / math.sqrt(step)
        row["estimate_bias_over_sd"] = float(v @ (estimated.theta - problem.theta_star)) / sd
        row["estimate_sigma_error"] = float(np.linalg.norm(estimated.sigma - problem.sigma, 2))
        for name, source in slopes.items():
            last = at == len(spec.checkpoints) - 1
            row[name], row[f"{name}_se"] = log_slope(spec.checkpoints, errors[source]) if last else (None, None)
        rows.append(row)
    return rows
