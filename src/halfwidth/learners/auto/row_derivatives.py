"""Sums over rows of a problem's own derivative, for each form that it can have.

| the problem has   | a row's derivative at fixed data      | summed by                                  |
|-------------------|---------------------------------------|--------------------------------------------|
| `hessian`         | w u u' + c I                          | one product, of which a triangle is made   |
| `jacobian`        | w u v' + c I, not symmetric           | one product                                |
| `jacobian_matrix` | any matrix                            | addition                                   |

All have the signature add_up(derivative, point, params, rows, scratch, total) and overwrite the total.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Function, Indices, Vector
from halfwidth.kernels.compile import jitable
from halfwidth.kernels.products import add_symmetric
from halfwidth.problems import Problem


class Scratch(NamedTuple):
    """Space for what the rows write: two vectors for each of them, and a matrix."""

    left: Vector
    right: Vector
    matrix: Vector


@jitable
def sum_hessians(
    hessian: Function, point: Vector, params: Vector, rows: Vector, scratch: Scratch, total: Vector
) -> None:
    """The sum of w u u' + c I."""
    dim, shift = point.shape[0], 0.0
    for i in range(rows.shape[0]):
        u = scratch.left[i]
        weight, c = hessian(point, rows[i], params, u)
        shift += c
        for j in range(dim):
            scratch.right[i, j] = weight * u[j]
    total[:] = 0.0
    add_symmetric(scratch.left[: rows.shape[0]], scratch.right[: rows.shape[0]], total.T)
    for i in range(dim):
        total[i, i] += shift
        for j in range(i):
            total[j, i] = total[i, j]


@jitable
def sum_jacobians(
    jacobian: Function, point: Vector, params: Vector, rows: Vector, scratch: Scratch, total: Vector
) -> None:
    """The sum of w u v' + c I."""
    dim, shift = point.shape[0], 0.0
    for i in range(rows.shape[0]):
        u = scratch.left[i]
        weight, c = jacobian(point, rows[i], params, u, scratch.right[i])
        shift += c
        for j in range(dim):
            u[j] *= weight
    total[:] = np.dot(scratch.left[: rows.shape[0]].T, scratch.right[: rows.shape[0]])
    for i in range(dim):
        total[i, i] += shift


@jitable
def sum_matrices(
    matrix: Function, point: Vector, params: Vector, rows: Vector, scratch: Scratch, total: Vector
) -> None:
    """The sum of the rows' matrices."""
    total[:] = 0.0
    for i in range(rows.shape[0]):
        matrix(point, rows[i], params, scratch.matrix)
        total += scratch.matrix


_SUMMED_BY = {"hessian": sum_hessians, "jacobian": sum_jacobians, "jacobian_matrix": sum_matrices}


def summing(problem: Problem) -> tuple[Function, Function]:
    """How the problem's derivative is summed, and the derivative itself."""
    role = problem.derivative
    if role is None:
        raise InputError(f"problem {problem.name!r} has neither a Hessian nor a Jacobian")
    return _SUMMED_BY[role], getattr(problem, role)


def piece_derivatives(add_up: Function, derivative: Function) -> Function:
    """The loop over pieces of rows, between edges, that sums the derivative in each."""

    def derivative_pieces(
        point: Vector, params: Vector, rows: Vector, edges: Indices, scratch: Scratch, totals: Vector
    ) -> None:
        for b in range(edges.shape[0] - 1):
            add_up(derivative, point, params, rows[edges[b] : edges[b + 1]], scratch, totals[b])

    return derivative_pieces


def row_products(add_up: Function, derivative: Function) -> Function:
    """The loop over rows that writes each row's derivative, at its own point, times its own step."""

    def product_rows(
        points: Vector, params: Vector, rows: Vector, steps: Vector, scratch: Scratch, products: Vector
    ) -> None:
        dim = points.shape[1]
        total = np.empty((dim, dim))
        for i in range(rows.shape[0]):
            add_up(derivative, points[i], params, rows[i : i + 1], scratch, total)
            products[i] = np.dot(total, steps[i])

    return product_rows
