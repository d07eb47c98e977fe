"""Columns brought to a common scale inside, results given back on the user's.

    z = (x - centre) / scale,   eta = a + b'z  =  (a - sum_j b_j centre_j / scale_j) + sum_j (b_j / scale_j) x_j

Centre and scale come from the first rows. They need not be right later on: they only keep sums of squares from losing
digits. A column that does not move in the first rows gets the scale of its own size, or one. Where a few rows make
nearly all of a column's spread, as sentinels like 99999999 do, they have no say (`robust`): in their units all other
rows would be at one point, and the coefficient beyond what any solver walks to. Least squares need one step in any
unit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from halfwidth.kernels.arrays import Vector

_STILL = 1e-10
_FAR = 10.0
"""Rows that make a scale this many times that of the others have no say in it."""
_FAR_SHARE = 0.05
"""The largest share of such rows."""


class Scaling(NamedTuple):
    """An affine map of the columns; with an intercept the first internal coefficient belongs to a column of ones."""

    centre: Vector
    """What is subtracted from each column; zero without an intercept."""
    scale: Vector
    """What each column is then divided by."""
    intercept: bool
    equations: int = 1
    """How many linear predictors a row has, each with coefficients of its own."""

    @classmethod
    def of(
        cls, X: Vector, weight: Vector | None, intercept: bool, equations: int = 1, *, robust: bool = False
    ) -> Scaling:
        """Take weighted centre and scale from these rows; if `robust`, from all but far ones."""
        if not X.flags.c_contiguous:  # the order of sums, and with it their last bits, must not depend on the caller
            X = np.ascontiguousarray(X)
        share = np.full(len(X), 1.0 / len(X)) if weight is None or not weight.sum() > 0.0 else weight / weight.sum()
        centre = share @ X if intercept else np.zeros(X.shape[1])
        scale = np.sqrt(share @ (X - centre) ** 2)
        size = np.max(np.abs(X[share > 0.0]), axis=0)
        still = scale <= _STILL * size
        scale[still] = np.where(size[still] > 0.0, size[still], 1.0)
        far = np.maximum(X.max(axis=0) - centre, centre - X.min(axis=0)) > 0.5 * _FAR * scale if robust else []
        for j in np.flatnonzero(far):
            centre[j], scale[j] = _without_far_rows(X[share > 0.0, j], centre[j], scale[j], intercept)
        return cls(centre, scale, intercept, equations)

    @property
    def columns(self) -> int:
        """Internal ones, with that of the intercept."""
        return self.centre.size + self.intercept

    def apply(self, X: Vector) -> Vector:
        """The internal rows, with a leading one if there is an intercept; column by column, whatever the order of X."""
        k = int(self.intercept)
        Z = np.empty((self.columns, len(X))).T
        Z[:, :k] = 1.0
        inside = Z[:, k:]
        if X.strides[0] < X.strides[1]:  # column by column, as `inside`: the copy subtracts on the way
            np.subtract(X, self.centre if k else 0.0, out=inside)
        else:
            np.copyto(inside, X)
            if k:
                inside -= self.centre
        inside *= 1.0 / self.scale
        return Z

    @property
    def matrix(self) -> Vector:
        """The map T from internal to user coefficients: user = T internal."""
        k = int(self.intercept)
        T = np.zeros((self.columns, self.columns))
        np.fill_diagonal(T, np.append(np.ones(k), 1.0 / self.scale))
        if self.intercept:
            T[0, 1:] = -self.centre / self.scale
        return T if self.equations == 1 else np.asarray(np.kron(np.eye(self.equations), T), dtype=np.float64)

    def user_coefficients(self, theta: Vector) -> Vector:
        """The matrix times internal coefficients, or columns of them, without the matrix."""
        outside = theta.reshape(self.equations, self.columns, -1).copy()
        outside[:, int(self.intercept) :] /= self.scale[:, None]
        if self.intercept:
            outside[:, 0] -= self.centre @ outside[:, 1:]
        return outside.reshape(theta.shape)

    def inverse(self, theta: Vector) -> Vector:
        """Internal coefficients from the user's."""
        k, parts = int(self.intercept), theta.reshape(self.equations, -1)
        inside = np.empty_like(parts)
        inside[:, k:] = parts[:, k:] * self.scale
        if self.intercept:
            inside[:, 0] = parts[:, 0] + parts[:, 1:] @ self.centre
        return inside.ravel()

    def from_other(self, other: Scaling) -> Vector:
        """M with M times the internal coefficients of another scaling those of this one, for each equation."""
        k = int(self.intercept)
        M = np.eye(self.columns)
        M[k:, k:] = np.diag(self.scale / other.scale)
        if k:
            M[0, 1:] = (self.centre - other.centre) / other.scale
        return M


def _without_far_rows(x: Vector, centre: float, scale: float, intercept: bool) -> tuple[float, float]:
    """Centre and scale of all but the farthest few of these values, where those make nearly all of the scale."""
    order = np.argsort(np.abs(x - np.median(x)), kind="stable")
    near = x[order[: len(x) - max(1, int(_FAR_SHARE * len(x)))]]
    if not len(near):
        return centre, scale
    middle = float(near.mean()) if intercept else 0.0
    rest = float(np.sqrt(np.square(near - middle).mean()))
    still = rest <= _STILL * float(np.abs(near).max())
    return (centre, scale) if still or scale <= _FAR * rest else (middle, rest)
