"""How far apart gradients are taken for a Hessian on given rows.

A share of 1e-7 of what a row moves a Newton step by, and no more than H^(-1/2) / 1e6 with the mean Hessian's diagonal:
where rows are far from the root so far, as under an exponential, their gradients are no measure. What bends within a
difference, and what is lost in rounding, are then far below what a column whose mean is a hundred times its spread
makes of them. Of the first rows no Hessian is known: widths begin with 1e-4, and become narrower until they are what
the differences themselves say. If fewer than half of those rows notice 1e-4, gradients jump: widths grow until a
sixteenth of them do, and are n^(-1/5) / 2 of that move from then on. Differences go forwards and backwards in turn.

A gradient that is *straight*, linear in theta, may be taken as far apart as one likes, and has to be where a column's
mean is a million times its spread: with M the largest over coefficients of H_jj^(1/2) max(|theta_j|, a row's move),
widths are H_jj^(-1/2) M, so that what is lost in a gradient's rounding is lost in a Hessian's. It is straight if on the
first rows differences of the usual width add up, and on all of them those of this one: over a step along all
coordinates, and over half of it the other way, for along a single coordinate a step adds up to itself.
"""

from __future__ import annotations

import numpy as np

from halfwidth.kernels.arrays import Indices, Vector
from halfwidth.learners.auto.field import Field

_WIDTH, _ROUGH_WIDTH, _FIRST_WIDTH, _WIDER = 1e-7, 0.5, 1e-4, 2.0
_LARGEST_WIDTH, _LEAST_WIDTH = 1e-6, 1e-9
_MOST_NARROWINGS, _NARROWER = 12, 1e-3
_MOST_WIDENINGS, _NOTICED = 48, 1.0 / 16.0
_STEPS = (1.0, -0.5)
_NEARLY_STRAIGHT, _STRAIGHT = 1e-5, 1e-9
"""How much of the sum of differences may be left, at the usual width and at the largest one."""

Pieces = tuple[Vector, Vector]


class DifferenceWidths:
    """The widths of the differences, whether gradients jump, and whether they are straight."""

    def __init__(self, theta_0: Vector) -> None:
        self.values = _FIRST_WIDTH * np.maximum(1.0, np.abs(theta_0))
        self.rough = self.straight = False

    def copy(self) -> DifferenceWidths:
        twin = DifferenceWidths(self.values)
        twin.values[:], twin.rough, twin.straight = self.values, self.rough, self.straight
        return twin

    def expand(
        self, field: Field, theta: Vector, rows: Vector, edges: Indices, past: tuple[Vector, int], forwards: bool
    ) -> Pieces:
        """The pieces of the next rows; those past have a Hessian sum of this diagonal, and are so many."""
        curvature, seen = past
        if self.straight:
            pieces = self._far_apart(field, theta, rows, edges, curvature / seen)
            if pieces is not None:
                return pieces
        self.straight = False
        self._renew(field, theta, rows, curvature, seen)
        self.values[:] = np.abs(self.values) if forwards else -np.abs(self.values)
        pieces = field.pieces(theta, rows, edges)
        for _ in range(0 if seen or self.rough else _MOST_NARROWINGS):
            if not self._narrow(field, theta, rows, pieces):
                break
            pieces = field.pieces(theta, rows, edges)
        if seen or self.rough or not self._adds_up(field, theta, rows, pieces, _NEARLY_STRAIGHT):
            return pieces
        usual, mean = self.values.copy(), np.diag(pieces[1].sum(axis=0)) / len(rows)
        further = self._far_apart(field, theta, rows, edges, mean)
        self.straight = further is not None
        if further is None:
            self.values[:] = usual
            return pieces
        return further

    def _far_apart(self, field: Field, theta: Vector, rows: Vector, edges: Indices, mean: Vector) -> Pieces | None:
        """The pieces with the largest widths; None if gradients are not straight so far."""
        size, scale = np.sqrt(field.moments(theta, rows)[1] / len(rows)), np.sqrt(np.abs(mean))
        seen = scale > 0.0
        if not seen.any():
            return None
        largest = np.max(scale[seen] * np.abs(theta[seen]) + size[seen] / scale[seen])
        self.values[seen] = largest / scale[seen]
        pieces = field.pieces(theta, rows, edges)
        return pieces if self._adds_up(field, theta, rows, pieces, _STRAIGHT) else None

    def _adds_up(self, field: Field, theta: Vector, rows: Vector, pieces: Pieces, tolerance: float) -> bool:
        """Whether steps along all coordinates change the gradient by the sums of what steps along each do."""
        g, H = pieces[0].sum(axis=0), pieces[1].sum(axis=0)
        size = np.abs(H) @ np.abs(self.values)
        for share in _STEPS:
            step = share * self.values
            left = field.gradient(theta + step, rows) - g - H @ step
            if not np.all(np.abs(left) <= tolerance * size):
                return False
        return bool(size[g != 0.0].all() and size.any())

    def _renew(self, field: Field, theta: Vector, rows: Vector, curvature: Vector, seen: int) -> None:
        if seen:
            mean = np.where(curvature != 0.0, np.abs(curvature) / seen, np.inf)
            if self.rough:
                size = np.sqrt(field.moments(theta, rows)[1] / len(rows))
                widths = _ROUGH_WIDTH * (seen + len(rows)) ** -0.2 * size / mean
            else:
                widths = _usual(field, theta, rows, mean)
            self.values[:] = np.where(widths > 0.0, widths, np.abs(self.values))
            return
        grads = field.gradients(theta, rows)
        for j in np.flatnonzero(grads.any(axis=0)).tolist():
            self._widen(j, field, theta, rows, grads)

    def _narrow(self, field: Field, theta: Vector, rows: Vector, pieces: Pieces) -> bool:
        """Whether widths have become narrower, after what differences over the first rows say."""
        mean, before = np.abs(np.diag(pieces[1].sum(axis=0))) / len(rows), np.abs(self.values)
        widths = _usual(field, theta, rows, np.where(mean != 0.0, mean, np.inf))
        widths = np.fmax(widths, _NARROWER * before)  # over a step that is far too long an exponential says nothing
        narrower = (mean != 0.0) & (widths < 0.5 * before)
        self.values[narrower] = np.copysign(widths, self.values)[narrower]
        return bool(narrower.any())

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


def _usual(field: Field, theta: Vector, rows: Vector, mean: Vector) -> Vector:
    """The widths for smooth gradients, given the diagonal of a row's Hessian; 0 where that is infinite."""
    size = np.sqrt(field.moments(theta, rows)[1] / len(rows))
    widths = np.minimum(_WIDTH * size / mean, _LARGEST_WIDTH / np.sqrt(mean))
    return np.asarray(np.where(widths > 0.0, np.maximum(widths, _LEAST_WIDTH * np.abs(theta)), widths))
