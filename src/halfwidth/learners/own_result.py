"""Learners that are methods: their `result()` is built from what they kept, not by a watcher.

Watchers may still be given; they see the trajectory that is deployed, and `result(watcher)` asks one of them.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

import numpy as np

from halfwidth.equation.result import EquationResult
from halfwidth.errors import Diverged, InputError, NotEnoughData
from halfwidth.inference import NormalLaw, Result
from halfwidth.kernels.arrays import Function, Vector
from halfwidth.learners.base import Learner
from halfwidth.problems import Problem
from halfwidth.watchers import Watcher
from halfwidth.watchers.base import Critical


class OwnResult(Learner):
    """A learner with an interval of its own."""

    @abstractmethod
    def _rows_needed(self) -> int:
        """How many iterates an interval needs."""

    @abstractmethod
    def _own_result(self) -> Result:
        """The method's result, once there are enough iterates."""

    def result(self, watcher: Watcher | None = None, critical: Critical = "calibrated") -> Result:
        """What can be said now by this method, or by the given watcher.

        Parameters
        ----------
        watcher : Watcher, optional
            One of the learner's watchers; by default the method's own result.
        critical : {"calibrated", "normal"}
            Quantiles of the method's own limit law, or of the normal law for comparison.

        Returns
        -------
        Result
            Estimate, covariance and limit law, with this run's own diagnostics.

        Raises
        ------
        NotEnoughData
            There are too few iterates for an interval.
        Diverged
            The covariance is not finite.
        """
        if watcher is not None:
            return super().result(watcher, critical)
        if critical not in ("calibrated", "normal"):
            raise InputError.of("critical", "be 'calibrated' or 'normal'", critical)
        if self.n_iterates < self._rows_needed():
            needed = self.warm_start + self.burn_in + self._rows_needed()
            raise NotEnoughData.rows(f"an interval by {self.name}", self.n_seen, needed)
        result = self._own_result()
        covariance = result.covariance
        if isinstance(result, EquationResult):
            covariance = covariance[np.ix_(~result.refused, ~result.refused)]
        if not np.isfinite(covariance).all():
            raise Diverged(f"a trajectory of {self.name} diverged: its covariance is not finite; take smaller steps")
        if critical == "normal":
            result = replace(result, law=NormalLaw())
        return self._with_facts(result)


def needed_hessian(problem: Problem, what: str, instead: str) -> Function:
    """The Hessian of the problem's rows, which `what` cannot do without."""
    if problem.hessian is None:
        raise InputError(
            f"{what} needs the rows' Hessian, and problem {problem.name!r} has none; "
            f"give Problem(..., hessian=...) or use {instead}"
        )
    return problem.hessian


def sandwich(A: Vector, S: Vector) -> Vector:
    """A^-1 S A^-T, symmetric to the last digit."""
    try:
        half = np.linalg.solve(A, S)
        covariance = np.linalg.solve(A, half.T)
    except np.linalg.LinAlgError:
        raise NotEnoughData(
            "the mean curvature is singular: some direction was never seen. Feed more rows, or drop the column"
        ) from None
    return np.asarray(0.5 * (covariance + covariance.T))
