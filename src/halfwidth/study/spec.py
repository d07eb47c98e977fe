"""What a study is: problem x methods x replicates, and where along the run it looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from halfwidth.checks import check_count, check_level
from halfwidth.errors import InputError
from halfwidth.methods import Method, Setting, methods
from halfwidth.problems import Problem, problem

Direction = Literal["ones", "first", "all"]


@dataclass(frozen=True)
class Spec:
    """Everything that determines the numbers of a study."""

    problem: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    methods: tuple[str, ...] = ("obm-normal", "obm")
    steps: int = 50_000
    replicates: int = 200
    learner: str = "capped"
    eta: float = 0.5
    exponent: float = 0.505
    direction: Direction = "ones"
    level: float = 0.95
    seed: int = 0
    checkpoints: tuple[int, ...] = ()
    burn_in: float = 0.0
    given: bool = False
    """Whether rows are drawn beforehand, while theta_0 is deployed, and given to the learner as a file would be."""
    reference: tuple[tuple[float, ...], ...] = ()
    """Another covariance, beside the exact one, to measure the error of estimates against."""

    def __post_init__(self) -> None:
        self.make_problem()
        self.make_methods()
        self.make_setting()
        check_level(self.level)
        check_count("steps", self.steps, at_least=1_000)
        check_count("replicates", self.replicates, at_least=2)
        check_count("seed", self.seed, at_least=0)
        if self.direction not in ("ones", "first", "all"):
            raise InputError.of("direction", "be 'ones', 'first' or 'all'", self.direction)
        if not self.checkpoints:
            grid = np.unique(np.geomspace(max(500, self.steps // 50), self.steps, 8).round())
            object.__setattr__(self, "checkpoints", tuple(int(step) for step in grid))
        elif sorted(set(self.checkpoints)) != list(self.checkpoints) or self.checkpoints[-1] != self.steps:
            raise InputError.of("checkpoints", "increase and end at steps", self.checkpoints)

    def make_problem(self) -> Problem:
        return problem(self.problem, **self.settings)

    def make_methods(self) -> tuple[Method, ...]:
        return methods(self.methods)

    def make_setting(self) -> Setting:
        return Setting(self.learner, self.eta, self.exponent, self.burn_in, self.steps - self.burn_in_rows)

    @property
    def burn_in_rows(self) -> int:
        """How many rows, at the start of a run, watchers do not see."""
        return int(self.burn_in * self.steps)

    def directions(self, dim: int) -> NDArray[np.float64]:
        """The directions that are scored, as rows."""
        if self.direction == "all":
            return np.eye(dim)
        return np.ones((1, dim)) if self.direction == "ones" else np.eye(dim)[:1]
