"""Steps that cannot climb: a preconditioner whose symmetric part stays positive, and a gain that grows while safe.

With the mean static Hessian H, a metric G (the symmetric part of H with its eigenvalues made positive) and the slope J
of the feedback, let M = G^(-1/2) (H + J) G^(-1/2). The eigenvalues of its symmetric part are raised to at least 1/15,
its skew part is kept, and steps go along the inverse of G^(1/2) M G^(1/2). For the equation J stays as it is estimated.

Before J is known a rotation of strength s is stable for steps below 2 / (1 + s^2) only. The gain of the steps, m eta,
begins at 0.05 and doubles with every chunk up to its limit. An excursion quarters that limit, which then
recovers by 2% per chunk.

A prior worth about a row, set for each column when a row first shows it, keeps the mean Hessian regular; directions
that no row has shown do not move at all.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from halfwidth.equation import inverse
from halfwidth.kernels.arrays import Vector

LEAST_EIGENVALUE = 1.0 / 15.0
FIRST_GAIN, GROWTH = 0.05, 2.0
SHRINK, RECOVERY = 0.25, 1.02
_DOUBLINGS = 60
_PAST = 2.0


def climbing_removed(H: Vector, J: Vector) -> Vector:
    """H + J, with the eigenvalues of its symmetric part raised in the metric of H where they are too small."""
    total = H + J
    values, vectors = np.linalg.eigh(0.5 * (H + H.T))
    values = np.maximum(np.abs(values), 1e-12 * np.abs(values).max(initial=0.0) + 1e-300)
    root, unroot = (vectors * values**power @ vectors.T for power in (0.5, -0.5))
    M = unroot @ total @ unroot
    eigenvalues, axes = np.linalg.eigh(0.5 * (M + M.T))
    if eigenvalues[0] >= LEAST_EIGENVALUE:
        return np.asarray(total)
    raised = np.maximum(LEAST_EIGENVALUE - eigenvalues, 0.0)
    return np.asarray(total + root @ (axes * raised @ axes.T) @ root)


def preconditioner(H: Vector, J: Vector, prior: Vector) -> Vector:
    """(H + prior + J)^-1 without its climbing part; zero in coordinates that no row has shown."""
    seen = np.diag(H) != 0.0
    P = np.zeros_like(H)
    if seen.any():
        inside = np.ix_(seen, seen)
        ridged = H[inside] + np.diag(prior[seen])
        symmetric = not J.any() and np.array_equal(ridged, ridged.T)
        P[inside] = inverse(ridged if symmetric else climbing_removed(ridged, J[inside]))
    return P


def past(target: Vector, mean: Vector, root: Vector, step: float) -> Vector:
    """The theta past the target by twice what the mean of the deployed thetas lacks to it (`slope_error`).

    No further from the target than steps of this size would carry theta by the noise that they make, where L, the
    root, has the covariance L L' of what a row adds to a Newton step.
    """
    away = _PAST * (target - mean)
    size = math.sqrt(float(np.square(np.linalg.lstsq(root, away)[0]).sum()))
    largest = math.sqrt(0.5 * len(target) * step)
    return np.asarray(target + away * (largest / max(size, largest)))


class Gain:
    """The limit of m eta, chunk by chunk."""

    def __init__(self, largest: float) -> None:
        self.largest = largest
        self.reset(1.0)

    def reset(self, share: float) -> None:
        """Begin small again, with this share of the largest gain as the limit."""
        self.share = share
        self.now = min(FIRST_GAIN, self.largest) * share

    def ahead(self, chunks: int) -> Vector:
        """The limits of the next chunks."""
        growth = GROWTH ** np.minimum(np.arange(chunks), _DOUBLINGS)
        return np.asarray(np.minimum(self.largest * self._shares(chunks)[:-1], self.now * growth))

    def advance(self, chunks: int) -> None:
        self.share = float(self._shares(chunks)[-1])
        self.now = min(self.largest * self.share, self.now * GROWTH ** min(chunks, _DOUBLINGS))

    def _shares(self, chunks: int) -> Vector:
        """The share now and after each of the chunks, one by one: it must not depend on how many come at a time."""
        factors = np.concatenate([[self.share], np.full(chunks, RECOVERY)])
        return np.asarray(np.minimum(1.0, np.multiply.accumulate(factors)))

    def to_state(self) -> dict[str, Any]:
        return {"largest": self.largest, "share": self.share, "now": self.now}

    def restore(self, state: dict[str, Any]) -> None:
        self.largest, self.share, self.now = (float(state[name]) for name in ("largest", "share", "now"))
