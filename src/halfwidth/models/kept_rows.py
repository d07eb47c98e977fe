"""What a sample of rows says about a fit: residuals, and means over bins of the fitted values."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from halfwidth.families import Loss
from halfwidth.kernels.arrays import Vector
from halfwidth.learners import CappedSGD
from halfwidth.learners.newton.kept_sample import RowSample
from halfwidth.learners.newton.newton_solver import Rows
from halfwidth.plots.residuals import Bins, SampleTable

BINS = 20
FEWEST_IN_BIN = 8
MOST_POINTS = 1_500


@dataclass(frozen=True)
class KeptRows:
    """Sampled rows: fitted means (or quantiles), observed targets and weights.

    Parameters
    ----------
    fitted, observed, weight : ndarray of shape (m,)
        One number for each row.
    whole : bool
        Whether the sample is all rows.
    classes : bool
        Whether targets are classes, whose single residuals show nothing.
    quantile : float, optional
        Which quantile is fitted, for quantile regression.
    """

    fitted: Vector
    observed: Vector
    weight: Vector
    whole: bool
    classes: bool = False
    quantile: float | None = None

    def table(self) -> SampleTable | None:
        """What the picture shows; None for too few rows."""
        if len(self.fitted) < 2 * FEWEST_IN_BIN:
            return None
        residuals = self.observed - self.fitted
        calibration = self.observed if self.quantile is None else (self.observed <= self.fitted).astype(np.float64)
        every = np.arange(0 if not self.classes else len(self.fitted), len(self.fitted))
        every = every[:: max(1, -(-len(every) // MOST_POINTS))]
        return SampleTable(
            len(self.fitted),
            self.whole,
            self.fitted[every],
            residuals[every],
            self._means(residuals),
            self._means(calibration),
            self.quantile,
        )

    def _means(self, values: Vector) -> Bins:
        """Weighted means over bins of the fitted values with about as many rows each, with two standard errors."""
        edges = np.unique(np.quantile(self.fitted, np.linspace(0.0, 1.0, BINS + 1)))
        place = np.searchsorted(edges[1:-1], self.fitted, side="right")
        found = []
        for j in range(max(len(edges) - 1, 1)):
            inside = place == j
            w = self.weight[inside]
            if np.count_nonzero(inside) < FEWEST_IN_BIN or not w.sum() > 0.0:
                continue
            mean = float(w @ values[inside]) / w.sum()
            error = np.sqrt(np.square(w * (values[inside] - mean)).sum()) / w.sum()
            found.append((float(w @ self.fitted[inside]) / w.sum(), mean, 2.0 * float(error)))
        return Bins(*np.array(found, dtype=np.float64).reshape(-1, 3).T)


def kept_rows(loss: Loss, rows: Rows, centre: Vector, *, whole: bool) -> KeptRows:
    """The rows with what the coefficients `centre` fit to them."""
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    fitted, observed = np.asarray(loss.mean(rows.eta(centre))), rows.y
    if rows.equations > 1:  # any class but the baseline
        fitted, observed = fitted.sum(axis=1), (observed > 0.0).astype(np.float64)
    return KeptRows(
        fitted,
        observed,
        weight,
        whole,
        loss.labels in ("binary", "classes"),
        loss.options().get("quantile"),
    )


def average_rows(
    learner: CappedSGD | None, sample: RowSample, loss: Loss, centre: float, scale: float
) -> KeptRows | None:
    """The sampled rows of averaged SGD, whose targets are inside less a centre and over a scale."""
    if learner is None or not learner.n_seen:
        return None
    found = kept_rows(loss, sample.rows(), learner.theta_bar, whole=sample.holds_all)
    return replace(found, fitted=centre + scale * found.fitted, observed=centre + scale * found.observed)
