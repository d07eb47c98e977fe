"""A family of regression: a convex loss of the linear predictor eta = offset + x'theta, with slope and curvature.

The scale of a family with `uses_scale` is the median absolute residual over 0.6745, from the first rows and then
averaged over the chunks that follow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.docstrings import share_arguments
from halfwidth.families.likelihood import Likelihood
from halfwidth.kernels.arrays import Vector

NORMAL_MAD = 0.6744897501960817


@share_arguments("""
    eta : ndarray
        The linear predictors, one for each row.
    y : ndarray
        The targets, one for each row.
    y_mean : float
        The mean of the first targets.
""")
class Loss(Likelihood, ABC):
    """A convex loss of the linear predictor eta and the target y.

    A subclass gives `value`, `slope` and `weight`, and overrides what differs from a linear model. Targets and
    predictors are vectors, one entry for each row.

    Attributes
    ----------
    scale : float
        The scale of the residuals, for a family with `uses_scale`; the dispersion of one that has it.
    bandwidth : float
        The smoothing bandwidth h in units of the scale, for a family with a smoothed loss.
    """

    name: str
    uses_scale = False
    """Whether the loss depends on the scale of the residuals."""
    quadratic = False
    """Whether the loss is quadratic in eta, so that its expansion is exact."""
    smooth = False
    """Whether the remainder of an expansion is small enough to be estimated on a sample of rows."""
    rough = False
    """Whether `score` jumps, so that the estimate is the root of a smoothed one."""
    likelihood = False
    """Whether minus the loss, with `constant`, is a log-likelihood."""
    ratios = False
    """Whether the exponential of a coefficient is a ratio: of odds, rates or means."""
    free_spread = False
    """Whether the spread of y is a parameter beside its mean, so that a fit can be exact."""
    target = "be finite numbers"
    """The rule that targets must satisfy, for error messages."""
    labels: str | None = None
    """How a stream reads the targets, where they are not any numbers: "count", "whole", "positive", "binary"
    or "classes"."""
    separation: str | None = None
    """How columns can separate the targets: "sides" (two classes), "zeros" (counts of 0 from others),
    "largest" (classes), or not at all."""

    equations = 1
    """How many predictors a row has; the coefficients are those of the first, then of the second, and so on."""

    def __init__(self) -> None:
        self.scale = 1.0
        self.bandwidth = 1.0

    @abstractmethod
    def value(self, eta: Vector, y: Vector) -> Vector:
        """Return the loss of each row.

        Returns
        -------
        ndarray
            The loss(eta, y).
        """

    @abstractmethod
    def slope(self, eta: Vector, y: Vector) -> Vector:
        """Return the derivative of the loss in eta.

        Returns
        -------
        ndarray
            The derivative d loss / d eta.
        """

    @abstractmethod
    def weight(self, eta: Vector, y: Vector) -> Vector:
        """Return the second derivative of the loss in eta.

        Returns
        -------
        ndarray
            The curvature d2 loss / d eta2, the weight of a row in the Hessian. It must not be negative: where a loss is
            not convex, it is the mean of the curvature over y given eta, as in Fisher scoring.
        """

    def mean_weight(self, eta: Vector, y: Vector) -> Vector:
        """Return the mean of `weight` over y given eta, where the family's variance is right.

        Returns
        -------
        ndarray
            `weight` itself where it does not depend on y.
        """
        return self.weight(eta, y)

    def slope_and_weight(self, eta: Vector, y: Vector) -> tuple[Vector, Vector]:
        """Return `slope` and `weight` together, which share their exponentials.

        Returns
        -------
        tuple of ndarray
            The first and the second derivative of the loss in eta.
        """
        return self.slope(eta, y), self.weight(eta, y)

    def bend(self, weight: Vector, along: Vector) -> Vector:
        """Return the change of the slope along a step of the predictors, where it has this weight.

        Parameters
        ----------
        weight, along : ndarray
            What `weight` returned, and the step.

        Returns
        -------
        ndarray
            The curvature times the step.
        """
        return weight * along

    @property
    def unit(self) -> float:
        """The size of the loss of a residual of one scale: what tolerances are measured in."""
        return 1.0

    @property
    def curvature_unit(self) -> float:
        """The size of its curvature: what the weight of one row is measured in."""
        return 1.0

    def score(self, eta: Vector, y: Vector) -> Vector:
        """Return the slope whose mean is zero at the truth.

        Returns
        -------
        ndarray
            `slope`, or the unsmoothed one where `slope` is smoothed.
        """
        return self.slope(eta, y)

    def root(self, eta: Vector, y: Vector) -> Vector:
        """Return the slope whose sum the estimate sets to zero: as unbiased as `score`, and smooth.

        Returns
        -------
        ndarray
            `slope` where nothing is smoothed.
        """
        return self.slope(eta, y)

    def mean(self, eta: Vector) -> Vector:
        """Return what is predicted at each eta.

        Returns
        -------
        ndarray
            The mean of y, or its quantile.
        """
        return eta

    def mean_slope(self, eta: Vector) -> Vector:
        """Return the derivative of `mean`, for intervals of predictions.

        Returns
        -------
        ndarray
            The derivative d mean / d eta.
        """
        return np.ones_like(eta)

    def start(self, y_mean: float) -> float:
        """Return an intercept to start from.

        Returns
        -------
        float
            The eta at which `mean` is about `y_mean`.
        """
        return y_mean

    def allows(self, y: Vector) -> NDArray[np.bool_]:
        """Say which targets the family can take.

        Returns
        -------
        ndarray of bool
            True where a target satisfies the rule `target`.
        """
        return np.isfinite(y)

    def sharpen(self, n: float, dim: int) -> None:
        """Set the bandwidth for n rows, where the loss is smoothed.

        Parameters
        ----------
        n, dim : float, int
            The number of rows, or their total weight, and the number of coefficients.
        """
        return

    def options(self) -> dict[str, Any]:
        """Return the arguments of the constructor.

        Returns
        -------
        dict
            What `make_loss` needs beside the name.
        """
        return {}
