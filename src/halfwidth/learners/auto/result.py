"""What `auto` ends in: a result that also knows about feedback, truncations and directions that no row has shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.equation.result import EquationResult
from halfwidth.errors import NotIdentified
from halfwidth.inference import Result
from halfwidth.inference.batch_result import BatchesResult
from halfwidth.inference.interval import Interval
from halfwidth.inference.trail import Trail
from halfwidth.kernels.arrays import Vector


@dataclass(frozen=True)
class Feedback:
    """What a run knows about the response of its data to the deployed parameter.

    Attributes
    ----------
    detected : bool
        Whether the data were seen to respond. False, too, where nobody looked: `feedback="none"`.
    strength : float
        The size of H^-1 J in its largest direction, whatever the units: 0.5 where a unit of theta moves the gradient
        half as much through the data as directly. It is an estimate, and the largest of many, so mostly above the true
        one while that is hardly known.
    memory_rows : float
        Over how many rows the response lasts; at most a chunk where nothing else was seen, 0 without feedback.
    """

    detected: bool = False
    strength: float = 0.0
    memory_rows: float = 0.0


@dataclass(frozen=True)
class AutoResult(BatchesResult):
    """A result of `Auto`.

    Attributes
    ----------
    feedback : Feedback
        Whether the data were seen to respond to the deployed parameter.
    truncations : tuple of int
        The rows at which theta was taken back after an excursion; nothing here rests on rows before the last of them.
    """

    feedback: Feedback = field(default_factory=Feedback)
    truncations: tuple[int, ...] = ()

    @property
    def unidentified(self) -> NDArray[np.bool_]:
        """Which coefficients no row has shown yet: they are where they began, and their intervals are refused."""
        return np.asarray(np.isnan(np.diag(self.covariance)))

    @property
    def bse(self) -> Vector:
        """Standard errors of the coefficients; nan for those that are not identified."""
        hidden = self.unidentified
        return np.where(hidden, np.nan, self._shown().bse) if hidden.any() else super().bse

    def interval(self, direction: ArrayLike | None = None, level: float = 0.95) -> Interval:
        """The interval for v'theta; refused where v looks at a coefficient that is not identified."""
        hidden = self.unidentified
        if direction is None or not hidden.any():
            return super().interval(direction, level)
        return self._shown().interval(self._check_directions(direction), level)

    def _check_directions(self, direction: ArrayLike) -> Vector:
        v, hidden = super()._check_directions(direction), self.unidentified
        if np.any(v[..., hidden]):
            names = ", ".join(f"theta[{j}]" for j in np.flatnonzero(hidden)[:8])
            raise NotIdentified(
                f"direction looks at {names}, which no row has shown yet; wait for rows that do, or drop the column",
                "unidentified",
            )
        return v

    def _full_covariance(self, asked: str) -> Vector:
        return self.covariance if asked == "cov_params()" else np.nan_to_num(self.covariance)

    def _shown(self) -> BatchesResult:
        """The same with zeros in place of what is not identified."""
        covariance, influences = np.nan_to_num(self.covariance), np.nan_to_num(self.influences)
        facts = (self.n, self.law, self.method, self.diagnostics, self.names, influences)
        return BatchesResult(self.params, covariance, *facts)


@dataclass(frozen=True)
class GivenResult(EquationResult):
    """A result of `Auto` in which every coefficient has its own degrees of freedom.

    Of rows that do not respond to theta, or that respond in proportion to their Hessian.

    Attributes
    ----------
    feedback : Feedback
        Whether the data were seen to respond to the deployed parameter; not where nobody looked.
    truncations : tuple of int
        The rows at which theta was taken back after an excursion; given rows need no steps.
    settled : callable, optional
        Computes how the coefficients settled, for the picture.
    """

    feedback: Feedback = field(default_factory=Feedback)
    truncations: tuple[int, ...] = ()
    settled: Callable[[], Trail | None] | None = field(default=None, repr=False)

    def _trail(self) -> Trail | None:
        return None if self.settled is None else self.settled()


def doubted_throughout(result: Result) -> Result:
    """The result, with a doubt about the run where each of its coefficients has one."""
    own = result.diagnostics.coefficient_flags
    if result.status != "ok" or not own or not all(own):
        return result
    names = Counter(name for flags in own for name in flags).most_common()
    listed = ", ".join(f"{name} ({count})" for name, count in names)
    text = f"every coefficient is doubted or refused: {listed} of {len(own)}. Feed more rows that tell about them"
    return result.with_facts((names[0][0], text))
