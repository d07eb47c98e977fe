"""A problem's rows expanded at points of the parameter space, and their batches.

At the point p_i row i has the gradient g_i and the Hessian H_i = w_i u_i u_i' + c_i I. Around it the gradient is

    g_i + H_i (theta - p_i) = H_i (theta - origin) - b_i,   b_i = H_i (p_i - origin) - g_i,

so that sums of H_i and b_i over batches are all that the equation sum_i b_i - H_i (c - origin) = 0, and the residual of
any batch at its root c, need (`halfwidth.equation.batch_store`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfwidth.equation import BatchStore, capacity_for
from halfwidth.kernels.arrays import Function, Vector
from halfwidth.kernels.compile import specialise
from halfwidth.problems import Problem

_MOST_BATCHES = 256
_MOST_NUMBERS = 2**20


def expand(gradient: Function, hessian: Function) -> Function:
    """The loop over rows that writes each row's g, u, w and c at one point."""

    def expand_rows(
        point: Vector,
        params: Vector,
        rows: Vector,
        grads: Vector,
        directions: Vector,
        weights: Vector,
        shifts: Vector,
    ) -> None:
        for i in range(rows.shape[0]):
            gradient(point, rows[i], params, grads[i])
            weights[i], shifts[i] = hessian(point, rows[i], params, directions[i])

    return expand_rows


@dataclass(frozen=True)
class Expansion:
    """Row by row: a vector (g or b), u, w and c."""

    vectors: Vector
    directions: Vector
    weights: Vector
    shifts: Vector

    @classmethod
    def empty(cls, rows: int, dim: int) -> Expansion:
        return cls(np.empty((rows, dim)), np.empty((rows, dim)), np.empty(rows), np.empty(rows))

    def __getitem__(self, rows: slice) -> Expansion:
        return Expansion(self.vectors[rows], self.directions[rows], self.weights[rows], self.shifts[rows])

    def __len__(self) -> int:
        return len(self.weights)

    def hessian(self) -> Vector:
        """sum w u u' + c I."""
        total = (self.directions.T * self.weights) @ self.directions
        total.flat[:: len(total) + 1] += self.shifts.sum()
        return np.asarray(total)

    def hessians(self, edges: NDArray[np.int64]) -> Vector:
        """The same for every piece between the edges; all but the first and the last are equal and go together."""
        count, dim = len(edges) - 1, self.directions.shape[1]
        found = np.empty((count, dim, dim))
        for at in {0, count - 1}:
            found[at] = self[edges[at] : edges[at + 1]].hessian()
        if count > 2:
            inner = self[edges[1] : edges[-2]]
            u = inner.directions.reshape(count - 2, -1, dim)
            weighted = u * inner.weights.reshape(count - 2, -1, 1)
            shifts = inner.shifts.reshape(count - 2, -1).sum(axis=1)
            found[1:-1] = weighted.transpose(0, 2, 1) @ u + shifts[:, None, None] * np.eye(dim)
        return found

    def relative_to(self, offset: Vector) -> Expansion:
        """From g at one point to b = H (point - origin) - g, with offset = point - origin."""
        along = self.weights * (self.directions @ offset)
        b = along[:, None] * self.directions + self.shifts[:, None] * offset - self.vectors
        return Expansion(b, self.directions, self.weights, self.shifts)

    def enter(self, batches: BatchStore) -> None:
        """Add the rows, whose vectors are b, to the batches."""
        at = 0
        while at < len(self):
            part = self[at : at + batches.free_rows]
            edges = batches.edges(len(part))
            batches.add(edges, np.add.reduceat(part.vectors, edges[:-1]), part.hessians(edges))
            at += len(part)


def expand_at(problem: Problem, point: Vector, rows: Vector) -> Expansion:
    """g and H of the rows at the point."""
    expansion = Expansion.empty(len(rows), problem.dim)
    parts = (expansion.vectors, expansion.directions, expansion.weights, expansion.shifts)
    specialise(expand, problem.gradient, problem.hessian)(point, problem.params, rows, *parts)
    return expansion


def stream_batches(dim: int, first_length: int) -> BatchStore:
    """Between 128 and 256 batches, of `first_length` rows at first; fewer above 64 dimensions, down to 16."""
    return BatchStore(dim, first_length, capacity_for(dim, _MOST_BATCHES, _MOST_NUMBERS))
