"""The table of methods: a name, how it learns, watches and makes an interval, and what it assumes.

A method either watches the trajectory of whatever learner the study sets (`watch`), or brings a learner of its own
(`learn`). A new method is a new file and a row here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from halfwidth.errors import InputError, UnknownName
from halfwidth.learners import LEARNERS, Learner
from halfwidth.learners.base import Seed
from halfwidth.problems import Problem
from halfwidth.schedules import PowerStep
from halfwidth.watchers import OverlappingBatchMeans, Watcher
from halfwidth.watchers.base import Critical

Data = Literal["iid", "markov", "state-dependent"]


@dataclass(frozen=True)
class Setting:
    """What the methods of a study share; a method that chooses its own steps says so and ignores it."""

    learner: str = "capped"
    eta: float = 0.5
    exponent: float = 0.505

    def __post_init__(self) -> None:
        if self.learner not in LEARNERS:
            raise UnknownName.among("learner", self.learner, LEARNERS)
        self.step()

    def step(self) -> PowerStep:
        return PowerStep(self.eta, self.exponent)

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

    def __post_init__(self) -> None:
        if (self.watch is None) == (self.learn is None):
            raise InputError(f"method {self.name!r} must either watch or learn")


def _overlapping(dim: int, setting: Setting) -> Watcher:
    return OverlappingBatchMeans(dim, step_exponent=setting.exponent)


_ROWS = (
    Method(
        "obm",
        "overlapping batch means, growing blocks, critical value calibrated to the few blocks there are",
        law="Brownian functional of the block plan at n",
        data="state-dependent",
        cost="O(d^2)",
        memory="O(d^2)",
        pools="independent runs",
        citation="Roy and Balasubramanian (2023); Zhu, Chen and Wu (2023); calibration: halfwidth",
        watch=_overlapping,
    ),
    Method(
        "obm-normal",
        "the paper's interval: the same covariance with the normal critical value",
        law="normal, as if the covariance were known",
        data="state-dependent",
        cost="O(d^2)",
        memory="O(d^2)",
        pools="independent runs",
        citation="Roy and Balasubramanian (2023)",
        watch=_overlapping,
        critical="normal",
    ),
)

METHODS: dict[str, Method] = {row.name: row for row in _ROWS}


def method(name: str) -> Method:
    """The row of that name."""
    if name not in METHODS:
        raise UnknownName.among("method", name, METHODS)
    return METHODS[name]


def methods(names: Iterable[str]) -> tuple[Method, ...]:
    """Several rows, each once."""
    rows = tuple(method(name) for name in names)
    if not rows or len({row.name for row in rows}) < len(rows):
        raise InputError.of("methods", "name at least one method, each once", [row.name for row in rows])
    return rows
