"""Whether, and how, the data answer to the deployed theta.

Chunk c has the gradient sum g_c at the linearisation point, while theta_c = point + delta_c was deployed. If the data
answer, E g_c / m moves with theta_c: the slope J of that regression is the part of the mean field's Jacobian H + J that
no Hessian shows. With C, V the centred sums of g delta' and m delta delta', and Omega the mean of g g' / m,

    J_raw = C V^-1,   F = tr(Omega^-1 J_raw C') (1 - (d + 1) / chunks),

F is about chi-square with d^2 degrees of freedom when nothing answers, so J = 0 unless F > d^2 + 3 sqrt(2) d, and
otherwise J = (1 - d^2 / F) J_raw, the positive-part shrinkage of W. James and C. Stein (1961). A J that makes H + J
nearly singular (root mean square of (H + J)^-1 H above 15 per coordinate) is rejected.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

NOTES = 128
LARGEST_GAIN = 15.0
_ROUNDING = 1e-9
_TINY = 1e-300


@dataclass(frozen=True)
class Response:
    """J, how much of the raw slope it kept (0: no answer was seen), F / d^2, and the gain (H + J)^-1 H."""

    J: Vector
    kept: float
    strength: float
    gain: float = 1.0
    rejected: bool = False


@dataclass(frozen=True)
class Moments:
    """The sums of the regression over chunks."""

    chunks: int
    cross: Vector
    spread: Vector
    noise: Vector
    gradient: Vector
    offset: Vector

    @classmethod
    def none(cls, dim: int) -> Self:
        return cls(0, *(np.zeros((dim, dim)) for _ in range(3)), *(np.zeros(dim) for _ in range(2)))

    def plus(self, gradients: Vector, offsets: Vector) -> Moments:
        """With more chunks, one in each row."""
        return Moments(
            self.chunks + len(gradients),
            self.cross + gradients.T @ offsets,
            self.spread + offsets.T @ offsets,
            self.noise + gradients.T @ gradients,
            self.gradient + gradients.sum(axis=0),
            self.offset + offsets.sum(axis=0),
        )


class ResponseNotes:
    """What the loop notes of every chunk, folded into the moments by one product whenever the notes are full."""

    def __init__(self, dim: int) -> None:
        self._gradients, self._offsets = np.zeros((NOTES, dim)), np.zeros((NOTES, dim))
        self.clear()

    def clear(self) -> None:
        self._noted = 0
        self._moments = Moments.none(self._gradients.shape[1])

    @property
    def room(self) -> int:
        """How many chunks can be noted before the next fold."""
        return NOTES - self._noted

    def pages(self) -> tuple[Vector, Vector]:
        """Where the loop writes the gradients and offsets of the next chunks."""
        return self._gradients[self._noted :], self._offsets[self._noted :]

    def note(self, chunks: int) -> None:
        """So many chunks were written."""
        self._noted += chunks
        if self._noted == NOTES:
            self._moments, self._noted = self.moments(), 0

    def moments(self) -> Moments:
        """The sums over every chunk so far."""
        return self._moments.plus(self._gradients[: self._noted], self._offsets[: self._noted])


def regress(moments: Moments, hessian: Vector, chunk_rows: int) -> Response:
    """The response, given the mean static Hessian."""
    dim, n = len(hessian), moments.chunks
    none = np.zeros((dim, dim))
    if n < 2 * dim + 8:
        return Response(none, 0.0, 0.0)
    V = chunk_rows * (moments.spread - np.outer(moments.offset, moments.offset) / n)
    C = moments.cross - np.outer(moments.gradient, moments.offset) / n
    omega = moments.noise / (n * chunk_rows)
    for matrix in (V, omega):
        matrix[np.diag_indices(dim)] = np.diag(matrix) * (1.0 + _ROUNDING) + _TINY
    raw = np.linalg.solve(V, C.T).T
    F = float(np.trace(np.linalg.solve(omega, raw @ C.T))) * (n - dim - 1) / n
    strength = F / dim**2
    if strength < 1.0 + 3.0 * math.sqrt(2.0) / dim:
        return Response(none, 0.0, strength)
    kept = 1.0 - 1.0 / strength
    J = np.asarray(kept * raw)
    gain = math.sqrt(np.square(np.linalg.solve(hessian + J, hessian)).sum() / dim)
    if gain > LARGEST_GAIN:
        return Response(none, 0.0, strength, gain, rejected=True)
    return Response(J, kept, strength, gain)
