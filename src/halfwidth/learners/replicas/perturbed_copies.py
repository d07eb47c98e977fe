"""What the bootstraps share: weights, the copies of the trajectory, and the interval that their averages give.

The weights are 0 or 2 with equal chances. With theta_bar^b the average of copy b of B and theta_bar that of the
trajectory itself, the covariance of sqrt(n) theta_bar is estimated by

    n / (B - 1) sum_b (theta_bar^b - mean)(theta_bar^b - mean)',    or for `cheap`
    n / B sum_b (theta_bar^b - theta_bar)(theta_bar^b - theta_bar)',    with Student's t of B degrees of freedom.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal, NamedTuple, Unpack

import numpy as np

from halfwidth.checks import check_count
from halfwidth.errors import InputError
from halfwidth.inference import Diagnostics, NormalLaw, Result
from halfwidth.inference.laws import LimitLaw
from halfwidth.inference.replicate_result import PercentileResult
from halfwidth.inference.student_law import StudentLaw
from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.compile import jitable
from halfwidth.learners.base import LearnerOptions
from halfwidth.learners.learner_state import State
from halfwidth.learners.own_result import OwnResult
from halfwidth.problems import Problem
from halfwidth.state.fields import Array, Fields, Text, Whole
from halfwidth.state.schema import Relation

Rule = Literal["normal", "percentile", "cheap"]


class Copies(NamedTuple):
    """The trajectory and its copies, inside a loop."""

    block: int
    """Rows that share a weight."""
    weights: Vector
    """The current weight of each member; that of the trajectory is 1."""
    members: Vector
    """The trajectory (row 0) and its copies; updated in place."""
    totals: Vector
    """The sums of each member minus theta_0; updated in place."""
    grad: Vector
    """Scratch space for a gradient."""


@jitable
def draw_weights(rng: np.random.Generator, weights: Vector) -> None:
    """Weights 0 or 2, 32 of them from one random number."""
    bits = 0
    for b in range(weights.shape[0]):
        if b % 32 == 0:
            bits = int(rng.random() * 4294967296.0)
        weights[b] = 2.0 * (bits & 1)
        bits >>= 1


def _one_more(state: State) -> bool:
    return bool(len(state["kept"]["weights"]) == state["settings"]["copies"] + 1)


class CopiesOptions(LearnerOptions, total=False):
    """The keyword arguments that both bootstraps take; `CopiesResult` documents the first two."""

    copies: int
    rule: Rule


class CopiesResult(OwnResult):
    """What the averages of perturbed copies say about the average of the trajectory.

    Parameters
    ----------
    copies : int
        Number B of copies. The length of an interval has a relative standard deviation of about 1 / sqrt(2 B) from
        their random weights alone: 7 percent with 100 copies.
    rule : {"normal", "percentile", "cheap"}
        How the copies become an interval: normal quantiles with their covariance, their own quantiles, or Student's t
        around the trajectory's own average.
    """

    settings: ClassVar[Fields] = {
        "copies": Whole(1, doc="perturbed copies"),
        "rule": Text(("normal", "percentile", "cheap"), doc="how the copies become an interval"),
    }
    kept: ClassVar[Fields] = {
        "weights": Array(("members",), low=0.0, high=2.0, doc="the weight of each member now"),
        "members": Array(("members", "d"), doc="the trajectory and its copies"),
        "totals": Array(("members", "d"), doc="sum of each member - theta_0"),
    }
    relations = (Relation("have one member more than copies", _one_more),)
    generators = ("rng", "_weight_rng")

    def __init__(
        self, problem: Problem, *, copies: int = 100, rule: Rule = "normal", **options: Unpack[LearnerOptions]
    ) -> None:
        if rule not in ("normal", "percentile", "cheap"):
            raise InputError.of("rule", "be 'normal', 'percentile' or 'cheap'", rule)
        self.copies = check_count("copies", copies, at_least=1 if rule == "cheap" else 2)
        self.rule: Rule = rule
        super().__init__(problem, **options)

    def _prepare(self) -> None:
        self._weight_rng = self.rng.spawn(1)[0]  # of its own, so that the rows are those of every other learner
        self._weights = np.ones(self.copies + 1)
        self._members = np.tile(self._theta, (self.copies + 1, 1))
        self._totals = np.zeros((self.copies + 1, self.problem.dim))  # of each member minus theta_0

    def _copies(self, block: int) -> Copies:
        return Copies(block, self._weights, self._members, self._totals, self._grad)

    def _start_at(self, theta: Vector) -> None:
        super()._start_at(theta)
        self._members[:] = theta

    def _forget(self) -> None:
        self._totals[:] = 0.0

    @abstractmethod
    def _terms(self) -> tuple[int, int]:
        """How many terms the totals have, and how many rows stand behind them."""

    def _own_result(self) -> Result:
        terms, n = self._terms()
        averages = self._theta_0 + self._totals / terms
        estimate, copies = averages[0], averages[1:]
        B = len(copies)
        law: LimitLaw = StudentLaw(float(B)) if self.rule == "cheap" else NormalLaw()
        centred = copies - (estimate if self.rule == "cheap" else copies.mean(axis=0))
        covariance = centred.T @ centred * (n / (B if self.rule == "cheap" else B - 1))
        basis = (estimate, covariance, n, law, self.name, Diagnostics(float(B)))
        return PercentileResult(*basis, draws=copies) if self.rule == "percentile" else Result(*basis)
