"""The models with a dispersion beside the coefficients: gamma and negative binomial regression."""

from __future__ import annotations

from typing import ClassVar

from halfwidth.families import Loss, make_loss
from halfwidth.models.deviance import DevianceRegressor


class GammaRegressor(DevianceRegressor):
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


class NegativeBinomialRegressor(DevianceRegressor):
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
        self, *, alpha: float | None = None, fit_intercept: bool = True, ridge: float = 0.0, method: str = "auto",
        engine: str = "auto",
    ) -> None:  # fmt: skip
        super().__init__(fit_intercept=fit_intercept, ridge=ridge, method=method, engine=engine)
        self.alpha = alpha

    @property
    def alpha_(self) -> float:
        """The dispersion alpha: that given, or the estimate."""
        return float(self._result(0.95).basis.family_facts["alpha"])

    def _fitted_loss(self) -> Loss:
        return make_loss(self.family, alpha=self.alpha_)
