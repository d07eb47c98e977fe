"""What renewable Newton knows at one moment: the centre, its curvature, and the batches its covariance comes from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfwidth.inference.longrun import LongRun, long_run_covariance
from halfwidth.learners.newton.column_scaling import Scaling
from halfwidth.learners.newton.newton_solver import solve_spd
from halfwidth.learners.newton.score_batches import ScoreBatches

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Fit:
    """What can be said of all rows so far, on the internal scale; everything a result is made of."""

    n: int
    weight: float
    scaling: Scaling
    centre: Vector
    curvature: Vector
    expanded: Vector
    """The curvature at the points of expansion, before the sample of rows moved it to the centre."""
    reach: Vector
    """How far from zero each internal column goes in the first rows, at least one."""
    penalty: Vector
    dispersion: float
    mistakes: float
    batches: ScoreBatches
    reference: Vector
    grouped: bool

    @property
    def params(self) -> Vector:
        """The coefficients on the user's scale, the intercept first."""
        return self.scaling.matrix @ self.centre

    @property
    def information(self) -> Vector:
        return self.curvature + np.diag(self.weight * self.penalty)

    def long_run(self) -> LongRun:
        """The long-run covariance of the influence of the batches on the internal coefficients."""
        scores, curvatures, rows = self.batches.with_open()
        residuals = scores - curvatures @ (self.centre - self.reference)
        residuals -= np.outer(rows / rows.sum(), residuals.sum(axis=0))
        return long_run_covariance(solve_spd(self.information, residuals.T).T, independent=self.grouped)

    def covariance(self, long_run: LongRun) -> Vector:
        """Of the estimate, on the user's scale, with the usual n / (n - size) for the fitted coefficients."""
        T = self.scaling.matrix
        return np.asarray(T @ long_run.covariance @ T.T) * self.n / max(self.n - self.centre.size, 1)

    def naive_covariance(self) -> Vector:
        """What one would report if rows were independent and the family's variance function right."""
        inverse = solve_spd(self.information, np.eye(self.centre.size))
        T = self.scaling.matrix
        return np.asarray(self.dispersion * T @ inverse @ self.curvature @ inverse @ T.T)


def pieces(Z: Vector, root: Vector, score: Vector, edges: NDArray[np.int64]) -> tuple[Vector, Vector]:
    """Scores and curvatures of the pieces between the edges; equal pieces go through one stacked product."""
    count, size = len(edges) - 1, Z.shape[1]
    step = int(edges[1] - edges[0])
    if step > 0 and len(Z) == count * step and (np.diff(edges) == step).all():
        stacked = root.reshape(count, step, size)
        H = stacked.transpose(0, 2, 1) @ stacked
        U = (score.reshape(count, 1, step) @ Z.reshape(count, step, size))[:, 0]
        return U, H
    U, H = np.empty((count, size)), np.empty((count, size, size))
    for j in range(count):
        piece = slice(edges[j], edges[j + 1])
        U[j] = score[piece] @ Z[piece]
        H[j] = root[piece].T @ root[piece]
    return U, H
