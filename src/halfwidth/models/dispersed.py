"""The models with a dispersion beside the coefficients: gamma and negative binomial regression."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.families import Loss, make_loss
from halfwidth.models.base import StreamModel
from halfwidth.models.sklearn_base import RegressorMixin


class GammaRegressor(RegressorMixin, StreamModel):
    """Gamma regression of positive amounts with a log link, in one pass.

    The standard deviation of y is taken to grow with its mean, as that of claims, durations and prices does. The
    standard errors allow for dependent rows, and for a variance that is another function of the mean.

    Notes
    -----
    The dispersion phi, the variance over the squared mean, is Pearson's: the sum of ((y - mu) / mu)^2 over n - d. The
    coefficients do not depend on it.

    References
    ----------
    P. McCullagh and J. A. Nelder, *Generalized Linear Models*, second edition (1989), chapter 8.

    Examples
    --------
    >>> import numpy as np
    >>> import halfwidth as hw
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((4_000, 1))
    >>> model = hw.GammaRegressor().fit(X, rng.gamma(2.0, np.exp(0.5 + 0.3 * X[:, 0]) / 2.0))
    >>> model.inference().interval().covers([0.5, 0.3]).tolist()
    [True, True]
    >>> round(model.dispersion_, 1)
    0.5
    """

    family: ClassVar[str] = "gamma"

    @property
    def dispersion_(self) -> float:
        """The dispersion phi."""
        return float(self._result(0.95).basis.family_facts["dispersion"])

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of the gamma deviance that is explained, as scikit-learn's GammaRegressor does.

        Parameters
        ----------
        X : array_like of shape (n, p)
            The features.
        y : array_like of shape (n,)
            The amounts.
        sample_weight : array_like of shape (n,), optional
            The weights of the rows.

        Returns
        -------
        float
            1 for a perfect prediction, 0 for the mean.
        """
        from sklearn.metrics import d2_tweedie_score

        return float(d2_tweedie_score(y, self.predict(X), sample_weight=sample_weight, power=2))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


class NegativeBinomialRegressor(RegressorMixin, StreamModel):
    """Negative binomial regression of overdispersed counts with a log link, in one pass.

    `offset` takes the logarithm of the exposure. The variance of y is mu + alpha mu^2 (NB2).

    Parameters
    ----------
    alpha : float, optional
        The dispersion, above 0. When none is given it is estimated by maximum likelihood on the way (`alpha_`).

    Notes
    -----
    The information about alpha and about the coefficients is orthogonal: that alpha is estimated does not change the
    standard errors of the coefficients, and a wrong alpha leaves them consistent. Where counts are not overdispersed
    the estimate is at its lower bound and the status ``poisson-boundary``. With ``engine="sgd"`` alpha is that of the
    first 1,024 rows.

    References
    ----------
    J. F. Lawless, *Negative binomial and mixed Poisson regression*, Canadian Journal of Statistics 15 (1987).

    Examples
    --------
    >>> import numpy as np
    >>> import halfwidth as hw
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((4_000, 1))
    >>> mean = np.exp(0.5 + 0.3 * X[:, 0])
    >>> model = hw.NegativeBinomialRegressor().fit(X, rng.poisson(mean * rng.gamma(2.0, 0.5, 4_000)))
    >>> model.inference().interval().covers([0.5, 0.3]).tolist()
    [True, True]
    >>> round(model.alpha_, 1)
    0.5
    """

    family: ClassVar[str] = "negative-binomial"

    def __init__(
        self,
        *,
        alpha: float | None = None,
        fit_intercept: bool = True,
        ridge: float = 0.0,
        method: str = "auto",
        engine: str = "auto",
    ) -> None:
        super().__init__(fit_intercept=fit_intercept, ridge=ridge, method=method, engine=engine)
        self.alpha = alpha

    def _make_loss(self) -> Loss:
        return make_loss(self.family, alpha=self.alpha)

    @property
    def alpha_(self) -> float:
        """The dispersion alpha: that given, or the estimate."""
        return float(self._result(0.95).basis.family_facts["alpha"])

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of the negative binomial deviance that is explained, at this alpha.

        Parameters
        ----------
        X : array_like of shape (n, p)
            The features.
        y : array_like of shape (n,)
            The counts.
        sample_weight : array_like of shape (n,), optional
            The weights of the rows.

        Returns
        -------
        float
            1 for a perfect prediction, 0 for the mean.
        """
        counts = np.asarray(y, dtype=np.float64)
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        loss = make_loss(self.family, alpha=self.alpha_)
        constant = np.full(len(counts), loss.start(float(np.average(counts, weights=weight))))
        at, null = (
            np.average(loss.value(eta, counts) - loss.saturated(counts), weights=weight)
            for eta in (self._eta(X, None), constant)
        )
        return float(1.0 - at / null)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags
