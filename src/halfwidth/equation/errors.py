"""Errors of the root: jackknifed influences under a quadratic spectral kernel, where data do not respond to theta.

Short batches hold their own noise and the kernel what is correlated across them (`halfwidth.inference.longrun`); the
jackknife has the factors n / (n - d) and 1 / (1 - mean kernel) in it (`halfwidth.equation.jackknife`), but not what the
kernel misses of dependence in small samples (`halfwidth.inference.autoregressive_bias`). The bandwidth also follows a
slow dependence under noise (`halfwidth.inference.slow_dependence`). Groups are independent: no kernel. Where one batch
knows much about a direction and dependence reaches beyond one batch, batches are merged up to the bandwidth first, as
deleting one of them is else no deletion of what it knows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfwidth.equation.equation import Equation
from halfwidth.equation.jackknife import FEWEST_KEPT, MOST_FLOPS, Along, Deletions
from halfwidth.equation.linear_algebra import Whitening, whitening
from halfwidth.inference.autoregressive_bias import shortfall
from halfwidth.inference.batch_result import in_pairs
from halfwidth.inference.longrun import kernel_weights, toeplitz_product
from halfwidth.inference.slow_dependence import Reach, reach
from halfwidth.kernels.arrays import Vector

HIGH_SHARE = 0.25
LONG = 3.0
"""A bandwidth of this many batches is dependence; independent ones show one or two by chance."""
FEWEST_MERGED = 16
TAKES_PART = 1e-5
_SAME = 1e-9


@dataclass(frozen=True)
class Errors:
    """Variances and degrees of freedom of any direction, given in the coordinates of the equation."""

    deletions: Deletions
    whitened: Whitening
    bandwidth: float
    merged: int
    """How many batches of the store make one batch here."""
    transfer: Vector | None = None
    """A_info^-1 A, where the information at the root is not the sum A of the batches' matrices."""
    level: int = 0
    """The bandwidth was found in sums over 2^level batches (`halfwidth.inference.slow_dependence`)."""

    @property
    def batches(self) -> int:
        return len(self.deletions.s)

    def covariance(self, directions: Vector) -> Vector:
        """Of the directions (m, d) times the root."""
        return self.along(directions).covariance()

    def degrees_of_freedom(self, directions: Vector) -> Vector:
        return self.deletions.degrees_of_freedom(self._moved(directions), self.bandwidth)

    def shares(self, directions: Vector) -> Vector:
        """The largest share of one batch in the information about each direction."""
        return self.along(directions).deleted.shares

    def undetermined(self, directions: Vector) -> NDArray[np.bool_]:
        """Which directions the rows do not determine, or only those of one batch."""
        return self.along(directions).undetermined

    def along(self, directions: Vector) -> DirectionErrors:
        """Everything about the directions (m, d); to be kept where several of its parts are wanted."""
        deleted = self.deletions.along(self._moved(directions))
        return DirectionErrors(deleted, unseen(self.whitened, directions) | deleted.lone, self.bandwidth, self.level)

    def _moved(self, directions: Vector) -> Vector:
        return directions if self.transfer is None else np.asarray(directions @ self.transfer)


@dataclass(frozen=True)
class DirectionErrors:
    """Variances and degrees of freedom of given directions."""

    deleted: Along
    undetermined: NDArray[np.bool_]
    """Which directions the rows do not determine, or only those of one batch."""
    bandwidth: float
    level: int

    def covariance(self) -> Vector:
        """Of the directions times the root."""
        u = self.deleted.influences
        if self.bandwidth > 0.0:
            u = u * np.sqrt(shortfall(u, self.deleted.information, self.bandwidth, self.level))
        smoothed = toeplitz_product(kernel_weights(len(u), self.bandwidth), u)
        V = u.T @ smoothed
        return np.asarray(0.5 * (V + V.T))

    def degrees_of_freedom(self) -> Vector:
        return self.deleted.degrees_of_freedom(self.bandwidth)


def unseen(whitened: Whitening, directions: Vector) -> NDArray[np.bool_]:
    """Which directions reach into what the rows do not determine."""
    if not whitened.null.shape[1]:
        return np.zeros(len(directions), dtype=np.bool_)
    scaled = directions * whitened.D
    reach = np.square(scaled @ whitened.null).sum(axis=1)
    return np.asarray(reach > TAKES_PART**2 * np.square(scaled).sum(axis=1))


def jackknife_errors(
    equation: Equation,
    residuals: Vector,
    information: Vector,
    *,
    penalty: Vector | None = None,
    independent: bool = False,
) -> Errors:
    """Errors for batches in time order, or for independent ones (buckets of groups).

    Parameters
    ----------
    equation : Equation
        Whose matrices are deleted, batch by batch.
    residuals : ndarray
        Of the batches at the root (K, d), adding up to zero.
    information : ndarray
        The derivative of the equation at the root, the penalty included. The batches' matrices may belong to other
        points: leverage is taken from them, and the inverse from here.
    penalty : ndarray, optional
        What the sum of the batches' matrices lacks.
    independent : bool
        Whether no kernel is needed.
    """
    r, merged, size = residuals, 1, len(information)
    expanded = equation.A.sum(axis=0) if penalty is None else equation.A.sum(axis=0) + penalty
    whitened = whitening(information)
    own, transfer = whitened, None
    if not np.allclose(expanded, information, rtol=_SAME, atol=0.0):
        own, transfer = whitening(expanded), np.asarray(whitened.C @ whitened.C.T @ expanded)
    while len(r) > FEWEST_KEPT and len(r) * size**3 > MOST_FLOPS and not independent:
        equation, r, merged = equation.in_pairs(), in_pairs(r), 2 * merged
    found = Reach(0.0, 0) if independent else reach_of(r, whitened)
    deletions = Deletions.of(equation.A, r, own)
    left, before = found.bandwidth, merged
    if left > LONG and deletions.shares(np.eye(size)).max(initial=0.0) > HIGH_SHARE:
        while left > 1.0 and len(r) >= 2 * FEWEST_MERGED:
            equation, r, merged, left = equation.in_pairs(), in_pairs(r), 2 * merged, 0.5 * left
    if merged > before:
        found, deletions = reach_of(r, whitened), Deletions.of(equation.A, r, own)
    return Errors(deletions, whitened, found.bandwidth, merged, transfer, found.level)


def reach_of(residuals: Vector, whitened: Whitening) -> Reach:
    """How far dependence reaches, for batches with these residuals."""
    return reach(residuals @ whitened.C @ whitened.C.T)
