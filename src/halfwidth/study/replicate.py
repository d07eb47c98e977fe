"""One replicate: run the learner once, let every method watch it, and note its intervals at the checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfwidth.errors import Diverged
from halfwidth.inference import Result
from halfwidth.learners import LEARNERS, Learner
from halfwidth.methods import Method
from halfwidth.problems import Problem
from halfwidth.study.spec import Spec
from halfwidth.watchers import Watcher

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Notes:
    """What one replicate notes for one method, by checkpoint; nan from a divergence on."""

    estimate: Vector  # (checkpoints, directions)
    half_width: Vector  # (checkpoints, directions)
    coordinates_covered: Vector
    sigma_error: Vector
    truncations: Vector

    @classmethod
    def blank(cls, checkpoints: int, directions: int) -> Notes:
        wide, narrow = (checkpoints, directions), (checkpoints,)
        return cls(*(np.full(shape, np.nan) for shape in (wide, wide, narrow, narrow, narrow)))

    def take(self, at: int, result: Result, problem: Problem, directions: Vector, level: float) -> None:
        interval = result.interval(directions, level)
        self.estimate[at] = interval.estimate
        self.half_width[at] = interval.half_width
        self.coordinates_covered[at] = np.mean(result.interval(level=level).covers(problem.theta_star))
        if result.covariance.ndim == 2:
            self.sigma_error[at] = np.linalg.norm(result.covariance - problem.sigma, 2)
        self.truncations[at] = result.diagnostics.truncations or 0


def _learner(spec: Spec, problem: Problem, watchers: Sequence[Watcher], seed: np.random.SeedSequence) -> Learner:
    return LEARNERS[spec.learner](problem, step=spec.make_step(), watchers=watchers, seed=seed)


def _seed(spec: Spec, index: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(spec.seed, spawn_key=(index,))


def run_replicate(spec: Spec, index: int) -> dict[str, Notes]:
    """The notes of one replicate, by method; its random numbers depend on the seed and its index only."""
    problem, rows = spec.make_problem(), spec.make_methods()
    directions = spec.directions(problem.dim)
    watchers: dict[Callable[[int, float], Watcher], Watcher] = {
        row.watch: row.watch(problem.dim, spec.exponent) for row in rows
    }
    learner = _learner(spec, problem, tuple(watchers.values()), _seed(spec, index))
    notes = {row.name: Notes.blank(len(spec.checkpoints), len(directions)) for row in rows}
    for at, checkpoint in enumerate(spec.checkpoints):
        try:
            learner.run(checkpoint - learner.n_seen)
        except Diverged:
            break
        for row in rows:
            result = learner.result(watchers[row.watch], row.critical)
            notes[row.name].take(at, result, problem, directions, spec.level)
    return notes


def microseconds_per_row(spec: Spec, row: Method) -> float:
    """Learner, sampler and this method's watcher together, timed in one run after the compile."""
    problem = spec.make_problem()
    steps = min(spec.steps, 20_000)
    for _ in range(2):
        learner = _learner(spec, problem, (row.watch(problem.dim, spec.exponent),), _seed(spec, 0))
        start = time.perf_counter()
        try:
            learner.run(steps)
        except Diverged:
            return float("nan")
        seconds = time.perf_counter() - start
    return 1e6 * seconds / steps
