"""Gradient and Hessian of a loss on given rows at a fixed theta, summed over pieces of them.

With a Hessian, row by row w u u' + c I. Without one, from differences of gradients on the same rows,

    H e_j = (g(theta + h_j e_j) - g(theta)) / h_j,   with the widths h given,
    H s   = (g(theta + s / 1000) - g(theta)) / (1 / 1000).

No symmetry is assumed: in a game the field is not a gradient of anything.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from halfwidth.kernels.arrays import Function, Indices, Vector
from halfwidth.kernels.compile import specialise
from halfwidth.learners.newton.expansion import expand_at
from halfwidth.problems import Problem

SHORT = 1e-3


def row_gradients(gradient: Function) -> Function:
    """The loop over rows that writes each row's gradient; the points are one for all rows, or one for each."""

    def gradient_rows(points: Vector, params: Vector, rows: Vector, grads: Vector) -> None:
        for i in range(rows.shape[0]):
            gradient(points[min(i, points.shape[0] - 1)], rows[i], params, grads[i])

    return gradient_rows


def row_hessian_products(hessian: Function) -> Function:
    """The loop over rows that writes each row's Hessian, at its own point, times its own step."""

    def hessian_product_rows(points: Vector, params: Vector, rows: Vector, steps: Vector, products: Vector) -> None:
        dim = points.shape[1]
        u = np.empty(dim)
        for i in range(rows.shape[0]):
            w, c = hessian(points[i], rows[i], params, u)
            along = 0.0
            for j in range(dim):
                along += u[j] * steps[i, j]
            for j in range(dim):
                products[i, j] = w * along * u[j] + c * steps[i, j]

    return hessian_product_rows


class Field(ABC):
    """Sums over rows of a problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._gradients = specialise(row_gradients, problem.gradient)

    def gradients(self, points: Vector, rows: Vector) -> Vector:
        """Each row's gradient (rows, d), at one point for all or at a point of its own."""
        grads = np.empty((len(rows), self.problem.dim))
        self._gradients(np.atleast_2d(points), np.asarray(self.problem.params), rows, grads)
        return grads

    def gradient(self, theta: Vector, rows: Vector) -> Vector:
        return np.asarray(self.gradients(theta, rows).sum(axis=0))

    @abstractmethod
    def pieces(self, theta: Vector, rows: Vector, edges: Indices) -> tuple[Vector, Vector]:
        """The sums of gradient (pieces, d) and Hessian (pieces, d, d) between the edges."""

    @abstractmethod
    def left_out(self, points: Vector, centre: Vector, rows: Vector) -> Vector:
        """Row by row, g(centre) less its expansion at the row's own point (rows, d)."""

    def hessian(self, theta: Vector, rows: Vector) -> Vector:
        """The sum of the Hessians of all rows."""
        return np.asarray(self.pieces(theta, rows, np.array([0, len(rows)]))[1][0])


class StaticField(Field):
    """With the problem's own Hessian."""

    def pieces(self, theta: Vector, rows: Vector, edges: Indices) -> tuple[Vector, Vector]:
        expansion = expand_at(self.problem, theta, rows)
        return np.add.reduceat(expansion.vectors, edges[:-1]), expansion.hessians(edges)

    def left_out(self, points: Vector, centre: Vector, rows: Vector) -> Vector:
        bends = np.empty((len(rows), self.problem.dim))
        loop = specialise(row_hessian_products, self.problem.hessian)
        loop(points, np.asarray(self.problem.params), rows, centre - points, bends)
        return self.gradients(centre, rows) - self.gradients(points, rows) - bends


class DifferencedField(Field):
    """With gradients only; `widths` are those of the differences."""

    def __init__(self, problem: Problem, widths: Vector) -> None:
        super().__init__(problem)
        self.widths = widths

    def pieces(self, theta: Vector, rows: Vector, edges: Indices) -> tuple[Vector, Vector]:
        dim, count = self.problem.dim, len(edges) - 1
        here = np.add.reduceat(self.gradients(theta, rows), edges[:-1])
        columns = np.empty((count, dim, dim))
        for j in range(dim):
            there = theta.copy()
            there[j] += self.widths[j]
            moved = np.add.reduceat(self.gradients(there, rows), edges[:-1])
            columns[:, :, j] = (moved - here) / (there[j] - theta[j])
        return here, columns

    def left_out(self, points: Vector, centre: Vector, rows: Vector) -> Vector:
        here, there = self.gradients(points, rows), self.gradients(centre, rows)
        short = self.gradients(points + SHORT * (centre - points), rows)
        return np.asarray((there - here - (short - here) / SHORT) / (1.0 - SHORT))
