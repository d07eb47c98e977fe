"""Families with a dispersion phi beside the coefficients, the root of an estimating equation of its own.

    sum_i w_i m(eta_i, y_i, phi) = 0

`Dispersed.scale` holds phi. The derivatives of m in phi and in eta let sums over a stream be solved for phi at the
estimate of the coefficients (`halfwidth.learners.newton.dispersion_sums`).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

from halfwidth.docstrings import share_arguments
from halfwidth.families.base import Loss
from halfwidth.kernels.arrays import Vector


class DispersionTerms(NamedTuple):
    """Row by row: m, and its derivatives in phi and in eta."""

    value: Vector
    bend: Vector
    cross: Vector


@share_arguments("""
    eta : ndarray
        The linear predictors, one for each row.
    y : ndarray
        The targets, one for each row.
""")
class Dispersed(Loss):
    """A loss with a dispersion, in `scale`."""

    estimated = True
    """Whether the dispersion is estimated, or was given."""
    steers = False
    """Whether the slope depends on the dispersion."""

    @abstractmethod
    def terms(self, eta: Vector, y: Vector) -> DispersionTerms:
        """Return the equation of the dispersion, row by row, at the present one.

        Returns
        -------
        DispersionTerms
            The values m and their derivatives.
        """

    @abstractmethod
    def settled(self, eta: Vector, y: Vector, weight: Vector | None) -> float:
        """Return the dispersion that solves the equation at given predictors.

        Parameters
        ----------
        weight : ndarray, optional
            The weights of the rows.

        Returns
        -------
        float
            The dispersion.
        """

    def bounded(self, dispersion: float) -> float:
        """Return the nearest dispersion that the family allows.

        Parameters
        ----------
        dispersion : float
            A root of linearised equations.

        Returns
        -------
        float
            The dispersion itself where it is allowed.
        """
        return max(dispersion, 0.0)

    def likelihood_slopes(self, eta: Vector, y: Vector) -> tuple[Vector, Vector, Vector]:
        """Return the derivatives of `value`, `saturated` and `constant` in the dispersion.

        Returns
        -------
        tuple of ndarray
            Zero where the loss does not depend on the dispersion.
        """
        return 0.0 * y, 0.0 * y, 0.0 * y


def estimated_dispersion(loss: Loss) -> Dispersed | None:
    """Return the loss itself if it has a dispersion to estimate.

    Parameters
    ----------
    loss : Loss
        Any loss.

    Returns
    -------
    Dispersed or None
        None where there is no dispersion, or where it was given.
    """
    return loss if isinstance(loss, Dispersed) and loss.estimated else None
