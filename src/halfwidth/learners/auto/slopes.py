"""Regressions of gradients on the deployed theta, and on its trace where the response is slow (`moments`)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto.absorb import FORGET, UNKNOWN
from halfwidth.learners.auto.moments import Moments

SLOW = 3.0
TINY = 1e-300
_ROUNDING = 1e-9
_ROUNDS = 3
_MOST_BIAS, _EXCITED = 0.5, 4.0


@dataclass(frozen=True)
class Slope:
    """What least squares says: J, and how well it is seen."""

    J: Vector
    omega: Vector
    spread: Vector
    """Of x, less what its trace explains of it where the response is slow."""
    inflation: float
    """Of the variance of J, where the trace takes part."""
    memory_chunks: float
    late: float = 0.0
    """The share c of a slow response that is late, G = c J, from 0 to 1."""

    @classmethod
    def of(cls, moments: Moments, chunk_rows: int, slow: bool) -> Slope:
        d, n = moments.dim, moments.chunks
        if not slow:
            late = late_share(moments, chunk_rows)
            return cls(*regression(moments.with_late(late), chunk_rows), 1.0, 1.0)
        slope, omega, V = regression(moments, chunk_rows, slow=True)
        J, G, V_x = slope[:, :d], slope[:, d:], V[:d, :d]
        spread = V_x - V[:d, d:] @ np.linalg.solve(regular(V[d:, d:]), V[d:, :d])
        inflation = max(float(np.trace(np.linalg.solve(regular(spread), V_x))) / d, 1.0)
        against = np.linalg.solve(omega, J) @ V_x
        share = float(np.sum(against * G)) / max(float(np.sum(against * J)), TINY)
        kept = math.exp(-FORGET * moments.renewals / n) if moments.renewals > 0.0 else UNKNOWN
        memory = 1.0 + max(share, 0.0) * kept / (1.0 - kept)
        return cls(J, omega, spread, inflation, memory, min(max(share, 0.0), 1.0))

    def bias(self, hessian: Vector, renewals: float, excited: bool) -> float:
        """The share by which H + J comes out too large, where theta was renewed so often (`feedback`)."""
        regular = excited and gain_of(hessian, self.J) < math.inf
        typical = self.renewals(hessian + self.J)[1] if regular else 0.0
        R = typical if typical > _EXCITED * renewals else renewals
        return _too_large(len(hessian), R)

    def renewals(self, jacobian: Vector) -> tuple[float, float]:
        """How often theta was renewed if this is the Jacobian: in the slowest direction, and in a typical one."""
        squares = np.linalg.solve(self.omega, jacobian @ self.spread @ jacobian.T)
        found = np.maximum(np.linalg.eigvals(squares).real, TINY)
        return 2.0 * float(found.min()), 2.0 / float(np.mean(1.0 / found))


def late_share(moments: Moments, chunk_rows: int) -> float:
    """The share c of the response that is late, G = c J, shrunk by its own error; 0 where it is negative.

    One number instead of d^2 of them: it is found where the trace as a whole is not significant.
    """
    d = moments.dim
    if moments.chunks < 4 * d + 8:
        return 0.0
    slope, omega, V = regression(moments, chunk_rows, slow=True)
    J, G, share = regression(moments, chunk_rows)[0], slope[:, d:], 0.0
    spread = V[d:, d:] - V[d:, :d] @ np.linalg.solve(regular(V[:d, :d]), V[:d, d:])
    for _ in range(_ROUNDS):
        against = np.linalg.solve(omega, J) @ spread
        size = max(float(np.sum(against * J)), TINY)
        seen = float(np.sum(against * G)) / size
        share = max(seen - 1.0 / (seen * size), 0.0) if seen > 0.0 else 0.0
        J = regression(moments.with_late(share), chunk_rows)[0]
    return share


def is_slow(moments: Moments, chunk_rows: int) -> bool:
    """Whether the trace of theta explains more of the gradients than theta does, far beyond chance."""
    d, n = moments.dim, moments.chunks
    if n < 4 * d + 8:
        return False
    slope, omega, V = regression(moments, chunk_rows, base=True, slow=True)
    G = slope[:, d:]
    spread = V[d:, d:] - V[d:, :d] @ np.linalg.solve(regular(V[:d, :d]), V[:d, d:])
    F = float(np.sum(np.linalg.solve(omega, G) @ spread * G)) * (n - 2 * d - 1) / n
    return bool(d**2 + SLOW * math.sqrt(2.0) * d < F)


def regression(
    moments: Moments, chunk_rows: int, *, base: bool = False, slow: bool = False
) -> tuple[Vector, Vector, Vector]:
    """The slope, the covariance per row of what it leaves, and V; `base` takes theta without its dither."""
    C, V, noise = moments.centred(chunk_rows, base=base, slow=slow)
    slope = slope_of(C, V)
    left = noise - chunk_rows * slope @ C.T
    return slope, regular(0.5 * (left + left.T) / (moments.chunks * chunk_rows)), V


def share_of(moments: Moments, hessian: Vector, chunk_rows: int) -> tuple[float, float]:
    """The share k of a response J = -k H, by generalised least squares, and its standard error; inf where V is 0.

    H + J comes out too large where theta follows its noise (`Slope.bias`), and so does 1 - k. Theta that follows its
    noise through R renewals leaves k the variance 2 / (d R): where that is less, theta moved by more than noise.
    """
    J, omega, V = regression(moments, chunk_rows)
    against = np.linalg.solve(omega, hessian) @ V
    size = float(np.sum(against * hessian))
    if size <= TINY:
        return 0.0, math.inf
    slope = 1.0 + float(np.sum(against * J)) / size
    dim = len(hessian)
    return 1.0 - slope / (1.0 + _too_large(dim, max(moments.renewals, 2.0 * size / dim))), 1.0 / math.sqrt(size)


def _too_large(dim: int, renewals: float) -> float:
    return min((dim + 3.0) / max(renewals, 1.0), _MOST_BIAS)


def slope_of(C: Vector, V: Vector) -> Vector:
    """C V^-1."""
    return np.asarray(np.linalg.solve(regular(V), C.T).T)


def regular(matrix: Vector) -> Vector:
    """The matrix, with a diagonal that rounding cannot make singular."""
    ridged = matrix.copy()
    ridged[np.diag_indices(len(matrix))] = np.diag(matrix) * (1.0 + _ROUNDING) + TINY
    return ridged


def gain_of(hessian: Vector, J: Vector) -> float:
    """Root mean square, per coordinate, of (H + J)^-1 H; infinite where H + J is singular."""
    try:
        return math.sqrt(np.square(np.linalg.solve(hessian + J, hessian)).sum() / len(J))
    except np.linalg.LinAlgError:
        return math.inf


def climbs(hessian: Vector, J: Vector) -> bool:
    """Whether H^-1 (H + J) has an eigenvalue without a positive real part: no step could settle at such a root."""
    try:
        return bool(np.linalg.eigvals(np.linalg.solve(hessian, J)).real.min() <= -1.0)
    except np.linalg.LinAlgError:
        return False


def strength_of(hessian: Vector, J: Vector) -> float:
    """The size of H^-1 J, in whatever units coordinates are: the largest |u'J v| where |u'H u| = |v'H v| = 1."""
    values, axes = np.linalg.eigh(0.5 * (hessian + hessian.T))
    root = axes / np.sqrt(np.maximum(np.abs(values), TINY))
    return float(np.linalg.norm(root.T @ J @ root, 2))
