"""Gradient and Hessian of a loss, summed over given rows at a fixed theta: the static field.

With a Hessian, row by row w u u' + c I. Without one, from differences of gradients on the same rows:

    H s    = 10 (g(theta + s/10) - g(theta)),
    H e_j  = (g(theta + h_j e_j) - g(theta)) / h_j,   h_j = 1e-4 max(1, |theta_j|).

No symmetry is assumed: in a game the field is not a gradient of anything.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from halfwidth.kernels.arrays import Function
from halfwidth.kernels.compile import specialise
from halfwidth.problems import Problem

Vector = NDArray[np.float64]

_SPACING = 1e-4
_FRACTION = 0.1


def row_gradients(gradient: Function) -> Function:
    """The loop over rows that writes each row's gradient."""

    def gradient_rows(theta, params, rows, grads):  # type: ignore[no-untyped-def]
        for i in range(rows.shape[0]):
            gradient(theta, rows[i], params, grads[i])

    return gradient_rows


def row_hessians(hessian: Function) -> Function:
    """The loop over rows that writes each row's u and w; returns the sum of the c."""

    def hessian_rows(theta, params, rows, directions, weights):  # type: ignore[no-untyped-def]
        shift = 0.0
        for i in range(rows.shape[0]):
            weights[i], more = hessian(theta, rows[i], params, directions[i])
            shift += more
        return shift

    return hessian_rows


class Field(ABC):
    """Sums over rows; `hessian` is (d, d) and `along` its product with a step."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._gradients = specialise(row_gradients, problem.gradient)

    def gradients(self, theta: Vector, rows: Vector) -> Vector:
        """Each row's gradient, (rows, d)."""
        grads = np.empty((len(rows), self.problem.dim))
        self._gradients(theta, self.problem.params, rows, grads)
        return grads

    def gradient(self, theta: Vector, rows: Vector) -> Vector:
        return np.asarray(self.gradients(theta, rows).sum(axis=0))

    @abstractmethod
    def hessian(self, theta: Vector, rows: Vector) -> Vector: ...

    @abstractmethod
    def along(self, theta: Vector, step: Vector, rows: Vector) -> Vector: ...


class StaticField(Field):
    """With the problem's own Hessian."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self._hessians = specialise(row_hessians, problem.hessian)

    def hessian(self, theta: Vector, rows: Vector) -> Vector:
        directions, weights, shift = self._parts(theta, rows)
        return np.asarray((directions.T * weights) @ directions + shift * np.eye(self.problem.dim))

    def along(self, theta: Vector, step: Vector, rows: Vector) -> Vector:
        directions, weights, shift = self._parts(theta, rows)
        return np.asarray((weights * (directions @ step)) @ directions + shift * step)

    def _parts(self, theta: Vector, rows: Vector) -> tuple[Vector, Vector, float]:
        directions, weights = np.empty((len(rows), self.problem.dim)), np.empty(len(rows))
        shift = self._hessians(theta, self.problem.params, rows, directions, weights)
        return directions, weights, float(shift)


class DifferencedField(Field):
    """With gradients only."""

    def hessian(self, theta: Vector, rows: Vector) -> Vector:
        here = self.gradient(theta, rows)
        columns = np.empty((self.problem.dim, self.problem.dim))
        for j in range(self.problem.dim):
            there = theta.copy()
            there[j] += _SPACING * max(1.0, abs(theta[j]))
            columns[:, j] = (self.gradient(there, rows) - here) / (there[j] - theta[j])
        return columns

    def along(self, theta: Vector, step: Vector, rows: Vector) -> Vector:
        there = self.gradient(theta + _FRACTION * step, rows)
        return np.asarray((there - self.gradient(theta, rows)) / _FRACTION)
