"""What a loss says beyond its minimum: the loss of a constant, of a perfect fit, and the rest of the log-likelihood."""

from __future__ import annotations

from halfwidth.docstrings import share_arguments
from halfwidth.kernels.arrays import Vector


@share_arguments("""
    y : ndarray
        The targets.
""")
class Likelihood:
    """Constants of a family's log-likelihood, for deviances and information criteria."""

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
        """Return the smallest loss that any predictor could have.

        Returns
        -------
        ndarray or float
            For each row, or for all alike.
        """
        return 0.0

    def constant(self, y: Vector) -> Vector | float:
        """Return what the log-likelihood has beyond minus the loss, where `likelihood` is true.

        Returns
        -------
        ndarray or float
            For each row, or for all alike.
        """
        return 0.0
