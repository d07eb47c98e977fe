"""Scores of a method over replicates, always against the exact truth unless the name says otherwise.

- `coverage`: how often the interval contains v'theta*; a diverged run counts as a miss.
- `coverage_of_mean`: how often it contains the mean of v'theta_bar over the replicates, which is what the seed paper
  reports: it forgives the bias of the average.
- `mis`: the mean interval score, width + (2/alpha) (distance by which the truth was missed); `mis_ratio` divides by the
  score of the interval that knows Sigma, 4 phi(z) sd / alpha with sd^2 = v'Sigma v / n.
- `bias_over_sd`: the mean error of the estimate over that same sd.

A replicate in which the method refused to give an interval counts as a miss, and not as diverged.

With several directions (`--direction all`) every score is the mean over them, and the bias their root mean square.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from halfwidth.inference import NormalLaw
from halfwidth.kernels.arrays import Vector
from halfwidth.problems import Problem
from halfwidth.study.replicate import Notes
from halfwidth.study.spec import Spec

Row = dict[str, Any]

_SCORES = (
    "coverage coverage_se coverage_of_mean width mis mis_ratio bias_over_sd "
    "coverage_coordinates sigma_error truncations diverged us_per_row"
).split()


def score_rows(spec: Spec, problem: Problem, method: str, notes: Sequence[Notes], microseconds: float) -> list[Row]:
    """One row for each checkpoint that had an interval, with the fields of the JSON contract in their order."""
    rows = []
    for at, step in enumerate(spec.checkpoints):
        refused = np.array([note.refused[at] for note in notes])
        if refused.all():
            continue
        estimate = np.array([note.estimate[at] for note in notes])
        half_width = np.array([note.half_width[at] for note in notes])
        others = {
            "coverage_coordinates": _mean(np.nan_to_num([note.coordinates_covered[at] for note in notes])),
            "sigma_error": _mean([note.sigma_error[at] for note in notes]),
            "truncations": _mean([note.truncations[at] for note in notes]),
            "diverged": int((np.isnan(estimate[:, 0]) & (refused == 0)).sum()),
            "us_per_row": microseconds if math.isfinite(microseconds) else None,
        }
        scores = _interval_scores(spec, problem, step, estimate, half_width)
        rows.append(_head(spec, problem, method, step, len(notes)) | scores | others)
    return rows


def blank_row(spec: Spec, problem: Problem, method: str) -> Row:
    """The last row of a method that gave no interval at all."""
    return _head(spec, problem, method, spec.steps, 0) | dict.fromkeys(_SCORES)


def mis_ratio_se(spec: Spec, problem: Problem, notes: Sequence[Notes]) -> float:
    """The standard error of the last `mis_ratio` over the replicates."""
    estimate = np.array([note.estimate[-1] for note in notes])
    half_width = np.array([note.half_width[-1] for note in notes])
    ratios = _scores_over_oracle(spec, problem, spec.steps, estimate, half_width)[1].mean(axis=1)
    ratios = ratios[np.isfinite(ratios)]
    return float(ratios.std() / math.sqrt(max(ratios.size, 1))) if ratios.size else 0.0


def doubt_scores(spec: Spec, problem: Problem, notes: Sequence[Notes]) -> Row:
    """How many replicates end with a named doubt, and how often the intervals of the others cover; None without any."""
    doubted = [bool(note.doubted[-1].any()) for note in notes]
    truth = spec.directions(problem.dim) @ problem.theta_star
    sure = [note for note, doubt in zip(notes, doubted, strict=True) if not (doubt or note.refused[-1])]
    covered = [(np.abs(note.estimate[-1] - truth) <= note.half_width[-1]).mean() for note in sure]
    return {"doubted": sum(doubted) if notes else None, "coverage_ok": _mean(covered)}


def _head(spec: Spec, problem: Problem, method: str, step: int, replicates: int) -> Row:
    return {
        "problem": spec.problem,
        "params": _params(spec, problem),
        "method": method,
        "learner": spec.learner,
        "eta": spec.eta,
        "exponent": spec.exponent,
        "level": spec.level,
        "seed": spec.seed,
        "dim": problem.dim,
        "step": step,
        "replicates": replicates,
    }


def _params(spec: Spec, problem: Problem) -> dict[str, Any]:
    """What the problem says of itself, and what was set beyond that, like theta_r."""
    said = dict(problem.settings)
    beyond = {name: np.asarray(value).tolist() for name, value in spec.settings.items() if value is not None}
    return said | {name: value for name, value in beyond.items() if name not in said}


def _deviations(spec: Spec, problem: Problem, step: int) -> Vector:
    """The exact standard deviation of v'theta_bar at this step, by direction."""
    directions = spec.directions(problem.dim)
    return np.asarray(np.sqrt(np.einsum("md,de,me->m", directions, problem.sigma, directions) / step))


def _scores_over_oracle(
    spec: Spec, problem: Problem, step: int, estimate: Vector, half_width: Vector
) -> tuple[Vector, Vector]:
    """The interval score of every replicate and direction, as it is and over the oracle's."""
    truth = spec.directions(problem.dim) @ problem.theta_star
    alpha = 1.0 - spec.level
    score = 2.0 * half_width + 2.0 / alpha * np.maximum(np.abs(estimate - truth) - half_width, 0.0)
    z = NormalLaw().quantile(spec.level)
    oracle = 4.0 * math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) / alpha * _deviations(spec, problem, step)
    return score, score / oracle


def _interval_scores(spec: Spec, problem: Problem, step: int, estimate: Vector, half_width: Vector) -> Row:
    directions = spec.directions(problem.dim)
    truth = directions @ problem.theta_star
    sd = _deviations(spec, problem, step)
    finite = np.isfinite(estimate[:, 0])
    miss = np.abs(estimate - truth) - half_width
    covered = np.where(finite[:, None], miss <= 0, False).mean(axis=1)
    center = np.nanmean(estimate, axis=0) if finite.any() else np.nan
    covered_mean = np.where(finite[:, None], np.abs(estimate - center) <= half_width, False)
    score, ratio = _scores_over_oracle(spec, problem, step, estimate, half_width)
    bias = (center - truth) / sd
    return {
        "coverage": float(covered.mean()),
        "coverage_se": float(covered.std() / math.sqrt(len(covered))),
        "coverage_of_mean": float(covered_mean.mean()),
        "width": _mean(2.0 * half_width),
        "mis": _mean(score),
        "mis_ratio": _mean(ratio),
        "bias_over_sd": _mean(bias) if len(truth) == 1 else _mean(bias**2, root=True),
    }


def _mean(values: Any, root: bool = False) -> float | None:
    """The mean of what is finite, or None when nothing is."""
    array = np.asarray(values, dtype=np.float64)
    array = array[np.isfinite(array)]
    if not array.size:
        return None
    mean = float(array.mean())
    return math.sqrt(mean) if root else mean
