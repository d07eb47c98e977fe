"""What a loss says beyond its minimum: the loss of a constant, of a perfect fit, and the rest of the log-likelihood."""

from __future__ import annotations

from typing import Any

from halfwidth.docstrings import share_arguments
from halfwidth.kernels.arrays import Vector


@share_arguments(
    """
    y : ndarray
        The targets.
""",
    returns="""
    ndarray or float
        For each row, or for all alike.
""",
)
class Likelihood:
    """Constants of a family's log-likelihood, for deviances and information criteria, and what results state of it."""

    def null(self, mean: float, variance: float) -> float:
        """Return the mean loss of the best constant predictor, where `likelihood` is true.

        Parameters
        ----------
        mean, variance : float
            Of the targets.

        Returns
        -------
        float
            The loss per unit of weight.
        """
        return 0.5 * variance

    def saturated(self, y: Vector) -> Vector | float:
        """Return the smallest loss that any predictor could have."""
        return 0.0

    def constant(self, y: Vector) -> Vector | float:
        """Return what the log-likelihood has beyond minus the loss, where `likelihood` is true."""
        return 0.0

    @property
    def extra_parameters(self) -> int:
        """How many parameters beside the coefficients the likelihood was maximised over."""
        return 0

    def log_likelihood(self, loss: float, saturated: float, constant: float, n: float, dispersion: float) -> float:
        """Return the log-likelihood of rows, where `likelihood` is true.

        Parameters
        ----------
        loss, saturated, constant : float
            The sums of the loss, of `saturated` and of `constant`.
        n : float
            The number of rows.
        dispersion : float
            The dispersion, for a family that has one.

        Returns
        -------
        float
            The log-likelihood.
        """
        return constant - loss

    def facts(self, dispersion: float) -> dict[str, Any]:
        """Return what a result states beside the coefficients.

        Parameters
        ----------
        dispersion : float
            The sum of squared scores over that of their mean weights; where those are all one, as for the gamma family,
            it is Pearson's.

        Returns
        -------
        dict
            Names and values; nothing for most families.
        """
        return {}
