"""What regressions of counts and amounts share: targets of at least 0, and a score by the deviance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.docstrings import share_arguments
from halfwidth.families import Loss
from halfwidth.kernels.arrays import Vector
from halfwidth.models.base import StreamModel
from halfwidth.models.scoring import SCORED, RegressorMixin, observed


@share_arguments(SCORED)
class DevianceRegressor(RegressorMixin, StreamModel):
    """A regression whose score is the share of the deviance that is explained."""

    def score(self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of the deviance that is explained, as scikit-learn's generalised linear models do.

        Returns
        -------
        float
            1 for a perfect prediction, 0 for the mean.
        """
        target: Vector = np.asarray(observed(self, X, y), dtype=np.float64)
        self._check_target(target)
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        loss = self._fitted_loss()
        constant = np.full(len(target), loss.start(float(np.average(target, weights=weight))))
        at, null = (
            np.average(loss.value(eta, target) - loss.saturated(target), weights=weight)
            for eta in (self._eta(X, None), constant)
        )
        return float(1.0 - at / null)

    def _fitted_loss(self) -> Loss:
        """The loss, with the dispersion of the fit where it depends on one."""
        return self._make_loss()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags
