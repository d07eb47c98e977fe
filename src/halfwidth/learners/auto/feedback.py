"""Whether, and how, the data answer to the deployed theta.

Chunk c has the gradient sum g_c, while theta_c = origin + delta_c was deployed. g_c is taken at the linearisation point
and put back to the fixed origin by the mean Hessian: a point that moves would look like an answer. If the data answer,
E g_c / m moves with theta_c: the slope J of that regression is the part of the mean field's Jacobian H + J that no
Hessian shows. With C, V the centred sums of g delta' and m delta delta', and Omega the centred mean of g g' / m,

    J_raw = C V^-1,   F = tr(Omega^-1 J_raw C') (1 - (d + 1) / chunks),

F is about chi-square with d^2 degrees of freedom when nothing answers, so J = 0 unless F > d^2 + 3 sqrt(2) d.

J_raw leans to one side: theta_c follows the noise of earlier chunks, and least squares then finds faster mixing than
there is, as in every autoregression. Steps along (H + J)^-1 renew theta R = sum m eta_c times, and to first order
E (H + J_raw) = (1 + (d + 3) / R) (H + J) (D. F. Nicholls and A. L. Pope 1988). So

    J = (H + J_raw) / (1 + (d + 3) / R) - H,   with (d + 3) / R taken as at most 1/2,

and H + J has a relative variance of about 2 / R in every direction. A standard error that is as uncertain has R / 4
degrees of freedom; that batches longer than a renewal make up for an error of J is left out of account.

The interval uses J, which does not lean. The steps use `kept` J with kept = 1 - d^2 / F, the positive-part shrinkage of
W. James and C. Stein (1961), which does not overshoot early on. J is rejected if H + J or H + kept J is nearly singular
(root mean square of (H + J)^-1 H above 15 per coordinate): one can be far from singular while the other is not.
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
_MOST_LEAN = 0.5
_ROUNDING = 1e-9
_TINY = 1e-300


@dataclass(frozen=True)
class Response:
    """J (0: no answer was seen), the share of it that steps use, F / d^2, the gain (H + J)^-1 H, and R."""

    J: Vector
    kept: float
    strength: float
    gain: float = 1.0
    rejected: bool = False
    renewals: float = math.inf

    @property
    def steering(self) -> Vector:
        """What the steps use of J."""
        return self.kept * self.J

    def degrees_of_freedom(self, batches: int) -> float:
        """Of a standard error from so many batches: 1 / (1 / (K - 1) + 4 / R), or K - 1 where J = 0."""
        unsure = 4.0 / self.renewals if self.kept > 0.0 else 0.0
        return 1.0 / (1.0 / (batches - 1.0) + unsure)


@dataclass(frozen=True)
class Moments:
    """The sums of the regression over chunks."""

    chunks: int
    renewals: float
    cross: Vector
    spread: Vector
    noise: Vector
    gradient: Vector
    offset: Vector

    @classmethod
    def none(cls, dim: int) -> Self:
        return cls(0, 0.0, *(np.zeros((dim, dim)) for _ in range(3)), *(np.zeros(dim) for _ in range(2)))

    def plus(self, gradients: Vector, offsets: Vector, renewals: Vector) -> Moments:
        """With more chunks, one in each row."""
        return Moments(
            self.chunks + len(gradients),
            self.renewals + float(renewals.sum()),
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
        self._renewals = np.zeros(NOTES)
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

    def note(self, renewals: Vector, moved: Vector, bends: Vector) -> None:
        """A chunk was written for each of the `renewals`, m times its step; they are put back to the origin.

        `moved` is point - origin, and `bends` is m H moved: what that changed in the gradient of a chunk.
        """
        new = slice(self._noted, self._noted + len(renewals))
        self._gradients[new] -= bends
        self._offsets[new] += moved
        self._renewals[new] = renewals
        self._noted = new.stop
        if self._noted == NOTES:
            self._moments, self._noted = self.moments(), 0

    def moments(self) -> Moments:
        """The sums over every chunk so far."""
        return self._moments.plus(*(page[: self._noted] for page in (self._gradients, self._offsets, self._renewals)))


def regress(moments: Moments, hessian: Vector, chunk_rows: int) -> Response:
    """The response, given the mean static Hessian."""
    dim, n = len(hessian), moments.chunks
    none = np.zeros((dim, dim))
    if n < 2 * dim + 8:
        return Response(none, 0.0, 0.0)
    V = chunk_rows * (moments.spread - np.outer(moments.offset, moments.offset) / n)
    C = moments.cross - np.outer(moments.gradient, moments.offset) / n
    omega = (moments.noise - np.outer(moments.gradient, moments.gradient) / n) / (n * chunk_rows)
    for matrix in (V, omega):
        matrix[np.diag_indices(dim)] = np.diag(matrix) * (1.0 + _ROUNDING) + _TINY
    raw = np.linalg.solve(V, C.T).T
    F = float(np.trace(np.linalg.solve(omega, raw @ C.T))) * (n - dim - 1) / n
    strength = F / dim**2
    if strength < 1.0 + 3.0 * math.sqrt(2.0) / dim:
        return Response(none, 0.0, strength)
    kept, R = 1.0 - 1.0 / strength, moments.renewals
    lean = min((dim + 3.0) / max(R, 1.0), _MOST_LEAN)
    J = np.asarray((hessian + raw) / (1.0 + lean) - hessian)
    gain, steering_gain = _gain(hessian, J), _gain(hessian, kept * J)
    if max(gain, steering_gain) > LARGEST_GAIN:
        return Response(none, 0.0, strength, max(gain, steering_gain), rejected=True)
    return Response(J, kept, strength, gain, renewals=R)


def _gain(hessian: Vector, J: Vector) -> float:
    """Root mean square, per coordinate, of (H + J)^-1 H; infinite where H + J is singular."""
    try:
        return math.sqrt(np.square(np.linalg.solve(hessian + J, hessian)).sum() / len(J))
    except np.linalg.LinAlgError:
        return math.inf
