"""The watcher contract: sees a trajectory, whoever made it, and estimates the covariance of its average.

A new estimator is one file with one subclass that fills in the abstract methods; intervals, tests and summaries
come from the result it builds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.checks import check_real
from halfwidth.docstrings import share_arguments
from halfwidth.errors import InputError
from halfwidth.inference import Interval, LimitLaw, NormalLaw, Result
from halfwidth.inference.diagnostics import Diagnostics
from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.rows import non_finite, shaped_rows
from halfwidth.state.guard import guard_of, whole_only
from halfwidth.state.schema import Stored

Critical = Literal["calibrated", "normal"]
State = dict[str, Any]
_ROUNDING = 1e-14
_STILL = (
    "the iterates of some coordinate do not differ by more than rounding errors: there is no noise to measure, and its "
    "interval says nothing. Check that it is learned at all, and that the rows are drawn at random"
)


@share_arguments(
    returns="""
    Self
        The watcher itself.
"""
)
class Watcher(Stored, ABC):
    """Observes iterates of a fixed dimension and estimates the covariance of their average.

    A learner hands its iterates over (`watchers=[...]`), or any other program calls `update` and `update_many`.

    Attributes
    ----------
    kind : str
        Name of the estimator, also in its states.
    version : int
        Version of its states.
    dim : int
        Dimension of the iterates.
    """

    version: int
    dim: int

    def __init_subclass__(cls, **options: Any) -> None:
        """Let no subclass be read that a call has left half changed."""
        super().__init_subclass__(**options)
        for name in ("to_state", "result"):
            if name in vars(cls):
                setattr(cls, name, whole_only(vars(cls)[name]))

    @property
    @abstractmethod
    def n_seen(self) -> int:
        """Number of iterates seen."""

    @abstractmethod
    def take(self, thetas: Vector) -> None:
        """See the next iterates, unchecked; for learners. Everybody else calls `update_many`.

        Parameters
        ----------
        thetas : ndarray of shape (m, dim)
            The iterates, one in each row of a contiguous, finite array.
        """

    @abstractmethod
    def estimate(self) -> Vector:
        """Average of the iterates.

        Returns
        -------
        ndarray of shape (dim,) or (p,)
            The average; under `view="projection"` that of the p projected coordinates.
        """

    @abstractmethod
    def covariance(self) -> Vector:
        """Covariance Sigma of sqrt(n) times the error of the average.

        Returns
        -------
        ndarray
            A matrix, or the vector of its diagonal under `view="diagonal"`.

        Raises
        ------
        NotEnoughData
            Too few iterates were seen.
        """

    @abstractmethod
    def law(self) -> LimitLaw:
        """Limit law of the studentised average at this n.

        Returns
        -------
        LimitLaw
            What critical values are taken from.
        """

    @abstractmethod
    def diagnostics(self) -> Diagnostics:
        """What the covariance rests on.

        Returns
        -------
        Diagnostics
            Degrees of freedom, correlation time, block length, and flags where they speak against the interval.
        """

    @abstractmethod
    def pool(self, other: Self) -> Self:
        """Join with an independent trajectory.

        Parameters
        ----------
        other : Self
            A watcher of the same settings, dimension and view.

        Returns
        -------
        Self
            A new watcher, which can be read and pooled again, not updated.

        Raises
        ------
        CannotPool
            The watchers differ, or this estimator cannot be pooled.
        """

    @abstractmethod
    def to_state(self) -> State:
        """Everything the watcher knows, as plain numbers and arrays.

        Returns
        -------
        dict
            With `kind` and `version`; `from_state` goes on with the same bits.
        """

    @classmethod
    @abstractmethod
    def _restored(cls, state: State) -> Self:
        """The watcher of a state that follows the schema."""

    def update_many(self, thetas: ArrayLike) -> Self:
        """See the next iterates.

        Parameters
        ----------
        thetas : array_like of shape (m, dim)
            The iterates, one in each row.

        Raises
        ------
        InputError
            The shape is wrong or a number is not finite; the watcher stays as it was.
        """
        array = shaped_rows("thetas", thetas, self.dim)
        refusal = non_finite("thetas", array, "coordinate", "The watcher stays as it was")
        if refusal is not None:
            raise refusal
        with guard_of(self):
            self.take(array)
        return self

    def update(self, theta: ArrayLike) -> Self:
        """See one more iterate.

        Parameters
        ----------
        theta : array_like of shape (dim,)
            The iterate.
        """
        return self.update_many(check_real("theta", theta)[None])

    def result(self, critical: Critical = "calibrated") -> Result:
        """Everything that can be said at this moment.

        Parameters
        ----------
        critical : {"calibrated", "normal"}
            Quantiles of the limit law of this estimator, or of the normal law for comparison.

        Returns
        -------
        Result
            Estimate, covariance, law and diagnostics; it does not change when the watcher goes on.
        """
        if critical not in ("calibrated", "normal"):
            raise InputError.of("critical", "be 'calibrated' or 'normal'", critical)
        guard_of(self).check()
        law = self.law() if critical == "calibrated" else NormalLaw()
        estimate, covariance = self.estimate(), self.covariance()
        diagnostics = self.diagnostics()
        if _stands_still(estimate, covariance):
            diagnostics = diagnostics.with_facts(("exact-fit", _STILL))
        return Result(estimate, covariance, self.n_seen, law, self.kind, diagnostics)

    def interval(
        self, direction: ArrayLike | None = None, level: float = 0.95, critical: Critical = "calibrated"
    ) -> Interval:
        """Confidence interval for one direction, several, or every coordinate.

        Parameters
        ----------
        direction : array_like of shape (dim,) or (m, dim), optional
            The directions v of v'theta; every coordinate by default.
        level : float
            Confidence level.
        critical : {"calibrated", "normal"}
            Quantiles of the limit law of this estimator, or of the normal law for comparison.

        Returns
        -------
        Interval
            Lower and upper ends.
        """
        return self.result(critical).interval(direction, level)


def _stands_still(estimate: Vector, covariance: Vector) -> bool:
    """Whether some coordinate moves by no more than rounding errors."""
    variances = covariance if covariance.ndim == 1 else np.diag(covariance)
    return bool(np.any(np.abs(variances) <= np.square(_ROUNDING * estimate)))
