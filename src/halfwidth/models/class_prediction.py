"""Intervals for the probabilities of several classes.

With p = softmax(0, eta_1, ..., eta_{K-1}) the log odds of class c against all others, log p_c - log(1 - p_c), have the
derivative (1{c = k} - p_k) / (1 - p_c) in eta_k. Their interval, by the delta method, is mapped back to probabilities,
which keeps it between 0 and 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from halfwidth.checks import check_alpha
from halfwidth.docstrings import ALPHA, share_arguments
from halfwidth.errors import InputError
from halfwidth.families.multinomial import probabilities
from halfwidth.inference import Result
from halfwidth.kernels.arrays import Vector
from halfwidth.models.prediction import ShownAsFrame, determined, interval_errors

_CERTAIN = 1e-12


@share_arguments(ALPHA)
@dataclass(frozen=True, repr=False)
class ClassPrediction(ShownAsFrame):
    """Predicted probabilities of classes with their standard errors and intervals.

    Parameters
    ----------
    predicted_mean : ndarray of shape (m, K)
        The probabilities, in the order of the classes.
    log_odds_se : ndarray of shape (m, K)
        The standard errors of the log odds of each class against all others.
    directions : ndarray of shape (m, K, d)
        The derivatives of the log odds.
    core : Result
        The result that the standard errors come from.
    classes : tuple
        The labels.
    """

    predicted_mean: Vector
    log_odds_se: Vector
    directions: Vector
    core: Result
    classes: tuple[Any, ...]

    @classmethod
    def at(cls, rows: Vector, core: Result, classes: tuple[Any, ...]) -> ClassPrediction:
        """Return the prediction at rows of the design."""
        p = probabilities(rows @ core.params.reshape(len(classes) - 1, -1).T)
        others = np.maximum(1.0 - p, _CERTAIN)
        slopes = (np.eye(len(classes))[None, :, 1:] - p[:, None, 1:]) / others[:, :, None]
        directions = np.einsum("mck,mj->mckj", slopes, rows).reshape(*p.shape, -1)
        flat = determined(directions.reshape(-1, core.params.size), core)
        return cls(p, interval_errors(flat, core).reshape(p.shape), flat.reshape(directions.shape), core, classes)

    @property
    def se_mean(self) -> Vector:
        """The standard errors of the probabilities, by the delta method."""
        return self.predicted_mean * (1.0 - self.predicted_mean) * self.log_odds_se

    def conf_int(self, alpha: float = 0.05, *, obs: bool = False) -> Vector:
        """Return the bounds of the probabilities, each by itself.

        Parameters
        ----------
        obs : bool, default False
            Refused when True: a class has no interval of observations.

        Returns
        -------
        ndarray of shape (m, K, 2)
            Lower and upper bounds.
        """
        from scipy.special import expit, logit

        level = 1.0 - check_alpha(alpha)
        if obs:
            raise InputError("intervals of new observations exist for linear models only; ask for those of the mean")
        flat = self.directions.reshape(-1, self.core.params.size)
        critical = self.core.critical_values(flat, level) if len(flat) else np.empty(0)
        half = critical.reshape(self.log_odds_se.shape) * self.log_odds_se
        middle = logit(self.predicted_mean)
        return np.asarray(np.stack([expit(middle - half), expit(middle + half)], axis=-1))

    def columns(self, alpha: float = 0.05, *, obs: bool = False) -> dict[str, Vector]:
        """Return a column of probabilities for each class, each with those of its bounds.

        Parameters
        ----------
        obs : bool, default False
            Refused when True.

        Returns
        -------
        dict
            The columns by name.
        """
        bounds = self.conf_int(alpha, obs=obs)
        found: dict[str, Vector] = {}
        for c, label in enumerate(self.classes):
            name = f"p[{label}]"
            found[name] = self.predicted_mean[:, c]
            found |= {f"{name}_ci_lower": bounds[:, c, 0], f"{name}_ci_upper": bounds[:, c, 1]}
        return found

    def _frame_columns(self, alpha: float) -> dict[str, Any]:
        bounds, (m, K) = self.conf_int(alpha), self.predicted_mean.shape
        return {
            "row": np.repeat(np.arange(m), K),
            "class": np.tile(np.array(self.classes), m),
            "mean": self.predicted_mean.ravel(),
            "mean_se": self.se_mean.ravel(),
            "mean_ci_lower": bounds[..., 0].ravel(),
            "mean_ci_upper": bounds[..., 1].ravel(),
        }
