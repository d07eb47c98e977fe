"""The trajectory behind every learner: theta, its average, the warm start, the burn-in, and the loops over chunks.

With `warm_start=m` the first m rows only find a start (`halfwidth.learners.warm_start`), where the trajectory begins:
its count k starts at 1. With `burn_in=b` its first b iterates are computed and discarded: k runs on, but watchers,
averages and results see nothing of them. All these rows count in `n_seen`, since they were paid for, not in
`n_iterates`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.checks import check_count, check_seed, check_vector
from halfwidth.errors import Diverged, InputError
from halfwidth.kernels.arrays import Function, Indices, Vector
from halfwidth.kernels.compile import specialise
from halfwidth.kernels.rows import Path, RowData, no_rows
from halfwidth.learners.learner_state import LONGEST_WARM_START, State
from halfwidth.learners.warm_start import collect_rows, warm_theta
from halfwidth.problems import Problem
from halfwidth.schedules import PowerStep, Schedule
from halfwidth.state.fields import Fields
from halfwidth.state.schema import Relation
from halfwidth.watchers import Watcher

Seed = int | np.random.SeedSequence | np.random.Generator

_CHUNK_NUMBERS = 327_680  # rows and iterates of a chunk stay in the processor's cache


def checked_watchers(watchers: object, dim: int) -> tuple[Watcher, ...]:
    """Each of them once, and of this dimension."""
    found = tuple(watchers) if isinstance(watchers, Iterable) else (watchers,)
    if not isinstance(watchers, Iterable) or not all(isinstance(watcher, Watcher) for watcher in found):
        raise InputError.of("watchers", "be a sequence of watchers, like [OverlappingBatchMeans(dim)]", watchers)
    for watcher in found:
        if watcher.dim != dim:
            raise InputError.of("watchers", f"have dim {dim}, as the problem has", watcher.dim)
    if len({id(watcher) for watcher in found}) < len(found):
        raise InputError("watchers must be given once each: one that is given twice would see every iterate twice")
    return found


class Trajectory(ABC):
    """A trajectory of theta, made chunk by chunk; `Learner` is what users see of it."""

    name: str
    version: ClassVar[int] = 1
    options: ClassVar[tuple[str, ...]] = ("step", "warm_start", "burn_in")
    """Which of these arguments the constructor takes; a learner that chooses its own steps takes none of them."""
    settings: ClassVar[Fields] = {}
    """Arguments of the constructor besides `LearnerOptions`, each kept under its own name."""
    kept: ClassVar[Fields]
    """Attributes, arrays and integers, that a state holds besides those of every learner; without their underscore."""
    parts: ClassVar[Fields] = {}
    """What `_parts` gives."""
    relations: ClassVar[tuple[Relation, ...]] = ()
    """What must hold between the fields of a state."""
    generators: ClassVar[tuple[str, ...]] = ("rng",)
    """Random generators that a state holds."""

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
        if not isinstance(problem, Problem):
            raise InputError.of("problem", "be a Problem, as hw.problem(name) makes one", problem)
        self.watchers = checked_watchers(watchers, problem.dim)
        self.problem = problem
        self.step: Schedule = PowerStep() if step is None else step
        self.rng = check_seed(seed)
        self.n_seen = 0
        self.warm_start = check_count("warm_start", warm_start, at_least=0)
        if warm_start > LONGEST_WARM_START:
            raise InputError.of("warm_start", f"be at most {LONGEST_WARM_START}, a buffer of rows", warm_start)
        self.burn_in = check_count("burn_in", burn_in, at_least=0)
        self._buffer = np.empty((self.warm_start, problem.row_size))
        start = problem.theta_0 if theta_0 is None else theta_0
        self._theta_0 = check_vector("theta_0", start, problem.dim)  # type: ignore[arg-type]  # a problem has its own
        self._theta = self._theta_0.copy()
        self._total = np.zeros(problem.dim)  # of theta minus theta_0
        self._state = np.array(problem.state_0)
        chunk = max(64, min(16_000, _CHUNK_NUMBERS // problem.dim))
        self._rows = np.empty((chunk, problem.row_size))
        self._thetas, self._ones = np.empty((chunk, problem.dim)), np.ones(chunk)
        self._grad = np.full(problem.dim, np.nan)  # so that a gradient that writes nothing is noticed
        self._prepare()

    def _prepare(self) -> None:  # noqa: B027  (most learners have arrays and loops of their own, not all)
        """Allocate what this kind of learner needs, and build its loops; its settings are there already."""

    @abstractmethod
    def _walk(self, draw: bool, rows: Vector, thetas: Vector, k: Indices) -> None:
        """Take one step for each row, drawing it first if asked to; write the iterates into `thetas`."""

    def _enter(self, mode: Literal["run", "consume"]) -> None:  # noqa: B027  (only some learners treat rows by how they come)
        """Rows are about to come by `run` or `consume`."""

    def _set_loops(self, factory: Function, *functions: Function) -> None:
        """Build the loop around the problem's functions, once for rows that are drawn and once for given ones.

        A loop for given rows needs no generator, whose hand-over costs as much as hundreds of rows.
        """
        self._drawing = specialise(factory, self.problem.sample or no_rows, *functions)
        self._given = specialise(factory, no_rows, *functions)

    def _run_loop(self, draw: bool, rows: Vector, thetas: Vector, steps: Vector, first: int, *work: Any) -> Any:
        """Run the loop over one chunk; `work` is what this kind of learner hands to it besides rows and path."""
        data = RowData(rows, self._state, np.asarray(self.problem.params))
        path = Path(self._theta, steps, thetas, self._theta_0, first)
        return self._drawing(self.rng, data, path, *work) if draw else self._given(None, data, path, *work)

    def _averaged(self, k: Indices) -> int:
        """How many iterates a running mean is over before row k[0]; it begins again after the burn-in."""
        return int(k[0]) - 1 - (self.burn_in if k[0] > self.burn_in else 0)

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
        """The parameter that is deployed while the next row is made."""
        return self.theta

    @property
    def theta_bar(self) -> Vector:
        """The average of all iterates so far; the start while there are none."""
        return np.asarray(self._theta_0 + self._total / max(self.n_iterates, 1))

    def _rows_at_once(self, rows: int) -> int:
        """How many of so many given rows are learned in one piece: as many as there is space for iterates."""
        return len(self._rows)

    def _take(self, draw: bool, rows: Vector) -> None:
        """Learn from the rows."""
        warm = min(max(self.warm_start - self.n_seen, 0), len(rows))
        if warm:
            self._warm(draw, rows[:warm])
        if warm < len(rows):
            self._follow(draw, rows[warm:])

    def _follow(self, draw: bool, rows: Vector) -> None:
        """Follow the trajectory along the rows after the warm start."""
        burning = self.warm_start + self.burn_in - self.n_seen
        if 0 < burning < len(rows):
            self._follow(draw, rows[:burning])
            self._follow(draw, rows[burning:])
            return
        before = self.n_seen - self.warm_start
        k = np.arange(before + 1, before + len(rows) + 1)
        thetas = self._thetas[: len(rows)]
        self._walk(draw, rows, thetas, k)
        if not np.isfinite(self._theta).all():
            first = self.n_seen + 1 + int(np.argmin(np.isfinite(thetas).all(axis=1)))
            raise Diverged(
                f"the iterates diverged: theta is not finite at row {first:,}; take smaller steps, or cap them at the "
                "row's curvature (CappedSGD, --learner capped)"
                + (". A gradient of your own must be written into its last argument" if first == 1 else "")
            )
        self.n_seen += len(rows)
        if burning > 0:
            self._forget()
        else:
            self._add_to_total(thetas)
            for watcher in self.watchers:
                watcher.take(thetas)

    def _add_to_total(self, thetas: Vector) -> None:
        self._total += self._ones[: len(thetas)] @ thetas - len(thetas) * self._theta_0

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

    def _parts(self) -> State:
        """The states of what this kind of learner holds besides arrays and integers."""
        return {}

    def _restore_parts(self, state: State) -> None:  # noqa: B027  (most learners have none)
        """Take over what `_parts` described."""
