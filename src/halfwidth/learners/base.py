"""The learner contract: owns theta, consumes rows, says which theta it deploys, and ends in a result.

A learner works through rows in chunks. Where the problem has its own source, each row is drawn while the current theta
is deployed (so that state-dependent data see every step); otherwise rows are given. After every chunk the iterates go
to all watchers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self, TypedDict

from numpy.typing import ArrayLike

from halfwidth.checks import check_count
from halfwidth.docstrings import share_arguments, share_parameters
from halfwidth.errors import InputError
from halfwidth.inference import Result
from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.rows import non_finite, shaped_rows
from halfwidth.learners.learner_state import State, learner_state, restored_learner
from halfwidth.learners.trajectory import Seed, Trajectory
from halfwidth.learners.undo import Before, worth_undoing
from halfwidth.problems import Problem
from halfwidth.schedules import Schedule
from halfwidth.state.guard import guard_of
from halfwidth.watchers import Watcher
from halfwidth.watchers.base import Critical

_OPTIONS = """    **options
        What every learner takes: step, watchers, seed, theta_0, warm_start and burn_in; see `Learner`.
"""


class LearnerOptions(TypedDict, total=False):
    """The keyword arguments that every learner takes; `Learner` documents them."""

    step: Schedule | None
    watchers: Sequence[Watcher]
    seed: Seed
    theta_0: ArrayLike | None
    warm_start: int
    burn_in: int


@share_arguments(
    returns="""
    Self
        The learner itself.
"""
)
class Learner(Trajectory):
    """A trajectory of theta, made chunk by chunk.

    Parameters
    ----------
    problem : Problem
        The gradient, and the source of rows where there is one.
    step : schedule, optional
        Step size eta_k as a function of k = 1, 2, ...; `PowerStep()` by default.
    watchers : sequence of Watcher
        Estimators that observe the iterates; each must have the problem's dimension.
    seed : int, SeedSequence or Generator
        Source of the random numbers that rows are drawn with.
    theta_0 : array_like, optional
        Start of the trajectory; the problem's own by default.
    warm_start : int
        Number of first rows that only find a start.
    burn_in : int
        Number of first iterates that are discarded.

    Raises
    ------
    InputError
        An argument breaks its rule, or the problem lacks a function that the learner needs.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        share_parameters(cls, _OPTIONS)

    def run(self, steps: int) -> Self:
        """Draw rows from the problem and learn from each.

        Parameters
        ----------
        steps : int
            Number of rows.

        Raises
        ------
        InputError
            The problem has no sampler.
        Diverged
            An iterate is not finite.
        """
        check_count("steps", steps, at_least=0)
        self._check_way("run")
        if self.problem.sample is None:
            raise InputError(f"problem {self.problem.name!r} has no sampler: give rows to consume(rows) instead")
        done = 0
        with guard_of(self):
            self._enter("run")
            try:
                while done < steps:
                    size = min(len(self._rows), steps - done)
                    self._take(True, self._rows[:size])
                    done += size
            except InputError as error:
                guard_of(self).spoil(error)  # of a function of the problem: no refusal
                raise
        return self

    def consume(self, rows: ArrayLike) -> Self:
        """Learn from given rows, in order.

        Parameters
        ----------
        rows : array_like of shape (m, row_size)
            Each row holds what the problem's gradient reads, like (u, y).

        Raises
        ------
        Diverged
            An iterate is not finite.
        InputError
            The shape is wrong or a row is not finite; no row of the call was learned.
        """
        self._check_way("consume")
        array = shaped_rows("rows", rows, self.problem.row_size)
        undoable = self._finds_bad_rows() and worth_undoing(self, len(array))
        refusal = None if undoable else _refusal(array)
        if refusal is not None:
            raise refusal
        with guard_of(self):
            self._enter("consume")
            before = Before(self) if undoable else None
            try:
                step = self._rows_at_once(len(array))
                for at in range(0, len(array), step):
                    self._take(False, array[at : at + step])
            except Exception as error:
                refusal = None if before is None else _refusal(array)
                if before is None or refusal is None:
                    if isinstance(error, InputError):  # of a function of the problem
                        guard_of(self).spoil(error)
                    raise
                before.put_back(self)
                raise refusal from None
        return self

    def _check_way(self, mode: Literal["run", "consume"]) -> None:
        """Raise where rows cannot come in this way."""

    def _finds_bad_rows(self) -> bool:
        """Whether `_walk` raises at a given row that is not finite, before it is learned."""
        return False

    def result(self, watcher: Watcher | None = None, critical: Critical = "calibrated") -> Result:
        """What can be said now.

        Parameters
        ----------
        watcher : Watcher, optional
            One of the learner's watchers; needs to be named when there are several.
        critical : {"calibrated", "normal"}
            Quantiles of the watcher's own limit law, or of the normal law for comparison.

        Returns
        -------
        Result
            The watcher's result, with this run's own diagnostics.

        Raises
        ------
        InputError
            No watcher is attached, or several are and none is named.
        NotEnoughData
            The watcher has seen too few iterates.
        """
        guard_of(self).check()
        if watcher is None:
            if not self.watchers:
                raise InputError("no watcher is attached: give the learner watchers=[...] before it runs, or use Auto")
            if len(self.watchers) > 1:
                raise InputError.of("watcher", "be named when there is not exactly one", len(self.watchers))
            watcher = self.watchers[0]
        elif not any(watcher is own for own in self.watchers):
            raise InputError("watcher must be one of this learner's own watchers: another one saw another run")
        return self._with_facts(watcher.result(critical))

    def _with_facts(self, result: Result) -> Result:
        """The result with what this run knows about itself."""
        flags = []
        if not getattr(self.step, "within_theory", True):
            text = f"{self.step!r} does not shrink: the average does not converge to theta*; use PowerStep"
            flags.append(("outside-theory", text))
        if self.problem.doubts is not None and result.covariance.shape == (self.problem.dim,) * 2:
            flags.extend(self.problem.doubts(result))
        return result.with_facts(*flags, **self._facts())

    def _facts(self) -> dict[str, Any]:
        """What this kind of learner adds to the diagnostics."""
        return {}

    def to_state(self) -> State:
        """Everything the run depends on, as plain numbers and arrays; see `halfwidth.learners.learner_state`.

        Returns
        -------
        dict
            With `kind`, `version`, the configuration, the arrays and the states of the watchers.

        Raises
        ------
        InputError
            A schedule or generator is none of those that a state can hold.
        """
        guard_of(self).check()
        return learner_state(self)

    @classmethod
    def from_state(cls, state: State, problem: Problem) -> Self:
        """The learner that `to_state` described; it goes on with the same bits.

        Parameters
        ----------
        state : dict
            What `to_state` gave.
        problem : Problem
            The problem of the run, which `Auto` may have run without. Functions are not part of a state, and are not
            compared: the caller brings the same ones. Give each problem of your own a name, which is.

        Returns
        -------
        Self
            A learner at the same row.

        Raises
        ------
        BadState
            The state breaks a rule, or is of another kind of learner, or of a problem with another name, dimension,
            row size or parameters; nothing was built.
        """
        return restored_learner(cls, state, problem)


def _refusal(rows: Vector) -> InputError | None:
    return non_finite("rows", rows, "column", "No row of the call was learned")
