"""Losses of a linear predictor: loss(eta, y) with eta = offset + x'theta, for regression on given rows.

| family   | loss(eta, y)                              | slope d/d eta   | weight d2/d eta2     | mean     |
|----------|-------------------------------------------|-----------------|----------------------|----------|
| linear   | e^2 / 2                                   | -e              | 1                    | eta      |
| logistic | log(1 + exp(eta)) - y eta                 | s(eta) - y      | s(eta) (1 - s(eta))  | s(eta)   |
| poisson  | exp(eta) - y eta                          | exp(eta) - y    | exp(eta)             | exp(eta) |
| quantile | e tau + h phi(e/h) - e Phi(-e/h)          | Phi(-e/h) - tau | phi(e/h) / h         | eta      |
| huber    | e^2 / 2 if abs(e) <= t, else t abs(e) - t^2 / 2 | -clip(e, -t, t) | 1{abs(e) <= t} | eta      |

with e = y - eta, s the logistic function, phi and Phi the normal density and distribution. The quantile row is the
check loss smoothed by a normal kernel of bandwidth h (M. Fernandes, E. Guerre and E. Horta, JBES 39, 2021; X. He, X.
Pan, K. M. Tan and W.-X. Zhou, J. Econometrics 232, 2023), h = scale ((dim + log n)/n)^(2/5): it steers the search and
gives the curvature. The estimate is the root of Phi(u) + u phi(u)/2 - tau with u = -2e/h, smoothed by a kernel of
fourth order, whose bias is O(h^4); standard errors come from the unsmoothed `score` 1{e < 0} - tau.

Huber's threshold is t = 1.345 scale (P. J. Huber 1964). The scale of both is the median absolute residual over 0.6745,
from the first rows and then averaged over the chunks that follow.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.errors import InputError, UnknownName

Vector = NDArray[np.float64]

NORMAL_MAD = 0.6744897501960817
HUBER_TUNING = 1.345
ROOT_BANDWIDTH = 0.5
_LARGEST_EXPONENT = 500.0


class Loss(ABC):
    """A convex loss of the linear predictor; `scale` is that of the residuals and `bandwidth` is h in units of it."""

    name: str
    uses_scale = False
    quadratic = False
    smooth = False
    """Whether the remainder of an expansion is small enough to be estimated on a sample of rows."""
    rough = False
    """Whether `score` jumps, so that the estimate is the root of a smoothed one."""
    target = "be finite numbers"

    def __init__(self) -> None:
        self.scale = 1.0
        self.bandwidth = 1.0

    @abstractmethod
    def value(self, eta: Vector, y: Vector) -> Vector: ...

    @abstractmethod
    def slope(self, eta: Vector, y: Vector) -> Vector: ...

    @abstractmethod
    def weight(self, eta: Vector, y: Vector) -> Vector: ...

    def score(self, eta: Vector, y: Vector) -> Vector:
        """The slope whose mean is zero at the truth; the unsmoothed one where `slope` is smoothed."""
        return self.slope(eta, y)

    def root(self, eta: Vector, y: Vector) -> Vector:
        """The slope whose sum the estimate sets to zero: as unbiased as `score`, and smooth."""
        return self.slope(eta, y)

    def mean(self, eta: Vector) -> Vector:
        """What is predicted at this eta."""
        return eta

    def mean_slope(self, eta: Vector) -> Vector:
        """The derivative of `mean`, for intervals of predictions."""
        return np.ones_like(eta)

    def start(self, y_mean: float) -> float:
        """An intercept to start from."""
        return y_mean

    def allows(self, y: Vector) -> NDArray[np.bool_]:
        """Which targets the family can take."""
        return np.isfinite(y)

    def sharpen(self, n: float, dim: int) -> None:
        """Tune what shrinks with the number of rows, where there is such a thing."""
        return

    def options(self) -> dict[str, Any]:
        return {}


class Linear(Loss):
    name = "linear"
    quadratic = True

    def value(self, eta: Vector, y: Vector) -> Vector:
        return np.asarray(0.5 * (y - eta) ** 2)

    def slope(self, eta: Vector, y: Vector) -> Vector:
        return eta - y

    def weight(self, eta: Vector, y: Vector) -> Vector:
        return np.ones_like(eta)


class Logistic(Loss):
    name = "logistic"
    smooth = True
    target = "be 0 or 1"

    def value(self, eta: Vector, y: Vector) -> Vector:
        return np.asarray(np.logaddexp(0.0, eta) - y * eta)

    def slope(self, eta: Vector, y: Vector) -> Vector:
        return self.mean(eta) - y

    def weight(self, eta: Vector, y: Vector) -> Vector:
        return self.mean_slope(eta)

    def mean(self, eta: Vector) -> Vector:
        from scipy.special import expit

        return np.asarray(expit(eta))

    def mean_slope(self, eta: Vector) -> Vector:
        p = self.mean(eta)
        return p * (1.0 - p)

    def start(self, y_mean: float) -> float:
        p = min(max(y_mean, 1e-3), 1.0 - 1e-3)
        return math.log(p / (1.0 - p))

    def allows(self, y: Vector) -> NDArray[np.bool_]:
        return np.isin(y, (0.0, 1.0))


class Poisson(Loss):
    name = "poisson"
    smooth = True
    target = "be counts or rates of at least 0"

    def value(self, eta: Vector, y: Vector) -> Vector:
        return self.mean(eta) - y * eta

    def slope(self, eta: Vector, y: Vector) -> Vector:
        return self.mean(eta) - y

    def weight(self, eta: Vector, y: Vector) -> Vector:
        return self.mean(eta)

    def mean(self, eta: Vector) -> Vector:
        return np.asarray(np.exp(np.minimum(eta, _LARGEST_EXPONENT)))

    def mean_slope(self, eta: Vector) -> Vector:
        return self.mean(eta)

    def start(self, y_mean: float) -> float:
        return math.log(max(y_mean, 1e-3))

    def allows(self, y: Vector) -> NDArray[np.bool_]:
        return np.isfinite(y) & (y >= 0.0)


class Quantile(Loss):
    name = "quantile"
    uses_scale = True
    rough = True

    def __init__(self, quantile: float = 0.5) -> None:
        if isinstance(quantile, bool) or not 0.0 < quantile < 1.0:
            raise InputError.of("quantile", "lie strictly between 0 and 1", quantile)
        super().__init__()
        self.quantile = float(quantile)

    def value(self, eta: Vector, y: Vector) -> Vector:
        from scipy.special import ndtr

        h = self.scale * self.bandwidth
        e = y - eta
        density = np.exp(-0.5 * (e / h) ** 2) / math.sqrt(2.0 * math.pi)
        return np.asarray(e * (self.quantile - ndtr(-e / h)) + h * density)

    def slope(self, eta: Vector, y: Vector) -> Vector:
        from scipy.special import ndtr

        return np.asarray(ndtr((eta - y) / (self.scale * self.bandwidth)) - self.quantile)

    def weight(self, eta: Vector, y: Vector) -> Vector:
        h = self.scale * self.bandwidth
        return np.asarray(np.exp(-0.5 * ((y - eta) / h) ** 2) / (math.sqrt(2.0 * math.pi) * h))

    def score(self, eta: Vector, y: Vector) -> Vector:
        return np.asarray((y < eta) - self.quantile)

    def root(self, eta: Vector, y: Vector) -> Vector:
        from scipy.special import ndtr

        u = (eta - y) / (ROOT_BANDWIDTH * self.scale * self.bandwidth)
        return np.asarray(ndtr(u) + 0.5 * u * np.exp(-0.5 * u**2) / math.sqrt(2.0 * math.pi) - self.quantile)

    def sharpen(self, n: float, dim: int) -> None:
        self.bandwidth = min(1.0, ((dim + math.log(max(n, 1.0))) / max(n, 1.0)) ** 0.4)

    def options(self) -> dict[str, Any]:
        return {"quantile": self.quantile}


class Huber(Loss):
    name = "huber"
    uses_scale = True

    @property
    def threshold(self) -> float:
        return HUBER_TUNING * self.scale

    def value(self, eta: Vector, y: Vector) -> Vector:
        e, t = np.abs(y - eta), self.threshold
        return np.where(e <= t, 0.5 * e**2, t * e - 0.5 * t**2)

    def slope(self, eta: Vector, y: Vector) -> Vector:
        return np.clip(eta - y, -self.threshold, self.threshold)

    def weight(self, eta: Vector, y: Vector) -> Vector:
        return (np.abs(y - eta) <= self.threshold).astype(np.float64)


FAMILIES: dict[str, type[Loss]] = {loss.name: loss for loss in (Linear, Logistic, Poisson, Quantile, Huber)}
ALIASES = {"gaussian": "linear", "binomial": "logistic"}


def make_loss(family: str, **options: Any) -> Loss:
    """The loss of a family by its name; `gaussian` and `binomial` are understood."""
    name = ALIASES.get(family, family)
    if name not in FAMILIES:
        raise UnknownName.among("family", str(family), [*FAMILIES, *ALIASES])
    return FAMILIES[name](**options)
