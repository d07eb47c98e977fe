"""Watchers whose blocks or windows hold about C n^((1+a)/2) rows.

The iterates stay correlated over about n^a rows: blocks of this length hold ever more correlation times, and there are
ever more of them.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.checks import check_positive
from halfwidth.errors import NotEnoughData
from halfwidth.kernels.arrays import Vector
from halfwidth.schedules import check_step_exponent
from halfwidth.state.fields import Field, Real
from halfwidth.watchers.dyadic_watcher import DyadicWatcher
from halfwidth.watchers.view import ViewName

BLOCK_FIELDS: dict[str, Field] = {
    "step_exponent": Real(0.5, 1.0, strict=True, doc="the exponent a of the step"),
    "batch_constant": Real(0.0, strict=True, doc="the constant C of the block length C n^((1+a)/2)"),
}


def window_sums(sums: Vector, width: int) -> Vector:
    """The sums over every `width` consecutive rows."""
    running = np.vstack([np.zeros((1, sums.shape[1])), np.cumsum(sums, axis=0)])
    return np.asarray(running[width:] - running[:-width])


def check_variances(covariance: Vector, what: str) -> Vector:
    """Raise where an estimator that may go negative did."""
    variances = covariance if covariance.ndim == 1 else np.diag(covariance)
    if (variances < 0).any():
        worst = int(np.argmin(variances))
        raise NotEnoughData(
            f"the {what} variance of coordinate {worst} came out negative ({variances[worst]:.3g}): too few blocks for "
            "the bias correction. Feed more rows, or use FixedBatchMeans"
        )
    return covariance


class BandwidthWatcher(DyadicWatcher):
    """A watcher whose blocks or windows hold about C n^((1+a)/2) rows.

    Parameters
    ----------
    step_exponent : float
        Exponent a of the steps that made the iterates, strictly between 1/2 and 1.
    batch_constant : float, optional
        The constant C; each estimator has its own default.
    """

    settings: tuple[str, ...] = ("step_exponent", "batch_constant")
    default_constant: ClassVar[float] = 1.0

    def __init__(
        self,
        dim: int,
        *,
        step_exponent: float = 0.505,
        batch_constant: float | None = None,
        view: ViewName = "full",
        projection: ArrayLike | None = None,
    ) -> None:
        super().__init__(dim, view, projection)
        self.step_exponent = check_step_exponent(step_exponent)
        constant = self.default_constant if batch_constant is None else batch_constant
        self.batch_constant = check_positive("batch_constant", constant)
        self.least_rows = self._fewest_rows()

    def _fewest_rows(self) -> int:
        return 4

    def _ideal_rows(self) -> float:
        return float(self.batch_constant * self._rows() ** (0.5 * (1.0 + self.step_exponent)))


class WindowWatcher(BandwidthWatcher):
    """A watcher over windows of a whole number of sub-batches, at every place."""

    def _width(self) -> int:
        """Sub-batches in a window."""
        return max(1, round(self._ideal_rows() / self._batches.length))

    def _block_rows(self) -> int:
        return self._width() * self._batches.length
