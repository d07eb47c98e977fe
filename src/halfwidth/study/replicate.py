"""One replicate: run the learner once, let every method watch it, and note its intervals at the checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.errors import Diverged, InputError
from halfwidth.inference import Result
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.warm_start import collect_rows
from halfwidth.methods import Method
from halfwidth.problems import Problem
from halfwidth.study.spec import Spec
from halfwidth.watchers import Watcher


@dataclass
class Notes:
    """What one replicate notes for one method, by checkpoint; nan from a divergence on, and where it refused."""

    estimate: Vector  # (checkpoints, directions)
    half_width: Vector  # (checkpoints, directions)
    coordinates_covered: Vector
    sigma_error: Vector
    truncations: Vector
    reference_error: Vector
    refused: Vector
    standard_error: Vector  # (checkpoints, directions)
    doubted: Vector  # (checkpoints, directions): 1 where the run or a coefficient of the direction carries a flag
    status_ok: Vector  # 1 where the run has status ok, whatever its coefficients have; 0 where it has not
    reason: str = ""

    @classmethod
    def blank(cls, checkpoints: int, directions: int) -> Notes:
        wide = np.full((checkpoints, directions), np.nan)
        narrow = np.full(checkpoints, np.nan)
        return cls(
            estimate=wide,
            half_width=wide.copy(),
            coordinates_covered=narrow,
            sigma_error=narrow.copy(),
            truncations=narrow.copy(),
            reference_error=narrow.copy(),
            refused=np.zeros(checkpoints),
            standard_error=wide.copy(),
            doubted=np.zeros((checkpoints, directions)),
            status_ok=np.zeros(checkpoints),
        )

    def take(self, at: int, result: Result, problem: Problem, spec: Spec) -> None:
        directions = spec.directions(problem.dim)
        given = _given(result, directions)
        interval = result.interval(directions[given], spec.level)
        self.estimate[at, given] = interval.estimate
        self.half_width[at, given] = interval.half_width
        self.standard_error[at, given] = interval.std_error
        flagged = np.array([status != "ok" for status in result.coefficient_status])
        self.status_ok[at] = result.status == "ok"
        self.doubted[at] = (result.status != "ok") | ((directions != 0.0) & flagged).any(axis=1)
        self.coordinates_covered[at] = np.mean(result.interval(level=spec.level).covers(problem.theta_star))
        if result.covariance.ndim == 2 and np.isfinite(result.covariance).all() and np.isfinite(problem.sigma).all():
            self.sigma_error[at] = np.linalg.norm(result.covariance - problem.sigma, 2)
            if spec.reference:
                self.reference_error[at] = np.linalg.norm(result.covariance - np.array(spec.reference), 2)
        self.truncations[at] = result.diagnostics.truncations or 0

    def refuse(self, at: int, reason: str) -> None:
        self.refused[at] = 1.0
        self.reason = reason


def _given(result: Result, directions: Vector) -> NDArray[np.bool_]:
    """Which directions have an interval; all of them where none has one, so that the refusal is heard."""
    given = ~(directions[:, np.isnan(result.bse)] != 0.0).any(axis=1)
    return np.asarray(given if given.any() else ~given)


class EndedSpan(KeyboardInterrupt):
    """A signal ended some replicates: the index of the first, those that were finished, and what the signal raised."""

    def __init__(self, first: int, finished: list[dict[str, Notes]], error: KeyboardInterrupt) -> None:
        super().__init__(str(error))
        self.first, self.finished, self.error = first, finished, error

    def __reduce__(self) -> tuple[type[EndedSpan], tuple[Any, ...]]:
        return type(self), (self.first, self.finished, self.error)


class DrawnRows:
    """The rows of a problem whose source does not see what is learned from them: theta_0 stays deployed."""

    def __init__(self, problem: Problem, seed: np.random.SeedSequence) -> None:
        self._problem = problem
        self._rng = np.random.default_rng(seed)
        self._theta, self._state = np.array(problem.theta_0), np.array(problem.state_0)

    def next(self, rows: int) -> Vector:
        drawn = np.empty((rows, self._problem.row_size))
        collect_rows(self._problem, self._rng, self._theta, self._state, drawn)
        return drawn


class _Run:
    """One learner and the methods that read their result off it."""

    def __init__(self, spec: Spec, rows: Sequence[Method], index: int) -> None:
        self.rows = rows
        self._burn_in_rows = spec.burn_in_rows
        self._watchers: dict[Callable[..., Watcher], Watcher] = {}
        problem, setting = spec.make_problem(), spec.make_setting()
        seed = np.random.SeedSequence(spec.seed, spawn_key=(index,))
        self._rows = DrawnRows(problem, np.random.SeedSequence(spec.seed, spawn_key=(index, 0))) if spec.given else None
        for row in rows:
            if row.watch is not None and row.watch not in self._watchers:
                self._watchers[row.watch] = row.watch(problem.dim, setting)
        if rows[0].learn is not None:
            self.learner = rows[0].learn(problem, setting, seed)
        else:
            self.learner = setting.make_learner(problem, self._from_the_start(), seed)

    def _from_the_start(self) -> list[Watcher]:
        """The watchers that see every row."""
        patient = {row.watch for row in self.rows if row.supports_burn_in and self._burn_in_rows}
        return [watcher for watch, watcher in self._watchers.items() if watch not in patient]

    def advance(self, step: int) -> None:
        """Run on to this row; most watchers begin to look after the burn-in."""
        if self._watchers and self.learner.n_seen < self._burn_in_rows <= step:
            self._learn(self._burn_in_rows - self.learner.n_seen)
            self.learner.watchers = tuple(self._watchers.values())
        self._learn(step - self.learner.n_seen)

    def _learn(self, rows: int) -> None:
        if self._rows is None:
            self.learner.run(rows)
        else:
            self.learner.consume(self._rows.next(rows))

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


def run_replicate(spec: Spec, index: int, problem: Problem | None = None) -> dict[str, Notes]:
    """The notes of one replicate, by method; its random numbers depend on the seed and its index only.

    `problem` is the specification's own, handed over where its truth should be solved once for several replicates.
    """
    problem = spec.make_problem() if problem is None else problem
    directions = len(spec.directions(problem.dim))
    notes = {name: Notes.blank(len(spec.checkpoints), directions) for name in spec.methods}
    for run in _runs(spec, index):
        for at, checkpoint in enumerate(spec.checkpoints):
            try:
                run.advance(checkpoint)
            except Diverged:
                break
            for row in run.rows:
                try:
                    notes[row.name].take(at, run.result(row), problem, spec)
                except InputError as refusal:
                    notes[row.name].refuse(at, str(refusal))
                except Diverged:
                    continue
    return notes


def run_replicates(spec: Spec, methods: tuple[str, ...], indices: Sequence[int]) -> list[dict[str, Notes]]:
    """Several replicates, noted for some of the study's methods."""
    part = replace(spec, methods=methods)
    problem = part.make_problem()
    finished: list[dict[str, Notes]] = []
    try:
        for index in indices:
            finished.append(run_replicate(part, index, problem))  # noqa: PERF401  (what a signal leaves is wanted)
    except KeyboardInterrupt as error:
        raise EndedSpan(indices[0], finished, error) from None
    return finished


def microseconds_per_row(spec: Spec, row: Method) -> float:
    """Sampler, learner and this method alone, timed in one run after the compile."""
    steps = min(spec.steps, 20_000)
    for _ in range(2):
        run = _Run(replace(spec, burn_in=0.0), [row], 0)
        start = time.perf_counter()
        try:
            run.advance(steps)
        except Diverged:
            return float("nan")
        seconds = time.perf_counter() - start
    return 1e6 * seconds / steps
