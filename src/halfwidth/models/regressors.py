"""The models for numbers and counts: linear, Poisson, quantile and Huber regression."""

from __future__ import annotations

from typing import ClassVar

from halfwidth.models.base import StreamModel
from halfwidth.models.deviance import DevianceRegressor
from halfwidth.models.scoring import RegressorMixin


class LinearRegression(RegressorMixin, StreamModel):
    """Least squares in one pass, with standard errors for rows in time order.

    `fit` starts afresh, `partial_fit` goes on; rows are taken in the order given, and memory does not grow with their
    number. The standard errors allow for rows that depend on each other.

    Attributes
    ----------
    coef_ : ndarray of shape (p,)
        The coefficients of the columns.
    intercept_ : float
        The intercept.
    n_seen_ : int
        How many rows were learned from.
    status_ : str
        ``"ok"``, or the name of the reason why there is no inference yet.

    Notes
    -----
    The estimate is the root of sum_i w_i (y_i - x_i'theta) x_i = 0. Its covariance is A^-1 V A^-1 with A the Hessian
    and V the long-run covariance of the score sums over batches of consecutive rows, or over `groups`.

    References
    ----------
    L. Luo and P. X.-K. Song, *Renewable estimation and incremental inference in generalized linear models with
    streaming data sets*, JRSS B 82 (2020). D. W. K. Andrews, *Heteroskedasticity and autocorrelation consistent
    covariance matrix estimation*, Econometrica 59 (1991).

    Examples
    --------
    >>> import halfwidth as hw
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((2_000, 2))
    >>> y = 1.0 + X @ [2.0, 0.0] + rng.standard_normal(2_000)
    >>> model = hw.LinearRegression()
    >>> for start in range(0, 2_000, 500):
    ...     model = model.partial_fit(X[start : start + 500], y[start : start + 500])
    >>> bool(model.inference().pvalues[1] < 0.001)
    True
    >>> model.inference().interval().covers([1.0, 2.0, 0.0]).tolist()
    [True, True, True]
    """

    family: ClassVar[str] = "linear"


class PoissonRegressor(DevianceRegressor):
    """Poisson regression of counts or rates with a log link, in one pass.

    `offset` takes the logarithm of the exposure. The standard errors allow for dependent rows and for overdispersion.

    Examples
    --------
    >>> import halfwidth as hw
    >>> rng = np.random.default_rng(1)
    >>> X = rng.standard_normal((4_000, 1))
    >>> model = hw.PoissonRegressor().fit(X, rng.poisson(np.exp(0.5 + 0.3 * X[:, 0])))
    >>> model.inference().interval().covers([0.5, 0.3]).tolist()
    [True, True]
    """

    family: ClassVar[str] = "poisson"


class QuantileRegressor(RegressorMixin, StreamModel):
    """Regression of a conditional quantile, in one pass.

    Parameters
    ----------
    quantile : float, default 0.5
        The quantile, strictly between 0 and 1.

    Notes
    -----
    The check loss is smoothed with a bandwidth that shrinks with the rows; the estimate is the root of a score that is
    smoothed by a kernel of fourth order, and the standard errors come from the unsmoothed score.

    References
    ----------
    M. Fernandes, E. Guerre and E. Horta, *Smoothing quantile regressions*, JBES 39 (2021). X. He, X. Pan, K. M. Tan and
    W.-X. Zhou, *Smoothed quantile regression with large-scale inference*, J. Econometrics 232 (2023).

    Examples
    --------
    >>> import halfwidth as hw
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((4_000, 1))
    >>> model = hw.QuantileRegressor(quantile=0.5).fit(X, 1.0 + X[:, 0] + rng.standard_normal(4_000))
    >>> model.inference().interval().covers([1.0, 1.0]).tolist()
    [True, True]
    """

    family: ClassVar[str] = "quantile"

    def __init__(
        self, *, quantile: float = 0.5, fit_intercept: bool = True, ridge: float = 0.0, method: str = "auto",
        engine: str = "auto",
    ) -> None:  # fmt: skip
        super().__init__(fit_intercept=fit_intercept, ridge=ridge, method=method, engine=engine)
        self.quantile = quantile


class HuberRegressor(RegressorMixin, StreamModel):
    """Robust regression with Huber's loss, in one pass.

    The threshold is 1.345 times the scale of the residuals, which is estimated from the rows (`scale_`).

    References
    ----------
    P. J. Huber, *Robust estimation of a location parameter*, Annals of Math. Statistics 35 (1964).

    Examples
    --------
    >>> import halfwidth as hw
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((4_000, 1))
    >>> model = hw.HuberRegressor().fit(X, 1.0 + X[:, 0] + rng.standard_t(3, 4_000))
    >>> model.inference().interval().covers([1.0, 1.0]).tolist()
    [True, True]
    """

    family: ClassVar[str] = "huber"

    @property
    def scale_(self) -> float:
        """The residual scale: median absolute residual over 0.6745, from the first rows and averaged since."""
        self._check_fitted()
        return float(self._engine.loss.scale)
