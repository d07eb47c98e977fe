"""Compiled sums over the rows of given chunks: gradients and Hessians of pieces, moments of gradients.

The Hessians of a piece, w u u' + c I row by row, are added up by products of sqrt(|w|) u over blocks of rows that stay
in the processor's cache. Differences make one column after the other, each from gradient sums at a shifted point.
"""

from __future__ import annotations

import numpy as np

from halfwidth.kernels.arrays import Function, Indices, Vector
from halfwidth.kernels.products import add_square

_BLOCK_ROWS = 128


def expanded_pieces(gradient: Function, hessian: Function) -> Function:
    """The loop that adds up gradient and Hessian between the edges."""

    def sum_pieces(point: Vector, params: Vector, rows: Vector, edges: Indices, g: Vector, H: Vector) -> None:
        dim = point.shape[0]
        grad, total, block = np.zeros(dim), np.empty(dim), np.empty((_BLOCK_ROWS, dim))
        for piece in range(edges.shape[0] - 1):
            shift = 0.0
            total[:] = 0.0
            for first in range(edges[piece], edges[piece + 1], _BLOCK_ROWS):
                front, back = 0, _BLOCK_ROWS  # rows that curve downwards are put at the end of the block
                for i in range(first, min(first + _BLOCK_ROWS, edges[piece + 1])):
                    row, u = rows[i], block[front]
                    gradient(point, row, params, grad)
                    w, c = hessian(point, row, params, u)
                    shift += c
                    for j in range(dim):
                        total[j] += grad[j]
                    root = np.sqrt(abs(w))
                    if w < 0.0:
                        back -= 1
                        for j in range(dim):
                            block[back, j] = root * u[j]
                    else:
                        front += 1
                        for j in range(dim):
                            u[j] *= root
                add_square(block[:front], 1.0, H[piece].T)
                if back < _BLOCK_ROWS:
                    add_square(block[back:], -1.0, H[piece].T)
            for i in range(dim):
                g[piece, i] += total[i]
                H[piece, i, i] += shift
                for j in range(i):
                    H[piece, j, i] = H[piece, i, j]

    return sum_pieces


def differenced_pieces(gradient: Function) -> Function:
    """The same with Hessians from differences of the gradient, of the widths given."""

    def difference_pieces(
        point: Vector, params: Vector, rows: Vector, edges: Indices, widths: Vector, g: Vector, H: Vector
    ) -> None:
        dim = point.shape[0]
        grad, moved, there = np.zeros(dim), np.empty(dim), point.copy()
        for piece in range(edges.shape[0] - 1):
            for column in range(-1, dim):
                if column >= 0:
                    there[column] = point[column] + widths[column]
                moved[:] = 0.0
                for i in range(edges[piece], edges[piece + 1]):
                    gradient(there, rows[i], params, grad)
                    for j in range(dim):
                        moved[j] += grad[j]
                if column < 0:
                    g[piece] = moved
                else:
                    width = there[column] - point[column]
                    for j in range(dim):
                        H[piece, j, column] = (moved[j] - g[piece, j]) / width
                    there[column] = point[column]

    return difference_pieces


def gradient_moments(gradient: Function) -> Function:
    """The loop that adds up gradients, and their squares, at one point."""

    def add_moments(point: Vector, params: Vector, rows: Vector, total: Vector, squares: Vector) -> None:
        grad = np.zeros(point.shape[0])
        for i in range(rows.shape[0]):
            gradient(point, rows[i], params, grad)
            for j in range(grad.shape[0]):
                total[j] += grad[j]
                squares[j] += grad[j] * grad[j]

    return add_moments


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
