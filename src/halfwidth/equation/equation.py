"""The linearised estimating equation of all batches, its root, and what each batch adds to the root's error.

With the sums of `halfwidth.equation.batch_store`, relative to the reference, and for ANY fixed matrix J and vector Q,

    A_j = H_j + n_j J,   B_j = b_j + J T_j - n_j Q,   c = (sum A_j)^-1 sum B_j,   r_j = B_j - A_j c.

For a quadratic loss c - theta* = -(sum A_j)^-1 sum over rows of g(theta*) - J (theta - theta*), and r_j are the batch
sums of that same bracket: the interval is consistent for every J, which only decides how fast the bracket mixes. J is
the slope of the feedback, zero where data do not respond to the deployed theta; where they respond in a curve, a share
of R_j is taken off B_j. Where they respond by -k H of each piece, A_j = (1 - k) H_j and B_j = b_j - k U_j - k^2 R_j -
n_j Q. Q is what the expansions leave out, per
row; rows since the last move of the linearisation point get its share D back. A penalty P enters the root, not the
batches: c = (sum A_j + P)^-1 (sum B_j + p).

The influence of batch j on the error is (sum A_j)^-1 r_j.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from halfwidth.docstrings import share_arguments
from halfwidth.equation.batch_store import BatchStore
from halfwidth.equation.batch_sums import Sums
from halfwidth.equation.linear_algebra import inverse
from halfwidth.inference.batch_result import in_pairs
from halfwidth.kernels.arrays import Vector


@share_arguments("""
    centre : ndarray of shape (d,)
        Any c, relative to the reference.
""")
@dataclass(frozen=True)
class Equation:
    """The linearised equation of K batches: sum_j A_j c = sum_j B_j, in coordinates relative to a reference.

    Parameters
    ----------
    A, B : ndarray of shape (K, d, d) and (K, d)
        The matrices and right sides of the batches.
    rows : ndarray of shape (K,)
        The rows n_j of the batches.
    """

    A: Vector
    B: Vector
    rows: Vector

    @classmethod
    def of(
        cls,
        store: BatchStore | Sums,
        J: Vector | None = None,
        Q: Vector | None = None,
        D: Vector | None = None,
        share: float = 0.0,
        bend: float = 0.0,
    ) -> Equation:
        """Return the equation of the batches of a store.

        Parameters
        ----------
        store : BatchStore or Sums
            The sums of the batches.
        J : ndarray of shape (d, d), optional
            The slope of the feedback.
        Q, D : ndarray of shape (d,), optional
            What the expansions leave out per row, and the share that rows since the last move get back.
        share : float
            The number k, where the slope is not J but -k H on every piece.
        bend : float
            What of R is taken off, where the slope is J.

        Returns
        -------
        Equation
            One batch for each of the store's, the open one joined to its neighbour while it is short.
        """
        sums = store.closed() if isinstance(store, BatchStore) else store
        A, B, rows = sums.H, sums.b, sums.n[:, None]
        if share != 0.0:
            A, B = (1.0 - share) * A, B - share * sums.U - share**2 * sums.R
        elif J is not None:
            A, B = A + rows[:, :, None] * J, B + sums.T @ J.T - bend * sums.R
        if Q is not None:
            B = B - rows * Q
        if D is not None:
            B = B + sums.moved[:, None] * D
        return cls(A, B, sums.n)

    def solve(self) -> tuple[Vector, Vector]:
        """Return the root and what every batch adds to its error.

        Returns
        -------
        tuple of ndarray
            The root c (d,), relative to the reference, and the influences (K, d).

        Raises
        ------
        NotIdentified
            The sum of the A_j is singular or not finite.
        """
        inverted = inverse(self.A.sum(axis=0))
        centre = inverted @ self.B.sum(axis=0)
        return centre, np.asarray(self.residuals(centre) @ inverted.T)

    def weighted(self, weights: Vector) -> Equation:
        """Return the same equation with batches that count for more or less; their rows stay what they are.

        Parameters
        ----------
        weights : ndarray of shape (K,)
            One for each batch.

        Returns
        -------
        Equation
            With weighted sums.
        """
        return Equation(weights[:, None, None] * self.A, weights[:, None] * self.B, self.rows)

    def residuals(self, centre: Vector) -> Vector:
        """Return the residuals of the batches; matrices in single precision are widened one at a time.

        Returns
        -------
        ndarray of shape (K, d)
            B_j - A_j c.
        """
        if self.A.dtype == np.float64:
            return np.asarray(self.B - self.A @ centre)
        return np.array([b - H @ centre for H, b in zip(self.A, self.B, strict=True)])

    def centred_residuals(self, centre: Vector) -> Vector:
        """Return the residuals less their mean per row.

        Where a correction or a penalty moved the root, the residuals themselves no longer add up to zero.

        Returns
        -------
        ndarray of shape (K, d)
            The centred r_j.
        """
        residuals = self.residuals(centre)
        residuals -= np.outer(self.rows / self.rows.sum(), residuals.sum(axis=0))
        return residuals

    def in_pairs(self) -> Equation:
        """Return the same equation with neighbouring batches merged.

        Returns
        -------
        Equation
            Half as many batches; an odd first one joins the first pair.
        """
        return Equation(*(in_pairs(array) for array in (self.A, self.B, self.rows)))

    def merged(self, most: int) -> Equation:
        """Return the same equation with at most so many batches, neighbours merged.

        Parameters
        ----------
        most : int
            The largest number of batches.

        Returns
        -------
        Equation
            This one, if it has no more.
        """
        return self if len(self.rows) <= most else self.in_pairs().merged(most)
