"""From runs to rows: error of Sigma_hat with bias and spread apart, local slopes, coverage, bias of the average.

With S_i the Sigma_hat of replicate i at n rows, |.| the spectral norm and v = (1, ..., 1):

| field            | what it is                                                                               |
|------------------|------------------------------------------------------------------------------------------|
| `sigma_error`    | mean of abs(S_i - Sigma)                                                                 |
| `sigma_bias`     | abs(mean S - Sigma)                                                                      |
| `sigma_spread`   | mean of abs(S_i - mean S)                                                                |
| `local_slope`    | log(error(n) / error(n/16)) / log 16                                                     |
| `coverage`       | how often v'theta_bar +- critical value sqrt(v'S_i v / n) contains v'theta*              |
| `width_ratio`    | mean width over that of the interval that knows Sigma                                    |
| `bias_over_sd`   | mean error of v'theta_bar over its exact standard deviation sqrt(v'Sigma v / n)          |
| `..._se`         | the standard error of the field over the replicates                                      |

Critical values: 1.96 for `BM`, the paper's interval; for `BM calibrated` the quantile of the Brownian functional that
belongs to the blocks there are at n rows (`halfwidth.inference.laws`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from halfwidth.inference.brownian_law import block_law
from halfwidth.inference.laws import NormalLaw
from halfwidth.kernels.arrays import Vector
from halfwidth.paper.paper_scores import Row, log_slope, mean_and_error
from halfwidth.paper.rate_runs import Case, Runs
from halfwidth.study.replicate import Notes
from halfwidth.study.scores import score_rows
from halfwidth.study.spec import Spec

LEVEL = 0.95
FACTOR = 16
BM, CALIBRATED, AUTO = "BM", "BM calibrated", "auto"
_FEWEST_BLOCKS = 3


def labels(case: Case, name: str) -> Row:
    """What says where a row belongs; `a` means nothing to a method that chooses its own steps."""
    a = None if name == AUTO else case.exponent
    return {"model": case.model, "dim": case.dim, "epsilon": case.epsilon, "a": a, "name": name}


def case_rows(case: Case, runs: Runs, checkpoints: Sequence[int]) -> list[Row]:
    """The rows of both intervals around the runs of one case; the fields of Sigma_hat are in those of `BM`."""
    # Sums of the same numbers in another order of memory, as a backend may hand them back, differ in their last digit.
    averages, covariances = np.ascontiguousarray(runs.averages), np.ascontiguousarray(runs.covariances)
    away = covariances - case.problem.sigma
    errors = spectral_norm(away)
    rows: list[Row] = []
    for at, n in enumerate(checkpoints):
        sigma = {"sigma_error": errors[:, at], "sigma_spread": spectral_norm(away[:, at] - away[:, at].mean(axis=0))}
        fields: Row = {}
        for name, values in sigma.items():
            fields[name], fields[f"{name}_se"] = mean_and_error(values)
        fields["sigma_bias"], fields["sigma_bias_se"] = _norm_of_mean(away[:, at])
        fields |= _local_slope(checkpoints, errors, at)
        for name in (BM, CALIBRATED):
            critical = critical_value(case, name, n)
            if critical is not None:
                head = labels(case, name) | {"step": n, "replicates": len(errors), "level": LEVEL}
                scores = _interval_scores(case, averages[:, at], covariances[:, at], n, critical)
                rows.append(head | scores | (fields if name == BM else {}))
    return rows


def auto_rows(case: Case, spec: Spec, notes: Sequence[Notes], microseconds: float) -> list[Row]:
    """The same fields, as far as they apply, of a study of `auto`."""
    rows = []
    place = {step: at for at, step in enumerate(spec.checkpoints)}
    for scored in score_rows(spec, case.problem, AUTO, notes, microseconds):
        step = scored["step"]
        errors = np.array([note.sigma_error[place[step]] for note in notes])
        fields: Row = {key: scored[key] for key in ("step", "replicates", "level", "coverage", "coverage_se", "width")}
        fields["sigma_error"], fields["sigma_error_se"] = mean_and_error(errors)
        fields["bias_over_sd"] = scored["bias_over_sd"]
        fields["width_ratio"] = scored["width"] / (2.0 * NormalLaw().quantile(LEVEL) * deviation(case, step))
        rows.append(labels(case, AUTO) | fields)
    return rows


def critical_value(case: Case, name: str, n: int) -> float | None:
    """The critical value of an interval at n rows; None while there are too few blocks for the calibrated one."""
    if name == BM:
        return NormalLaw().quantile(LEVEL)
    starts = case.plan.starts_up_to(n)
    return block_law(tuple(starts.tolist()), n).quantile(LEVEL) if len(starts) >= _FEWEST_BLOCKS else None


def theory(a: float) -> float:
    """The exponent of n in the theorem's rate."""
    return -(1.0 - a) / 4.0


def deviation(case: Case, n: int) -> float:
    """The exact standard deviation of v'theta_bar at n rows."""
    return math.sqrt(float(np.sum(case.problem.sigma)) / n)


def spectral_norm(matrices: Vector) -> Vector:
    """Of symmetric matrices."""
    return np.asarray(np.abs(np.linalg.eigvalsh(matrices)).max(axis=-1))


def _norm_of_mean(away: Vector) -> tuple[float, float]:
    """The norm of the mean matrix, and its error by the delta method: only its largest eigenvalue counts."""
    values, vectors = np.linalg.eigh(away.mean(axis=0))
    top = vectors[:, np.argmax(np.abs(values))]
    along = np.einsum("nij,i,j->n", away, top, top)
    return float(np.abs(values).max()), float(along.std(ddof=1) / math.sqrt(len(away)))


def _local_slope(checkpoints: Sequence[int], errors: Vector, at: int) -> Row:
    n = checkpoints[at]
    if n // FACTOR not in checkpoints:
        return {"local_slope": None, "local_slope_se": None}
    before = checkpoints.index(n // FACTOR)
    slope, error = log_slope((n // FACTOR, n), errors[:, [before, at]])
    return {"local_slope": slope, "local_slope_se": error}


def _interval_scores(case: Case, averages: Vector, covariances: Vector, n: int, critical: float) -> Row:
    away = (averages - case.problem.theta_star).sum(axis=1)
    half_width = critical * np.sqrt(covariances.sum(axis=(1, 2)) / n)
    sd = deviation(case, n)
    row: Row = {}
    for name, values in {
        "coverage": (np.abs(away) <= half_width).astype(np.float64),
        "width": 2.0 * half_width,
        "width_ratio": half_width / (NormalLaw().quantile(LEVEL) * sd),
        "bias_over_sd": away / sd,
    }.items():
        row[name], row[f"{name}_se"] = mean_and_error(values)
    return row
