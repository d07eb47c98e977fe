"""The specification of a study: problem, methods, replicates, and the checkpoints at which intervals are scored."""

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
    """The specification of a study: everything that determines its numbers.

    Parameters
    ----------
    problem : str
        The name of a problem with an exact truth (`halfwidth.problem`).
    settings : mapping, optional
        The settings of the problem.
    methods : tuple of str, default ("obm-normal", "obm")
        The names of the methods that are scored (`halfwidth methods`).
    steps : int, default 50_000
        The number of rows of each replicate.
    replicates : int, default 200
        The number of independent replicates.
    learner : str, default "capped"
        The learner whose trajectory is watched.
    eta : float, default 0.5
        The step constant: the step at row k is eta k^-exponent.
    exponent : float, default 0.505
        The step exponent.
    direction : {"ones", "first", "all"}, default "ones"
        What the scored interval is about: the sum of the coefficients, the first one, or each of them.
    level : float, default 0.95
        The confidence level.
    seed : int, default 0
        The seed: replicate i depends on the seed and i only.
    checkpoints : tuple of int, default ()
        The rows at which intervals are scored, increasing, `steps` last; by default eight, evenly spaced in log n.
    burn_in : float, default 0.0
        The share of the rows that watchers do not see.
    given : bool, default False
        Whether rows are drawn beforehand, while theta_0 is deployed, and given to the learner as a file would be.
    reference : tuple of tuple of float, default ()
        A covariance matrix, beside the exact one, to measure the error of estimates against.

    Examples
    --------
    >>> from halfwidth.study import Spec
    >>> Spec("iid-linear", {"dim": 2}, methods=("lugsail",), steps=4_000).checkpoints
    (500, 673, 906, 1219, 1641, 2208, 2972, 4000)
    """

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
    reference: tuple[tuple[float, ...], ...] = ()

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
        """Build the problem.

        Returns
        -------
        Problem
            The problem with its settings.
        """
        return problem(self.problem, **self.settings)

    def make_methods(self) -> tuple[Method, ...]:
        """Look the methods up.

        Returns
        -------
        tuple of Method
            Their rows of the table of methods.
        """
        return methods(self.methods)

    def make_setting(self) -> Setting:
        """Build the setting that all methods share.

        Returns
        -------
        Setting
            Learner, steps and burn-in.
        """
        return Setting(self.learner, self.eta, self.exponent, self.burn_in, self.steps - self.burn_in_rows)

    @property
    def burn_in_rows(self) -> int:
        """How many rows, at the start of a run, watchers do not see."""
        return int(self.burn_in * self.steps)

    def directions(self, dim: int) -> NDArray[np.float64]:
        """Return the directions that are scored.

        Parameters
        ----------
        dim : int
            The number of coefficients.

        Returns
        -------
        ndarray of shape (m, dim)
            One direction in each row.
        """
        if self.direction == "all":
            return np.eye(dim)
        return np.ones((1, dim)) if self.direction == "ones" else np.eye(dim)[:1]
