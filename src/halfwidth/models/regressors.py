"""The models for numbers and counts."""

from __future__ import annotations

from typing import Any, ClassVar

from numpy.typing import ArrayLike

from halfwidth.families import Loss, make_loss
from halfwidth.models.base import StreamModel

from sklearn.base import RegressorMixin  # isort: skip  (models.base says what is missing)


class LinearRegression(RegressorMixin, StreamModel):  # type: ignore[misc]
    """Least squares in one pass, with standard errors that are right for rows in time order.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((2_000, 2))
    >>> y = 1.0 + X @ [2.0, 0.0] + rng.standard_normal(2_000)
    >>> model = LinearRegression()
    >>> for start in range(0, 2_000, 500):
    ...     model = model.partial_fit(X[start : start + 500], y[start : start + 500])
    >>> bool(model.inference().pvalues[1] < 0.001)
    True
    """

    family: ClassVar[str] = "linear"


class PoissonRegressor(RegressorMixin, StreamModel):  # type: ignore[misc]
    """Counts or rates with a log link; `offset` takes the log of the exposure."""

    family: ClassVar[str] = "poisson"

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """The share of the Poisson deviance explained, as scikit-learn's PoissonRegressor scores."""
        from sklearn.metrics import d2_tweedie_score

        return float(d2_tweedie_score(y, self.predict(X), sample_weight=sample_weight, power=1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


class QuantileRegressor(RegressorMixin, StreamModel):  # type: ignore[misc]
    """A conditional quantile; the standard errors need no density of the noise beyond the curvature of the loss."""

    family: ClassVar[str] = "quantile"

    def __init__(
        self,
        *,
        quantile: float = 0.5,
        fit_intercept: bool = True,
        ridge: float = 0.0,
        method: str = "auto",
        engine: str = "auto",
    ) -> None:
        super().__init__(fit_intercept=fit_intercept, ridge=ridge, method=method, engine=engine)
        self.quantile = quantile

    def _make_loss(self) -> Loss:
        return make_loss(self.family, quantile=self.quantile)


class HuberRegressor(RegressorMixin, StreamModel):  # type: ignore[misc]
    """Robust regression: Huber's loss with threshold 1.345 times the residuals' scale, found on the way."""

    family: ClassVar[str] = "huber"

    @property
    def scale_(self) -> float:
        """The residual scale: median absolute residual over 0.6745, from the first rows and averaged since."""
        self._check_fitted()
        return float(self._engine.loss.scale)
