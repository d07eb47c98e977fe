"""How far apart gradients are taken for a Hessian on given rows.

A thousandth of what a row moves a Newton step by, and no more than H^(-1/2) / 100 with the mean Hessian's diagonal:
where rows are far from the root so far, as under an exponential, their gradients are no measure. If fewer than half of
the rows notice that, gradients jump: widths grow until a sixteenth of them do, and are n^(-1/5) / 2 of that move from
then on. Differences go forwards and backwards in turn.
"""

from __future__ import annotations

import numpy as np

from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto.field import Field

_WIDTH, _ROUGH_WIDTH, _FIRST_WIDTH, _WIDER = 1e-3, 0.5, 1e-4, 2.0
_LARGEST_WIDTH = 0.01
_MOST_WIDENINGS, _NOTICED = 48, 1.0 / 16.0


class DifferenceWidths:
    """The widths of the differences, and whether gradients jump."""

    def __init__(self, theta_0: Vector) -> None:
        self.values = _FIRST_WIDTH * np.maximum(1.0, np.abs(theta_0))
        self.rough = False

    def copy(self) -> DifferenceWidths:
        twin = DifferenceWidths(self.values)
        twin.values[:], twin.rough = self.values, self.rough
        return twin

    def renew(self, field: Field, theta: Vector, rows: Vector, curvature: Vector, seen: int) -> None:
        """For the next rows, with the diagonal of the Hessian sum of those seen."""
        if seen:
            size = np.sqrt(field.moments(theta, rows)[1] / len(rows))
            mean = np.where(curvature != 0.0, np.abs(curvature) / seen, np.inf)
            if self.rough:
                widths = _ROUGH_WIDTH * (seen + len(rows)) ** -0.2 * size / mean
            else:
                widths = np.minimum(_WIDTH * size / mean, _LARGEST_WIDTH / np.sqrt(mean))
            self.values[:] = np.where(widths > 0.0, widths, np.abs(self.values))
            return
        grads = field.gradients(theta, rows)
        for j in np.flatnonzero(grads.any(axis=0)).tolist():
            self._widen(j, field, theta, rows, grads)

    def _widen(self, j: int, field: Field, theta: Vector, rows: Vector, grads: Vector) -> None:
        """Widen the differences along coordinate j until rows notice them."""
        touched = np.count_nonzero(grads[:, j])
        for _ in range(_MOST_WIDENINGS):
            there = theta.copy()
            there[j] += self.values[j]
            noticed = np.count_nonzero(np.any(field.gradients(there, rows) != grads, axis=1))
            if noticed >= (_NOTICED if self.rough else 0.5) * touched:
                return
            self.rough = True
            self.values[j] *= _WIDER

    def turn(self, forwards: bool) -> None:
        """Make the differences forwards, or backwards."""
        self.values[:] = np.abs(self.values) if forwards else -np.abs(self.values)
