"""Intervals for what a regression predicts.

The mean at a row x is g(x'theta) with g the inverse link; the interval of x'theta is mapped through g, which keeps a
probability between 0 and 1. For linear models an interval of a new observation adds the variance of its own noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from halfwidth.checks import check_alpha, check_real, check_unmasked
from halfwidth.docstrings import ALPHA, share_arguments
from halfwidth.errors import InputError
from halfwidth.families import Loss
from halfwidth.inference import Result
from halfwidth.kernels.arrays import Vector


@share_arguments(ALPHA)
class ShownAsFrame:
    """A prediction that prints, and shows in a notebook, as its table."""

    def _frame_columns(self, alpha: float) -> dict[str, Any]:
        raise NotImplementedError

    def summary_frame(self, alpha: float = 0.05) -> Any:
        """Return means, standard errors and bounds in the columns that statsmodels has.

        Returns
        -------
        DataFrame or dict
            A pandas frame, or a dict of arrays without pandas.
        """
        columns = self._frame_columns(alpha)
        try:
            import pandas as pd
        except ImportError:
            return columns
        return pd.DataFrame(columns)

    def __str__(self) -> str:
        return str(self.summary_frame())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        frame = self.summary_frame()
        return str(frame._repr_html_()) if hasattr(frame, "_repr_html_") else f"<pre>{frame}</pre>"


@share_arguments(f"""{ALPHA}
obs : bool, default False
    Whether the interval is for a new observation rather than for the mean; linear models only.
""")
@dataclass(frozen=True, repr=False)
class Prediction(ShownAsFrame):
    """Predicted means with their standard errors and intervals.

    Parameters
    ----------
    eta, eta_se : ndarray of shape (m,)
        The linear predictors and their standard errors.
    loss : Loss
        The loss, whose inverse link gives the means.
    core : Result
        The result that the standard errors come from.
    rows : ndarray of shape (m, d)
        The rows of the design.
    noise : float or None
        The variance of an observation around its mean, for linear models.
    """

    eta: Vector
    eta_se: Vector
    loss: Loss
    core: Result
    rows: Vector
    noise: float | None

    @property
    def predicted_mean(self) -> Vector:
        """The predicted means, or quantiles."""
        return self.loss.mean(self.eta)

    @property
    def se_mean(self) -> Vector:
        """The standard errors of the means, by the delta method."""
        return self.loss.mean_slope(self.eta) * self.eta_se

    def conf_int(self, alpha: float = 0.05, *, obs: bool = False) -> Vector:
        """Return the bounds of the means, or of new observations.

        Returns
        -------
        ndarray of shape (m, 2)
            Lower and upper bounds.
        """
        critical = self.core.critical_values(self.rows, 1.0 - check_alpha(alpha))
        if not obs:
            half = critical * self.eta_se
            return np.column_stack([self.loss.mean(self.eta - half), self.loss.mean(self.eta + half)])
        if self.noise is None:
            raise InputError("intervals of new observations exist for linear models only; ask for those of the mean")
        half = critical * np.sqrt(self.eta_se**2 + self.noise)
        return np.column_stack([self.eta - half, self.eta + half])

    def columns(self, alpha: float = 0.05, *, obs: bool = False) -> dict[str, Vector]:
        """Return the means with the bounds of one interval.

        Returns
        -------
        dict
            The columns by name.
        """
        name, bounds = "obs" if obs else "mean", self.conf_int(alpha, obs=obs)
        return {"mean": self.predicted_mean, f"{name}_ci_lower": bounds[:, 0], f"{name}_ci_upper": bounds[:, 1]}

    def _frame_columns(self, alpha: float) -> dict[str, Any]:
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
        return columns


def determined(rows: Vector, core: Result) -> Vector:
    """The rows of the design, with zeros for one that rests on a coefficient without a standard error."""
    lost = (rows[:, np.isnan(core.bse)] != 0.0).any(axis=1)
    return np.where(lost[:, None], 0.0, rows) if lost.any() else rows


def interval_errors(rows: Vector, core: Result) -> Vector:
    """The standard errors of directions that `determined` left; NaN for those of zeros."""
    found = np.asarray(core.interval(rows).std_error) if len(rows) else np.empty(0)
    return np.where(rows.any(axis=1), found, np.nan)


def check_matrix(X: Any) -> None:
    """Refuse dictionaries, of columns or as rows, and masked values where a matrix is read."""
    if isinstance(X, Mapping) or (isinstance(X, list) and X and isinstance(X[0], Mapping)):
        rule = "be a matrix or a frame here: dictionaries hold the raw columns of a model of halfwidth.fit"
        raise InputError.of("X", rule, sorted(map(str, X if isinstance(X, Mapping) else X[0])))
    check_unmasked("X", X)


def prediction_rows(X: Any, columns: list[str], *, named: bool, intercept: bool) -> Vector:
    """Return the rows of the design at which to predict: a frame by its columns' names, an array by their order."""
    check_matrix(X)
    if named and hasattr(X, "columns"):
        missing = [name for name in columns if name not in X.columns]
        if missing:
            raise InputError(f"X must have the columns {columns}; missing: {missing}")
        X = X[columns]
    rows = check_real("X", X)
    if rows.ndim != 2 or rows.shape[1] != len(columns):
        raise InputError.of("X", f"have shape (m, {len(columns)})", rows.shape)
    if not np.isfinite(rows).all():
        row, column = (int(i) for i in np.argwhere(~np.isfinite(rows))[0])
        raise InputError(f"X must be finite; row {row} has {rows[row, column]} in column {columns[column]!r}")
    return np.column_stack([np.ones(len(rows)), rows]) if intercept else rows
