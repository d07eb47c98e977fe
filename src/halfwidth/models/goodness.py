"""How well a regression fits: R squared, deviance, likelihood and criteria, by statsmodels' names.

With L the loss of all rows at the estimate, L_0 that of the best constant and L_s the smallest of any predictor,

    deviance = 2 (L - L_s),   null_deviance = 2 (L_0 - L_s),
    rsquared = 1 - L / L_0 (linear),   prsquared = 1 - llf / llnull (D. McFadden 1974; others),
    llf = constant - L, or -n/2 (log(2 pi ssr / n) + 1) (linear),   aic = 2 k - 2 llf,   bic = k log n - 2 llf.

A gamma regression's llf is at Pearson's dispersion, which is not counted in k, as in statsmodels' GLM. A negative
binomial one's is at the final alpha, which counts as a parameter where it was estimated; L_0 is at the same alpha.

Likelihoods and criteria assume independent rows, whatever the standard errors allow for. They are exact for linear
regression, for streams short enough to be held, and after a second pass; otherwise the loss is expanded around points
along the stream, and `likelihood_is_exact` is False. Weights are scaled to a mean of one. Beside offsets L_0 is not
known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from halfwidth.errors import InputError
from halfwidth.families import Loss
from halfwidth.inference import WaldTest
from halfwidth.learners.newton.loss_sums import GoodnessOfFit

if TYPE_CHECKING:
    from halfwidth.inference import Result
    from halfwidth.models.basis import Basis


@dataclass(frozen=True)
class Likelihood:
    """The sums of a fit, scaled to weights of mean one; symbols as in the module's text."""

    sums: GoodnessOfFit
    loss: Loss
    n: int
    k: int
    intercept: bool
    dispersion: float

    def _of(self, total: float) -> float:
        return total * self.n / self.sums.weight

    @property
    def at_estimate(self) -> float:
        """L."""
        return self._of(self.sums.loss)

    @cached_property
    def at_constant(self) -> float:
        """L_0; around zero for a linear regression without intercept, as statsmodels has it."""
        sums = self.sums
        if sums.has_offset:
            raise InputError("the best constant is not known here: rows have offsets, and it is not fitted beside them")
        if sums.counts is not None:
            shares = sums.counts[sums.counts > 0.0] / sums.weight
            return float(-self.n * shares @ np.log(shares))
        variance = sums.spread / sums.weight
        if self.loss.quadratic and not self.intercept:
            variance += sums.mean**2
        return self.n * self.loss.null(sums.mean, variance)

    @property
    def saturated(self) -> float:
        """L_s."""
        return self._of(self.sums.saturated)

    def log_likelihood(self, loss: float) -> float:
        """Of a predictor with this loss."""
        return self.loss.log_likelihood(loss, self.saturated, self._of(self.sums.constant), self.n, self.dispersion)


class Goodness:
    """The statistics of a fit; `RegressionResult` inherits them."""

    core: Result
    intercept: bool
    likelihood: Likelihood | None
    family: str
    loss: Loss
    basis: Basis

    def _known(self, asked: str) -> Likelihood:
        if self.likelihood is None:
            raise InputError(
                f"{asked} is not known here: it needs a likelihood, which quantile and huber regressions, and those "
                f"with engine sgd, have not; this is a {self.family} one"
            )
        return self.likelihood

    @property
    def likelihood_is_exact(self) -> bool:
        """Whether `llf` and `deviance` are exact, or expanded around points along the stream."""
        return self._known("likelihood_is_exact").sums.exact

    @property
    def deviance(self) -> float:
        """Twice the loss beyond the smallest possible one; the residual sum of squares of a linear regression."""
        known = self._known("deviance")
        return 2.0 * (known.at_estimate - known.saturated)

    @property
    def null_deviance(self) -> float:
        """The deviance of the best constant."""
        known = self._known("null_deviance")
        return 2.0 * (known.at_constant - known.saturated)

    @property
    def llf(self) -> float:
        """The log-likelihood at the estimate, of independent rows."""
        known = self._known("llf")
        return known.log_likelihood(known.at_estimate)

    @property
    def llnull(self) -> float:
        """The log-likelihood of the best constant."""
        known = self._known("llnull")
        return known.log_likelihood(known.at_constant)

    @property
    def aic(self) -> float:
        """Akaike's criterion, for independent rows."""
        return 2.0 * self._known("aic").k - 2.0 * self.llf

    @property
    def bic(self) -> float:
        """Schwarz's criterion, for independent rows."""
        known = self._known("bic")
        return known.k * math.log(known.n) - 2.0 * self.llf

    @property
    def rsquared(self) -> float:
        """The share of the sum of squares explained, by a linear regression."""
        known = self._known("rsquared")
        if not known.loss.quadratic:
            raise InputError(f"rsquared exists for linear regressions; a {self.family} one has prsquared")
        return 1.0 - known.at_estimate / known.at_constant if known.at_constant > 0.0 else math.nan

    @property
    def rsquared_adj(self) -> float:
        """The same, corrected for the number of coefficients."""
        known = self._known("rsquared_adj")
        return 1.0 - (known.n - self.intercept) / (known.n - known.k) * (1.0 - self.rsquared)

    @property
    def prsquared(self) -> float:
        """McFadden's pseudo R squared."""
        known = self._known("prsquared")
        if known.loss.quadratic:
            raise InputError("prsquared exists for regressions other than linear ones; these have rsquared")
        return 1.0 - self.llf / self.llnull

    @property
    def scale(self) -> float:
        """The dispersion of linear and gamma regressions; 1 for other likelihoods, as statsmodels has it."""
        self._known("scale")
        if not self.loss.free_spread or self.basis.dispersion is None:
            return 1.0
        return self.basis.dispersion

    @property
    def df_model(self) -> int:
        """The number of slopes."""
        return self.core.params.size - self.loss.equations * int(self.intercept)

    @cached_property
    def overall_test(self) -> WaldTest:
        """The joint test that all slopes are zero, with the errors of the table; only of those that have one."""
        known = np.isfinite(self.core.bse)
        if self.intercept:
            known[:: known.size // self.loss.equations] = False
        if not known.any():
            raise InputError("there is no slope to test")
        return self.core.wald_test(np.eye(known.size)[known])

    @property
    def fvalue(self) -> float:
        """The F statistic of `overall_test`, by statsmodels' name.

        Its degrees of freedom are `overall_test.df_num` and `overall_test.df_denom`.
        """
        return self.overall_test.fvalue

    @property
    def f_pvalue(self) -> float:
        """The p-value of `overall_test`."""
        return self.overall_test.p_value

    def statistics(self) -> dict[str, Any]:
        """What is known, for JSON.

        Returns
        -------
        dict
            The statistics by name; those that the family lacks are left out.
        """
        if self.likelihood is None:
            return {}
        r2 = "rsquared" if self.likelihood.loss.quadratic else "prsquared"
        names: tuple[str, ...] = ("deviance", "llf", "aic", "bic")
        if not self.likelihood.sums.has_offset:
            names = (r2, "null_deviance", *names)
        return {name: getattr(self, name) for name in names} | {"likelihood_is_exact": self.likelihood_is_exact}
