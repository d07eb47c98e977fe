"""Intervals for what a regression predicts.

The mean at a row x is g(x'theta) with g the inverse link; the interval of x'theta is mapped through g, which keeps a
probability between 0 and 1. For linear models an interval of a new observation adds the variance of its own noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.checks import check_alpha
from halfwidth.families import Loss
from halfwidth.inference import Result

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Prediction:
    """Predicted means with their standard errors; `noise` is the variance of an observation around its mean."""

    eta: Vector
    eta_se: Vector
    loss: Loss
    core: Result
    rows: Vector
    noise: float | None

    @property
    def predicted_mean(self) -> Vector:
        return self.loss.mean(self.eta)

    @property
    def se_mean(self) -> Vector:
        """By the delta method."""
        return self.loss.mean_slope(self.eta) * self.eta_se

    def conf_int(self, alpha: float = 0.05, *, obs: bool = False) -> Vector:
        """Bounds of the mean, or of a new observation, one row for each row of X."""
        critical = self.core.critical_values(self.rows, 1.0 - check_alpha(alpha))
        if not obs:
            half = critical * self.eta_se
            return np.column_stack([self.loss.mean(self.eta - half), self.loss.mean(self.eta + half)])
        if self.noise is None:
            raise TypeError("obs must be False: intervals of new observations exist for linear models only")
        half = critical * np.sqrt(self.eta_se**2 + self.noise)
        return np.column_stack([self.eta - half, self.eta + half])

    def summary_frame(self, alpha: float = 0.05) -> Any:
        """A pandas frame with the columns that statsmodels has; a dict of arrays without pandas."""
        mean = self.conf_int(alpha)
        columns = {
            "mean": self.predicted_mean,
            "mean_se": self.se_mean,
            "mean_ci_lower": mean[:, 0],
            "mean_ci_upper": mean[:, 1],
        }
        if self.noise is not None:
            new = self.conf_int(alpha, obs=True)
            columns |= {"obs_ci_lower": new[:, 0], "obs_ci_upper": new[:, 1]}
        try:
            import pandas as pd
        except ImportError:
            return columns
        return pd.DataFrame(columns)
