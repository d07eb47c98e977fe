"""The learner contract: owns theta, consumes rows, says which theta it deploys, and ends in a result.

A learner works through rows in chunks. Where the problem has its own source, each row is drawn while the current theta
is deployed (so that a world that answers back sees every step); otherwise rows are given. After every chunk the
iterates go to all watchers.

With `warm_start=m` the first m rows only find a start (`halfwidth.learners.warm_start`), where the trajectory begins:
its count k starts at 1. With `burn_in=b` its first b iterates are walked and forgotten: k runs on, but watchers,
averages and results see nothing of them. All these rows count in `n_seen`, since they were paid for, not in
`n_iterates`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.checks import check_count, check_vector
from halfwidth.errors import Diverged, InputError
from halfwidth.inference import Result
from halfwidth.learners.warm_start import collect_rows, warm_theta
from halfwidth.problems import Problem
from halfwidth.schedules import PowerStep, Schedule
from halfwidth.watchers import Watcher
from halfwidth.watchers.base import Critical

Seed = int | np.random.SeedSequence | np.random.Generator
Vector = NDArray[np.float64]

_CHUNK_NUMBERS = 196_608  # rows and iterates of a chunk stay in the processor's cache


def finite_rows(rows: Vector) -> int:
    """How many rows there are before the first that is not finite."""
    if math.isfinite(rows.sum()):  # one quick pass; only an odd sum is looked at closely
        return len(rows)
    finite = np.isfinite(rows).all(axis=1)
    return len(rows) if finite.all() else int(np.argmin(finite))


class Learner(ABC):
    """A trajectory of theta, made chunk by chunk."""

    name: str
    checks_rows: ClassVar[bool] = False
    """Whether `_walk` itself leaves off at a given row that is not finite; otherwise rows are looked at before."""

    def __init__(
        self,
        problem: Problem,
        *,
        step: Schedule | None = None,
        watchers: Sequence[Watcher] = (),
        seed: Seed = 0,
        theta_0: ArrayLike | None = None,
        warm_start: int = 0,
        burn_in: int = 0,
    ) -> None:
        for watcher in watchers:
            if watcher.dim != problem.dim:
                raise InputError.of("watchers", f"have dim {problem.dim}, as the problem has", watcher.dim)
        self.problem = problem
        self.step: Schedule = PowerStep() if step is None else step
        self.watchers = tuple(watchers)
        self.rng = np.random.default_rng(seed)
        self.n_seen = 0
        self.warm_start = check_count("warm_start", warm_start, at_least=0)
        self.burn_in = check_count("burn_in", burn_in, at_least=0)
        self._buffer = np.empty((self.warm_start, problem.row_size))
        start = problem.theta_0 if theta_0 is None else theta_0
        self._theta_0 = check_vector("theta_0", start, problem.dim)  # type: ignore[arg-type]
        self._theta = self._theta_0.copy()
        self._total = np.zeros(problem.dim)  # of theta minus theta_0
        self._state = np.array(problem.state_0)
        chunk = max(64, min(8192, _CHUNK_NUMBERS // problem.dim))
        self._rows = np.empty((chunk, problem.row_size))
        self._thetas = np.empty((chunk, problem.dim))

    @abstractmethod
    def _walk(self, draw: bool, rows: Vector, thetas: Vector, k: NDArray[np.int64]) -> int | None:
        """Take one step for each row, drawing it first if asked to; write the iterates into `thetas`.

        Returns how many rows were learned, or None for all of them.
        """

    @property
    def theta(self) -> Vector:
        """The current iterate."""
        return self._theta.copy()

    @property
    def n_iterates(self) -> int:
        """How many iterates the average is over: the rows seen after the warm start and the burn-in."""
        return max(self.n_seen - self.warm_start - self.burn_in, 0)

    @property
    def deployed(self) -> Vector:
        """The parameter that the world sees while it makes the next row."""
        return self.theta

    @property
    def theta_bar(self) -> Vector:
        """The average of all iterates so far; the start while there are none."""
        return np.asarray(self._theta_0 + self._total / max(self.n_iterates, 1))

    def run(self, steps: int) -> Learner:
        """Draw this many rows from the problem and learn from each."""
        check_count("steps", steps, at_least=0)
        if self.problem.sample is None:
            raise InputError(f"problem {self.problem.name!r} has no sampler: give rows to consume(rows) instead")
        done = 0
        while done < steps:
            size = min(len(self._rows), steps - done)
            self._take(True, self._rows[:size])
            done += size
        return self

    def consume(self, rows: ArrayLike) -> Learner:
        """Learn from given rows, in order; a row holds what the problem's gradient reads, like (u, y).

        A row that is not finite raises, after the rows before it were learned.
        """
        array = np.ascontiguousarray(rows, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] != self.problem.row_size:
            raise InputError.of("rows", f"have shape (m, {self.problem.row_size})", np.shape(rows))
        for at in range(0, len(array), len(self._rows)):
            chunk = array[at : at + len(self._rows)]
            unseen = self.n_seen < self.warm_start or not self.checks_rows
            learned = self._take(False, chunk[: finite_rows(chunk)] if unseen else chunk)
            if learned < len(chunk):
                column = int(np.argmin(np.isfinite(chunk[learned])))
                raise InputError(
                    f"rows must be finite; row {at + learned} has {chunk[learned, column]} in column {column}. "
                    "The rows before it were learned"
                )
        return self

    def _take(self, draw: bool, rows: Vector) -> int:
        """Learn from the rows; returns from how many, which is all of them unless `_walk` left off."""
        warm = min(max(self.warm_start - self.n_seen, 0), len(rows))
        if warm:
            self._warm(draw, rows[:warm])
        return warm + (self._follow(draw, rows[warm:]) if warm < len(rows) else 0)

    def _follow(self, draw: bool, rows: Vector) -> int:
        """Follow the trajectory along the rows after the warm start."""
        burning = self.warm_start + self.burn_in - self.n_seen
        if 0 < burning < len(rows):
            burned = self._follow(draw, rows[:burning])
            return burned + (self._follow(draw, rows[burning:]) if burned == burning else 0)
        k = np.arange(1, len(rows) + 1) + (self.n_seen - self.warm_start)
        learned = self._walk(draw, rows, self._thetas[: len(rows)], k)
        thetas = self._thetas[: len(rows) if learned is None else learned]
        if not np.isfinite(self._theta).all():
            first = self.n_seen + 1 + int(np.argmin(np.isfinite(thetas).all(axis=1)))
            raise Diverged(
                f"the iterates left the finite numbers at row {first:,}; take smaller steps, or cap them at the "
                "row's curvature (CappedSGD, --learner capped)"
                + (". A gradient of your own must be written into its last argument" if first == 1 else "")
            )
        self.n_seen += len(thetas)
        if burning > 0:
            self._forget()
        elif len(thetas):
            self._add_to_total(thetas)
            for watcher in self.watchers:
                watcher.take(thetas)
        return len(thetas)

    def _add_to_total(self, thetas: Vector) -> None:
        self._total += np.ones(len(thetas)) @ thetas - len(thetas) * self._theta_0

    def _warm(self, draw: bool, rows: Vector) -> None:
        """Collect rows until the buffer is full, then begin."""
        if draw:
            collect_rows(self.problem, self.rng, self._theta, self._state, rows)
        self._buffer[self.n_seen : self.n_seen + len(rows)] = rows
        self.n_seen += len(rows)
        if self.n_seen == self.warm_start:
            self._start_at(warm_theta(self.problem, self.step, self._theta, self._buffer))
            self._buffer = self._buffer[:0].copy()

    def _start_at(self, theta: Vector) -> None:
        """Begin the trajectory at theta; learners with several trajectories move them all there."""
        self._theta_0[:] = theta
        self._theta[:] = theta

    def _forget(self) -> None:  # noqa: B027  (most learners keep nothing but the average)
        """Drop what a result would be built from: these iterates belong to the burn-in."""

    def result(self, watcher: Watcher | None = None, critical: Critical = "calibrated") -> Result:
        """What can be said now, by the given watcher or the only one there is, with this run's own facts."""
        if watcher is None:
            if not self.watchers:
                raise InputError("nobody watched this run: give the learner watchers=[...] before it runs, or use Auto")
            if len(self.watchers) > 1:
                raise InputError.of("watcher", "be named when there is not exactly one", len(self.watchers))
            watcher = self.watchers[0]
        return self._with_facts(watcher.result(critical))

    def _with_facts(self, result: Result) -> Result:
        """The result with what this run knows about itself."""
        flags = []
        if not getattr(self.step, "within_theory", True):
            text = f"{self.step!r} does not shrink: the average does not converge to theta*; use PowerStep"
            flags.append(("outside-theory", text))
        return result.with_facts(*flags, **self._facts())

    def _facts(self) -> dict[str, Any]:
        """What this kind of learner adds to the diagnostics."""
        return {}
