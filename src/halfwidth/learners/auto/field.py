"""A problem's field and its derivative on given rows at a fixed theta, summed over pieces of them.

With a Hessian, row by row w u u' + c I; with a Jacobian, w u v' + c I or any matrix. Without one, from differences of
the field on the same rows,

    H e_j = (g(theta + h_j e_j) - g(theta)) / h_j,   with the widths h given,
    H s   = (g(theta + s / 1000) - g(theta)) / (1 / 1000).

No symmetry is assumed: in a game the field is not a gradient of anything.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from halfwidth.kernels.arrays import Indices, Vector
from halfwidth.kernels.compile import specialise
from halfwidth.learners.auto.piece_sums import (
    differenced_pieces,
    expanded_pieces,
    gradient_moments,
    row_gradients,
    row_hessian_products,
)
from halfwidth.learners.auto.row_derivatives import Scratch, piece_derivatives, row_products, summing
from halfwidth.learners.newton.expansion import expand_at
from halfwidth.problems import Problem

SHORT = 1e-3
_AT_ONCE = 512


class Field(ABC):
    """Sums over rows of a problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._gradients = specialise(row_gradients, problem.gradient)
        self._moments = specialise(gradient_moments, problem.gradient)

    @property
    def params(self) -> Vector:
        return np.asarray(self.problem.params)

    def gradients(self, points: Vector, rows: Vector) -> Vector:
        """Each row's gradient (rows, d), at one point for all or at a point of its own."""
        grads = np.zeros((len(rows), self.problem.dim))
        self._gradients(np.atleast_2d(points), self.params, rows, grads)
        return grads

    def moments(self, theta: Vector, rows: Vector) -> tuple[Vector, Vector]:
        """The sums over the rows of the gradient and of its squares."""
        total, squares = np.zeros((2, self.problem.dim))
        self._moments(theta, self.params, rows, total, squares)
        return total, squares

    def gradient(self, theta: Vector, rows: Vector) -> Vector:
        """The sum over the rows of the gradient."""
        return self.moments(theta, rows)[0]

    @abstractmethod
    def pieces(self, theta: Vector, rows: Vector, edges: Indices) -> tuple[Vector, Vector]:
        """The sums of gradient (pieces, d) and Hessian (pieces, d, d) between the edges."""

    @abstractmethod
    def left_out(self, points: Vector, centre: Vector, rows: Vector) -> Vector:
        """Row by row, g(centre) less its expansion at the row's own point (rows, d)."""

    @abstractmethod
    def curvatures(self, theta: Vector, rows: Vector, weights: Vector) -> Vector:
        """The diagonal of the weighted sum of the rows' Hessians (d,)."""

    @abstractmethod
    def weighted(self, theta: Vector, rows: Vector, weights: Vector, edges: Indices) -> Vector:
        """The weighted sums of the rows' Hessians (pieces, d, d) between the edges."""

    def hessian(self, theta: Vector, rows: Vector) -> Vector:
        """The sum of the Hessians of all rows."""
        return np.asarray(self.pieces(theta, rows, np.array([0, len(rows)]))[1][0])


class StaticField(Field):
    """With the problem's own Hessian."""

    def pieces(self, theta: Vector, rows: Vector, edges: Indices) -> tuple[Vector, Vector]:
        dim, count = self.problem.dim, len(edges) - 1
        g, H = np.zeros((count, dim)), np.zeros((count, dim, dim))
        specialise(expanded_pieces, self.problem.gradient, self.problem.hessian)(theta, self.params, rows, edges, g, H)
        return g, H

    def left_out(self, points: Vector, centre: Vector, rows: Vector) -> Vector:
        bends = np.empty((len(rows), self.problem.dim))
        loop = specialise(row_hessian_products, self.problem.hessian)
        loop(points, self.params, rows, centre - points, bends)
        return self.gradients(centre, rows) - self.gradients(points, rows) - bends

    def curvatures(self, theta: Vector, rows: Vector, weights: Vector) -> Vector:
        expansion = expand_at(self.problem, theta, rows)
        return np.asarray((weights * expansion.weights) @ np.square(expansion.directions) + weights @ expansion.shifts)

    def weighted(self, theta: Vector, rows: Vector, weights: Vector, edges: Indices) -> Vector:
        expansion = expand_at(self.problem, theta, rows)
        own, totals = expansion.directions * (weights * expansion.weights)[:, None], []
        for a, b in pairwise(edges.tolist()):
            totals.append(own[a:b].T @ expansion.directions[a:b])
            totals[-1].flat[:: len(theta) + 1] += weights[a:b] @ expansion.shifts[a:b]
        return np.array(totals)


class JacobianField(Field):
    """With the problem's own Jacobian, which need not be symmetric."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self._pieces = specialise(piece_derivatives, *summing(problem))
        self._products = specialise(row_products, *summing(problem))

    def pieces(self, theta: Vector, rows: Vector, edges: Indices) -> tuple[Vector, Vector]:
        dim = self.problem.dim
        totals = np.empty((len(edges) - 1, dim, dim))
        longest = int(np.diff(edges).max(initial=1))
        self._pieces(theta, self.params, rows, edges, self._scratch(longest), totals)
        return np.add.reduceat(self.gradients(theta, rows), edges[:-1]), totals

    def left_out(self, points: Vector, centre: Vector, rows: Vector) -> Vector:
        bends = np.empty((len(rows), self.problem.dim))
        self._products(points, self.params, rows, centre - points, self._scratch(1), bends)
        return self.gradients(centre, rows) - self.gradients(points, rows) - bends

    def curvatures(self, theta: Vector, rows: Vector, weights: Vector) -> Vector:
        found = np.zeros(len(theta))
        for part, H in self._row_by_row(theta, rows):
            found += weights[part] @ np.diagonal(H, axis1=1, axis2=2)
        return found

    def weighted(self, theta: Vector, rows: Vector, weights: Vector, edges: Indices) -> Vector:
        totals = np.zeros((len(edges) - 1, len(theta), len(theta)))
        piece = np.searchsorted(edges, np.arange(len(rows)), side="right") - 1
        for part, H in self._row_by_row(theta, rows):
            np.add.at(totals, piece[part], weights[part, None, None] * H)
        return totals

    def _row_by_row(self, theta: Vector, rows: Vector) -> Iterator[tuple[slice, Vector]]:
        """The derivative of every row, some rows at a time."""
        for at in range(0, len(rows), _AT_ONCE):
            part = slice(at, at + _AT_ONCE)
            yield part, self.pieces(theta, rows[part], np.arange(len(rows[part]) + 1))[1]

    def _scratch(self, rows: int) -> Scratch:
        dim = self.problem.dim
        return Scratch(np.empty((rows, dim)), np.empty((rows, dim)), np.empty((dim, dim)))


class DifferencedField(Field):
    """With gradients only; `widths` are those of the differences."""

    def __init__(self, problem: Problem, widths: Vector) -> None:
        super().__init__(problem)
        self.widths = widths

    def pieces(self, theta: Vector, rows: Vector, edges: Indices) -> tuple[Vector, Vector]:
        dim, count = self.problem.dim, len(edges) - 1
        g, H = np.empty((count, dim)), np.empty((count, dim, dim))
        specialise(differenced_pieces, self.problem.gradient)(theta, self.params, rows, edges, self.widths, g, H)
        return g, H

    def left_out(self, points: Vector, centre: Vector, rows: Vector) -> Vector:
        here, there = self.gradients(points, rows), self.gradients(centre, rows)
        short = self.gradients(points + SHORT * (centre - points), rows)
        return np.asarray((there - here - (short - here) / SHORT) / (1.0 - SHORT))

    def curvatures(self, theta: Vector, rows: Vector, weights: Vector) -> Vector:
        found, here = np.empty(len(theta)), weights @ self.gradients(theta, rows)
        for j, width in enumerate(self.widths):
            there = theta.copy()
            there[j] += width
            found[j] = ((weights @ self.gradients(there, rows)) - here)[j] / (there[j] - theta[j])
        return found

    def weighted(self, theta: Vector, rows: Vector, weights: Vector, edges: Indices) -> Vector:
        totals = np.empty((len(edges) - 1, len(theta), len(theta)))
        here = self.gradients(theta, rows)
        for j, width in enumerate(self.widths):
            there = theta.copy()
            there[j] += width
            moved = (self.gradients(there, rows) - here) * (weights / (there[j] - theta[j]))[:, None]
            totals[:, :, j] = np.add.reduceat(moved, edges[:-1])
        return totals


def field_of(problem: Problem, widths: Vector, *, differences: bool) -> Field:
    """With the problem's own derivative, or with differences of these widths."""
    if differences:
        return DifferencedField(problem, widths)
    return StaticField(problem) if problem.derivative == "hessian" else JacobianField(problem)
