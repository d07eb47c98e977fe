"""Families with their canonical link: loss b(eta) - y eta, so that the slope is mean - y and the weight the variance.

With mean = b'(eta) the derivative of the mean in eta is b''(eta) = V(mean), the variance of y where its mean is this:
p (1 - p) for the logistic family, the mean itself for the Poisson family.

P. McCullagh and J. A. Nelder, *Generalized Linear Models* (1989), section 2.2.
"""

from __future__ import annotations

from abc import abstractmethod

from halfwidth.families.base import Loss
from halfwidth.kernels.arrays import Vector


class CanonicalLink(Loss):
    """A loss b(eta) - y eta; a subclass gives `value`, `mean` and `variance_at`."""

    smooth = True
    likelihood = True

    @abstractmethod
    def variance_at(self, mean: Vector) -> Vector:
        """Return the variance function V of the family.

        Parameters
        ----------
        mean : ndarray
            Means of y, one for each row.

        Returns
        -------
        ndarray
            The variance of y where its mean is this, up to the dispersion.
        """

    def slope(self, eta: Vector, y: Vector) -> Vector:
        return self.mean(eta) - y

    def weight(self, eta: Vector, y: Vector) -> Vector:
        return self.mean_slope(eta)

    def slope_and_weight(self, eta: Vector, y: Vector) -> tuple[Vector, Vector]:
        mean = self.mean(eta)
        return mean - y, self.variance_at(mean)

    def mean_slope(self, eta: Vector) -> Vector:
        return self.variance_at(self.mean(eta))
