"""What a family is: a convex loss of the linear predictor eta = offset + x'theta, with its slope and curvature.

The scale of a family with `uses_scale` is the median absolute residual over 0.6745, from the first rows and then
averaged over the chunks that follow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

NORMAL_MAD = 0.6744897501960817


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
