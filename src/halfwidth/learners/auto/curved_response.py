"""What a response that is curved in theta shifts the root by, as far as the loss's own curvature tells.

Theta moves about until the slope J of the response is known. With x the deployed theta less the linearisation point l,
and g(.), H of the same rows of a chunk, every chunk shows what the loss itself leaves out of its expansion there,

    R = g(l + x) - g(l) - H x,   and   x'(g(l + x) - g(l)) beside x'H x.

Data that shift by K x, K = -H^-1 J, as labels do that follow a forecast, add to the gradient what the loss leaves out
at the distance K x: k^2 R, if K is as large as k in the directions in which theta moved,

    k^2 = tr(H K V K') / tr(H V),   V the covariance of x, or H^-1 where it is not known.

The square of a K that is hardly significant is mostly that of its noise: k = 0 unless the response is detected.
So k^2 R is taken off the equation. That is exact to second order where K = k I, as it is where chunks are unlike each
other (`probes`), and a guess for other responses: what data do at other thetas cannot be seen at one of them. Where it
moves some coefficient by more than `MOST_SHIFT` standard errors, or where more than `MOST_LOST` of the curvature is
lost (or gained) on the way to theta, so that J is not the slope at the root, that is `curved-response`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from halfwidth.equation import Equation, Sums, inverse
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto.feedback import Response

MOST_SHIFT, MOST_LOST = 0.6, 0.2


@dataclass(frozen=True)
class Curved:
    """What is taken off the batches, as a multiple of their R, and the share of curvature that is lost."""

    bend: float = 0.0
    lost: float = 0.0

    @classmethod
    def of(cls, swept: Vector, chunk_rows: int, sums: Sums, response: Response) -> Curved:
        """From what chunks have shown since estimation began; nothing where J = 0, or theta did not move."""
        along, change, chunks = swept.tolist()
        if response.kept <= 0.0 or response.unlike or along <= 0.0:
            return cls()
        rows = float(sums.n.sum())
        H = sums.H.sum(axis=0) / rows
        shown = np.flatnonzero(np.diag(H) != 0.0)
        inside = np.ix_(shown, shown)
        inverted = inverse(H[inside])
        K = inverted @ response.J[inside]
        V = inverted if response.spread is None else response.spread[inside]
        size = float(np.sum(H[inside] * V))
        square = float(np.sum(H[inside] * (K @ V @ K.T))) / size if size > 0.0 and response.detected else 0.0
        return cls(square * rows / (chunks * chunk_rows), 1.0 - change / along)

    def shift(self, equation: Equation, R: Vector, errors: Vector) -> float:
        """By how many standard errors that moves the root of these batches, in the coefficient it moves most."""
        shown = np.isfinite(errors) & (errors > 0.0)
        if self.bend == 0.0 or not shown.any():
            return 0.0
        A = equation.A.sum(axis=0)[np.ix_(shown, shown)]
        return float(np.max(np.abs(self.bend * (inverse(A) @ R[shown])) / errors[shown]))

    def doubts(self, shift: float) -> bool:
        """Whether more is likely left than the correction takes off."""
        return bool(shift > MOST_SHIFT or abs(self.lost) > MOST_LOST)
