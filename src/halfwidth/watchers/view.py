"""What a watcher keeps of the covariance: all of it, its diagonal, or its projection on a few directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.checks import check_count, check_real
from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.products import mirrored
from halfwidth.state.containers import Optional
from halfwidth.state.fields import Array, Field, Shape, State, Text, Whole
from halfwidth.state.schema import Relation

ViewName = Literal["full", "diagonal", "projection"]

VIEW_FIELDS: dict[str, Field] = {
    "dim": Whole(1, doc="coefficients of an iterate"),
    "view": Text(("full", "diagonal", "projection"), doc="what is kept of the covariance"),
    "projection": Optional(Array(("size", "dim")), doc="the directions that are kept, one in each row"),
}
"""What a state says about its view; `size` is `kept_size` in the schemas that use them."""

VIEW_RELATION = Relation(
    "have a projection of at least one row exactly when `view` is 'projection'",
    lambda s: (s["projection"] is not None and len(s["projection"]) > 0) == (s["view"] == "projection"),
)


def kept_size(state: State) -> int:
    """How many numbers of each row a state's view keeps."""
    projection = state["projection"]
    return int(state["dim"]) if projection is None else len(projection)


def scatter_shape(state: State) -> Shape:
    """The shape of a sum of s s' under a state's view."""
    return ("size",) if state["view"] == "diagonal" else ("size", "size")


def symmetric(name: str) -> Relation:
    """That a matrix of the state is its own transpose; a diagonal is."""
    return Relation(f"have a symmetric `{name}`", lambda s: s[name] is None or np.array_equal(s[name], s[name].T))


@dataclass(frozen=True)
class View:
    """Maps iterates in R^dim to what is kept track of, `size` numbers per row."""

    name: ViewName
    dim: int
    projection: Vector | None = None

    @classmethod
    def of(cls, name: ViewName, dim: int, projection: ArrayLike | None) -> View:
        if name not in ("full", "diagonal", "projection"):
            raise InputError.of("view", "be 'full', 'diagonal' or 'projection'", name)
        check_count("dim", dim)
        if (projection is None) != (name != "projection"):
            raise InputError.of("projection", "be given exactly when view='projection'", projection)
        if projection is None:
            return cls(name, dim)
        matrix = check_real("projection", projection).copy()
        if matrix.ndim != 2 or matrix.shape[1] != dim or not matrix.size or not np.isfinite(matrix).all():
            raise InputError.of("projection", f"be a finite array of shape (p, {dim})", matrix.shape)
        return cls(name, dim, matrix)

    @property
    def size(self) -> int:
        return self.dim if self.projection is None else int(self.projection.shape[0])

    def apply(self, thetas: Vector) -> Vector:
        return thetas if self.projection is None else thetas @ self.projection.T

    def same_as(self, other: View) -> bool:
        if (self.name, self.dim) != (other.name, other.dim):
            return False
        if self.projection is None or other.projection is None:
            return self.projection is other.projection
        return np.array_equal(self.projection, other.projection)


class Scatter:
    """A running sum of s s' over rows s: the whole matrix by blocked products, or its diagonal only."""

    def __init__(self, size: int, diagonal: bool) -> None:
        self._sum = np.zeros(size if diagonal else (size, size), order="F")

    @property
    def diagonal(self) -> bool:
        return self._sum.ndim == 1

    @property
    def shape(self) -> tuple[int, ...]:
        return self._sum.shape

    @property
    def matrix(self) -> Vector:
        """The sum itself, column-major, for kernels that add to its upper triangle."""
        return self._sum

    def add(self, rows: Vector) -> None:
        """Add s s' for every row s: one symmetric rank-k product instead of k rank-one updates."""
        if self.diagonal:
            self._sum += np.einsum("ij,ij->j", rows, rows)
            return
        from scipy.linalg.blas import dsyrk

        # The upper triangle of a column-major matrix is updated in place.
        self._sum = dsyrk(1.0, rows.T, beta=1.0, c=self._sum, overwrite_c=1)

    def shift(self, step: Vector, cross: Vector, weight: float) -> None:
        """Turn sum s s' into sum (s + l step)(s + l step)', where cross = sum l s and weight = sum l^2."""
        if self.diagonal:
            self._sum += 2.0 * cross * step + weight * step**2
        else:
            mixed = np.outer(cross, step)
            self._sum += mixed + mixed.T + weight * np.outer(step, step)

    def read(self) -> Vector:
        """The sum, as a fresh (size, size) matrix or (size,) diagonal."""
        if self.diagonal:
            return self._sum.copy()
        return mirrored(self._sum)

    @classmethod
    def holding(cls, value: Vector) -> Scatter:
        scatter = cls(value.shape[0], value.ndim == 1)
        scatter._sum = np.array(value, dtype=np.float64, order="F")
        return scatter
