"""What an evaluation of a policy ends in: values of observations, with intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.adapters.transitions import Features
from halfwidth.inference import Interval, Result
from halfwidth.problems.base import Problem
from halfwidth.problems.control.temporal_difference import td_field, td_jacobian


@dataclass(frozen=True)
class PolicyValues:
    """What is known of a policy's values.

    Parameters
    ----------
    result : Result
        The coefficients of the features, with all that a result has.
    features : callable
        The features.
    transitions : int
        How many steps it rests on.
    episodes : int
        How many episodes ended among them, by termination or truncation.
    """

    result: Result
    features: Features
    transitions: int
    episodes: int

    def values(self, observations: ArrayLike, level: float = 0.95) -> Interval:
        """The values of observations, with intervals.

        Parameters
        ----------
        observations : array_like
            A batch of observations, (n, ...).
        level : float, default 0.95
            The confidence level of each interval.

        Returns
        -------
        Interval
            n values, with their bounds.
        """
        phi = np.asarray(self.features(np.asarray(observations)), dtype=np.float64)
        return self.result.interval(phi, level=level)

    def summary(self) -> str:
        """Return the table of the coefficients, and what it rests on.

        Returns
        -------
        str
            The text.
        """
        return f"{self.result.summary()}\n{self.transitions:,} transitions, {self.episodes:,} ends of episodes"


def td_rows(dim: int) -> Problem:
    """The problem whose rows are transitions."""
    return Problem(dim, td_field, row_size=2 * dim + 1, name="policy values", jacobian=td_jacobian)
