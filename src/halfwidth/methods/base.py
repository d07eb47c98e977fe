"""What a method is: how it learns, watches and makes an interval, and what it assumes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from halfwidth.errors import InputError, UnknownName
from halfwidth.learners import LEARNERS, Learner
from halfwidth.learners.trajectory import Seed
from halfwidth.problems import Problem
from halfwidth.schedules import PowerStep
from halfwidth.watchers import Watcher
from halfwidth.watchers.base import Critical

Data = Literal["iid", "markov", "state-dependent"]


@dataclass(frozen=True)
class Setting:
    """What the methods of a study share; a method that chooses its own steps says so and ignores it."""

    learner: str = "capped"
    eta: float = 0.5
    exponent: float = 0.505
    burn_in: float = 0.0
    """The share of a run's rows that watchers do not see."""
    watched_rows: int | None = None
    """How many rows watchers will see, for the few methods that must be told; None where nobody knows."""

    def __post_init__(self) -> None:
        if self.learner not in LEARNERS:
            raise UnknownName.among("learner", self.learner, LEARNERS)
        if not 0.0 <= self.burn_in < 1.0:
            raise InputError.of("burn_in", "lie between 0 and 1", self.burn_in)
        self.step()

    def step(self) -> PowerStep:
        return PowerStep(self.eta, self.exponent)

    @property
    def burned_rows(self) -> int:
        """The rows of the burn-in, where the number of rows is known."""
        return round((self.watched_rows or 0) * self.burn_in / (1.0 - self.burn_in))

    def make_learner(self, problem: Problem, watchers: Iterable[Watcher], seed: Seed) -> Learner:
        return LEARNERS[self.learner](problem, step=self.step(), watchers=tuple(watchers), seed=seed)


@dataclass(frozen=True)
class Method:
    """One row of the table; exactly one of `watch` and `learn` is given."""

    name: str
    summary: str
    law: str
    data: Data
    """The most general data it is valid for."""
    cost: str
    memory: str
    pools: str
    citation: str
    watch: Callable[[int, Setting], Watcher] | None = None
    """From the dimension and the setting to a fresh watcher."""
    learn: Callable[[Problem, Setting, Seed], Learner] | None = None
    """From a problem, the setting and a seed to a learner whose `result()` is this method's."""
    critical: Critical = "calibrated"
    burns: bool = True
    """Whether the setting's burn-in applies; not to a method that reads the steps from the first row on."""

    def __post_init__(self) -> None:
        if (self.watch is None) == (self.learn is None):
            raise InputError(f"method {self.name!r} must either watch or learn")
