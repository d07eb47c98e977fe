"""One replicate: run the learner once, let every method watch it, and note its intervals at the checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfwidth.errors import Diverged
from halfwidth.inference import Result
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


class _Run:
    """One learner and the methods that read their result off it."""

    def __init__(self, spec: Spec, rows: Sequence[Method], index: int) -> None:
        self.rows = rows
        self._watchers: dict[Callable[..., Watcher], Watcher] = {}
        problem, setting = spec.make_problem(), spec.make_setting()
        seed = np.random.SeedSequence(spec.seed, spawn_key=(index,))
        for row in rows:
            if row.watch is not None and row.watch not in self._watchers:
                self._watchers[row.watch] = row.watch(problem.dim, setting)
        if rows[0].learn is not None:
            self.learner = rows[0].learn(problem, setting, seed)
        else:
            self.learner = setting.make_learner(problem, self._watchers.values(), seed)

    def result(self, row: Method) -> Result:
        if row.watch is None:
            return self.learner.result()
        return self.learner.result(self._watchers[row.watch], row.critical)


def _runs(spec: Spec, index: int) -> list[_Run]:
    """Methods that watch share one trajectory; each method with a learner of its own sees the same seed."""
    rows = spec.make_methods()
    watching = [row for row in rows if row.watch is not None]
    groups = [watching] if watching else []
    groups += [[row] for row in rows if row.learn is not None]
    return [_Run(spec, group, index) for group in groups]


def run_replicate(spec: Spec, index: int) -> dict[str, Notes]:
    """The notes of one replicate, by method; its random numbers depend on the seed and its index only."""
    problem = spec.make_problem()
    directions = spec.directions(problem.dim)
    notes = {name: Notes.blank(len(spec.checkpoints), len(directions)) for name in spec.methods}
    for run in _runs(spec, index):
        for at, checkpoint in enumerate(spec.checkpoints):
            try:
                run.learner.run(checkpoint - run.learner.n_seen)
            except Diverged:
                break
            for row in run.rows:
                notes[row.name].take(at, run.result(row), problem, directions, spec.level)
    return notes


def microseconds_per_row(spec: Spec, row: Method) -> float:
    """Sampler, learner and this method alone, timed in one run after the compile."""
    steps = min(spec.steps, 20_000)
    for _ in range(2):
        run = _Run(spec, [row], 0)
        start = time.perf_counter()
        try:
            run.learner.run(steps)
        except Diverged:
            return float("nan")
        seconds = time.perf_counter() - start
    return 1e6 * seconds / steps
