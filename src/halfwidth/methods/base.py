"""A row of the table of methods: how it learns, watches and makes an interval, and what it assumes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Literal

from halfwidth.errors import InputError, UnknownName
from halfwidth.learners import LEARNERS, Learner
from halfwidth.learners.trajectory import Seed
from halfwidth.methods.laws import LAWS
from halfwidth.problems import Problem
from halfwidth.schedules import PowerStep
from halfwidth.watchers import Watcher
from halfwidth.watchers.base import Critical

Data = Literal["iid", "markov", "state-dependent"]


@dataclass(frozen=True)
class Setting:
    """The setting that the methods of a study share; a method that chooses its own steps ignores it.

    Parameters
    ----------
    learner : str, default "capped"
        The learner whose trajectory is watched: a key of `halfwidth.learners.LEARNERS`.
    eta : float, default 0.5
        The step constant: the step at row k is eta k^-exponent.
    exponent : float, default 0.505
        The step exponent, between 1/2 and 1.
    burn_in : float, default 0.0
        The share of a run's rows that watchers do not see.
    watched_rows : int, optional
        How many rows watchers will see, for the few methods that need it beforehand.
    """

    learner: str = "capped"
    eta: float = 0.5
    exponent: float = 0.505
    burn_in: float = 0.0
    watched_rows: int | None = None

    def __post_init__(self) -> None:
        if self.learner not in LEARNERS:
            raise UnknownName.among("learner", self.learner, LEARNERS)
        if not 0.0 <= self.burn_in < 1.0:
            raise InputError.of("burn_in", "lie between 0 and 1", self.burn_in)
        self.step()

    def step(self) -> PowerStep:
        """Return the schedule of steps.

        Returns
        -------
        PowerStep
            The step eta k^-exponent.
        """
        return PowerStep(self.eta, self.exponent)

    @property
    def burn_in_rows(self) -> int:
        """The rows of the burn-in, where the number of rows is known."""
        return round((self.watched_rows or 0) * self.burn_in / (1.0 - self.burn_in))

    def make_learner(self, problem: Problem, watchers: Iterable[Watcher], seed: Seed) -> Learner:
        """Build the learner that the setting names.

        Parameters
        ----------
        problem : Problem
            What it learns from.
        watchers : iterable of Watcher
            What observes its iterates.
        seed : int, SeedSequence or Generator
            The source of its random numbers.

        Returns
        -------
        Learner
            A learner that has seen no rows.
        """
        return LEARNERS[self.learner](problem, step=self.step(), watchers=tuple(watchers), seed=seed)


@dataclass(frozen=True)
class Method:
    """One row of the table of methods; exactly one of `watch` and `learn` is given.

    Parameters
    ----------
    name : str
        The name that studies and `halfwidth methods` use.
    summary : str
        What the method is, in one line.
    law : str
        The limit law: a key of `halfwidth.methods.LAWS`.
    freedom : str, default ""
        The degrees of freedom of the law, in words or as a number; empty where it has none.
    data : {"iid", "markov", "state-dependent"}
        The most general data that the method is valid for.
    cost : str
        The cost per row.
    memory : str
        The memory it needs.
    pools : str, default "no"
        What can be pooled.
    citation : str
        The source.
    use : str, default ""
        When to choose the method, for those that the README recommends or compares.
    watch : callable, optional
        From the dimension and the setting to a fresh watcher.
    learn : callable, optional
        From a problem, the setting and a seed to a learner whose `result` is this method's.
    critical : {"calibrated", "normal"}, default "calibrated"
        Whether critical values come from the watcher's law or from the normal law.
    supports_burn_in : bool, default True
        Whether the setting's burn-in applies; not to a method that reads the steps from the first row on.
    """

    name: str
    summary: str
    law: str
    freedom: str = ""
    _: KW_ONLY
    data: Data
    cost: str
    memory: str
    pools: str = "no"
    citation: str
    use: str = ""
    watch: Callable[[int, Setting], Watcher] | None = None
    learn: Callable[[Problem, Setting, Seed], Learner] | None = None
    critical: Critical = "calibrated"
    supports_burn_in: bool = True

    def __post_init__(self) -> None:
        if (self.watch is None) == (self.learn is None):
            raise InputError(f"method {self.name!r} must either watch or learn")
        if self.law not in LAWS:
            raise UnknownName.among("limit law", self.law, LAWS)

    @property
    def law_text(self) -> str:
        """The limit law with its degrees of freedom."""
        return f"{self.law}, {self.freedom} degrees of freedom" if self.freedom else self.law

    @property
    def data_text(self) -> str:
        """All kinds of data that the method is valid for."""
        kinds = ("iid", "markov", "state-dependent")
        return ", ".join(kinds[: kinds.index(self.data) + 1]).replace("markov", "Markov")
