"""Negative binomial regression with the log link, of the kind NB2: the variance of y is mu + alpha mu^2.

    loss = (y + 1/alpha) log(1 + alpha mu) - y eta,   mu = exp(eta),
    slope = (mu - y) / (1 + alpha mu),   weight = mu (1 + alpha y) / (1 + alpha mu)^2.

The limit alpha -> 0 is Poisson regression. An alpha that is not given is the maximum of the likelihood

    sum_i log(1 + alpha j, j < y_i) - log y_i! - loss_i

together with the coefficients; where it is at its lower bound the counts are not overdispersed. The information about
alpha and about the coefficients is orthogonal (J. F. Lawless, *Negative binomial and mixed Poisson regression*,
Canadian J. of Statistics 15, 1987): estimating alpha leaves the standard errors of the coefficients as they are, and a
wrong alpha leaves the coefficients consistent, as their score has mean zero at any.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.errors import InputError
from halfwidth.families.dispersed import Dispersed, DispersionTerms
from halfwidth.families.log_link import LogLink
from halfwidth.kernels.arrays import Vector

LEAST_ALPHA, MOST_ALPHA = 1e-8, 1e8
_TABLE = 2**20
"""Sums over j < y are added up to here, which is exact for any alpha; beyond, they are differences of digammas."""
_SERIES = 1e-3
_ROUNDS = 100
_SETTLED = 1e-13


class NegativeBinomial(LogLink, Dispersed):
    """The negative binomial loss of counts.

    Parameters
    ----------
    alpha : float, optional
        The dispersion, above 0; estimated when none is given.
    """

    name = "negative-binomial"
    smooth = True
    likelihood = True
    steers = True
    target = "be whole numbers of at least 0"
    labels = "whole"
    separation = "zeros"

    def __init__(self, alpha: float | None = None) -> None:
        if alpha is not None and (isinstance(alpha, bool) or not LEAST_ALPHA <= alpha <= MOST_ALPHA):
            raise InputError.of("alpha", f"lie between {LEAST_ALPHA:g} and {MOST_ALPHA:g}, or be None", alpha)
        super().__init__()
        self.estimated = alpha is None
        self.scale = 1.0 if alpha is None else float(alpha)

    @property
    def extra_parameters(self) -> int:
        return int(self.estimated)

    @property
    def at_boundary(self) -> bool:
        """Whether the estimate of alpha is 0, as far as it can be told."""
        return self.estimated and self.scale <= LEAST_ALPHA

    def value(self, eta: Vector, y: Vector) -> Vector:
        return np.asarray((y + 1.0 / self.scale) * np.log1p(self.scale * self.mean(eta)) - y * eta)

    def slope(self, eta: Vector, y: Vector) -> Vector:
        mu = self.mean(eta)
        return (mu - y) / (1.0 + self.scale * mu)

    def weight(self, eta: Vector, y: Vector) -> Vector:
        mu = self.mean(eta)
        return mu * (1.0 + self.scale * y) / (1.0 + self.scale * mu) ** 2

    def mean_weight(self, eta: Vector, y: Vector) -> Vector:
        mu = self.mean(eta)
        return mu / (1.0 + self.scale * mu)

    def allows(self, y: Vector) -> NDArray[np.bool_]:
        return np.asarray(np.isfinite(y) & (y >= 0.0) & (y == np.floor(y)))

    def options(self) -> dict[str, Any]:
        return {} if self.estimated else {"alpha": self.scale}

    def facts(self, dispersion: float) -> dict[str, Any]:
        return {"alpha": self.scale, "alpha_is": "estimated" if self.estimated else "given"}

    def bounded(self, dispersion: float) -> float:
        return min(max(dispersion, LEAST_ALPHA), MOST_ALPHA)

    def terms(self, eta: Vector, y: Vector) -> DispersionTerms:
        mu = self.mean(eta)
        one = 1.0 + self.scale * mu
        first, second = _count_sums(y, self.scale)
        bent, slope = _bent_log(mu, self.scale)
        share = mu / one
        return DispersionTerms(first + bent - y * share, second + slope + y * share**2, share * ((mu - y) / one))

    def settled(self, eta: Vector, y: Vector, weight: Vector | None) -> float:
        trial = NegativeBinomial()

        def at(alpha: float) -> tuple[float, float]:
            trial.scale = alpha
            found = trial.terms(eta, y)
            return float(np.average(found.value, weights=weight)), float(np.average(found.bend, weights=weight))

        low, high = LEAST_ALPHA, MOST_ALPHA
        if at(low)[0] <= 0.0:
            return low
        alpha = self.bounded(self.scale)
        for _ in range(_ROUNDS):
            value, bend = at(alpha)
            low, high = (alpha, high) if value > 0.0 else (low, alpha)
            step = alpha - value / bend if bend < 0.0 else 0.0
            new = step if low < step < high else math.sqrt(low * high)
            if abs(new - alpha) <= _SETTLED * alpha:
                return new
            alpha = new
        return alpha

    def saturated(self, y: Vector) -> Vector:
        from scipy.special import xlogy

        return np.asarray((y + 1.0 / self.scale) * np.log1p(self.scale * y) - xlogy(y, y))

    def constant(self, y: Vector) -> Vector:
        from scipy.special import betaln, gammaln

        if y.max(initial=0.0) < _TABLE:
            return np.asarray(_table(np.log1p(self.scale * _below(y)))[y.astype(np.intp)] - gammaln(y + 1.0))
        some = np.maximum(y, 1.0)
        gammas = gammaln(some) - betaln(1.0 / self.scale, some) + some * math.log(self.scale)
        return np.asarray(np.where(y > 0.0, gammas, 0.0) - gammaln(y + 1.0))

    def null(self, mean: float, variance: float) -> float:
        if not mean > 0.0:
            return 0.0
        return (mean + 1.0 / self.scale) * math.log1p(self.scale * mean) - mean * math.log(mean)

    def likelihood_slopes(self, eta: Vector, y: Vector) -> tuple[Vector, Vector, Vector]:
        alpha, mu = self.scale, self.mean(eta)
        loss = y * mu / (1.0 + alpha * mu) - _bent_log(mu, alpha)[0]
        saturated = y**2 / (1.0 + alpha * y) - _bent_log(y, alpha)[0]
        return loss, saturated, _count_sums(y, alpha)[0]


def _bent_log(mu: Vector, alpha: float) -> tuple[Vector, Vector]:
    """(log(1 + x) - x / (1 + x)) / alpha^2 with x = alpha mu, and its derivative in alpha.

    Without cancellation, whether x is near 0 or beyond 1 / eps: a fit on its way to the maximum may predict means of
    1e30, and the sign of what is left then decides the way that alpha goes.
    """
    x = alpha * mu
    small = np.minimum(x, _SERIES)
    low = np.minimum(mu, _SERIES / alpha)
    near = 0.5 + small * (-2.0 / 3.0 + small * (0.75 + small * (-0.8 + small * 5.0 / 6.0)))
    near_slope = -2.0 / 3.0 + small * (1.5 + small * (-2.4 + small * (10.0 / 3.0 - 30.0 * small / 7.0)))
    large = np.maximum(x, _SERIES)
    share = large / (1.0 + large)
    rest = np.log1p(large) - share
    far, far_slope = rest / alpha**2, (share**2 - 2.0 * rest) / alpha**3
    return np.where(x < _SERIES, low**2 * near, far), np.where(x < _SERIES, low**3 * near_slope, far_slope)


def _below(y: Vector) -> Vector:
    return np.arange(float(y.max(initial=0.0)))


def _table(steps: Vector) -> Vector:
    return np.concatenate([[0.0], np.cumsum(steps)])


def _count_sums(y: Vector, alpha: float) -> tuple[Vector, Vector]:
    """The first two derivatives in alpha of the sum of log(1 + alpha j) over j < y."""
    if y.max(initial=0.0) < _TABLE:
        j = _below(y)
        ratio, place = j / (1.0 + alpha * j), y.astype(np.intp)
        return _table(ratio)[place], _table(-(ratio**2))[place]
    from scipy.special import polygamma, psi

    a = 1.0 / alpha
    harmonic, squares = psi(y + a) - psi(a), polygamma(1, a) - polygamma(1, y + a)
    return a * (y - a * harmonic), -(a**2) * (y - 2.0 * a * harmonic + a**2 * squares)
