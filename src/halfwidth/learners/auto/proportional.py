"""A response in proportion to the Hessian: data answer the deployed theta with a share of what theta itself does.

With features that stay alike within a chunk and change from chunk to chunk no constant J fits. Where responses shift
with the model's own prediction, as forecasts do that fulfil themselves in part, a chunk with the Hessian sum H_c
responds by J_c = -k H_c: in proportion to its own rows, whatever these are, and by one number instead of d^2. With x
the deployed theta less the origin, l = x~ - x what its trace lags behind (`moments`), and g the chunk's gradient sum,
put back to the origin by its own H_c,

    g = -H_c v - k H_c x - c H_c l + noise,   v = (1 - k) (theta* - origin).

Noise of a likelihood has a covariance in proportion to H_c, so v, k and c come from least squares weighted by H_c^-1,
which needs sums only, and their variances are s^2 times the inverse of its normal matrix, s^2 = tr(Omega H^-1) / d.
Where c has the sign of k, the response is late; it is shrunk by 1 - 1 / t^2, t its ratio to its standard error, and
zero where it has the other sign, as correlated noise gives it. k alone enters the equation: what is still on its way
adds up to nothing. As in any autoregression 1 - k is too large, by (2 + 2 / d) / R of itself with R renewals of theta:
2 because a mean is fitted (S. Nickell 1981), 2 / d because one slope is fitted to d series.

It is used where the rest of the gradients' motion with theta is within chance. With e = g + k H_c x + c H_c l, taken at
the linearisation point, and C = sum e (x - mean)', F = tr(Omega^-1 C V^-1 C') is about chi-square with d^2 degrees of
freedom if this is the response, plus d (d + 3)^2 / 2R for the bias of d^2 slopes, and may exceed that by 3 sqrt(2) d.
Where t is above 3 the response is slow, and followed by `slopes`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from halfwidth.equation import Sums
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto.moments import Moments
from halfwidth.learners.auto.slopes import SLOW, TINY, regression, regular

_LATE = 3.0
_ROUNDING = 1e-9
_MOST_BIAS = _MOST_TAKEN = 0.5


@dataclass(frozen=True)
class Proportion:
    """k, its variance, and what it leaves: Omega and s^2."""

    share: float
    variance: float
    omega: Vector
    noise: float
    """s^2."""

    @property
    def kept(self) -> float:
        """The share of k that steps use: 1 - 1 / t^2."""
        return max(1.0 - self.variance / max(self.share**2, TINY), 0.0)

    @property
    def renewals(self) -> float:
        """How often theta would have to be renewed to show 1 - k as well in one direction."""
        return 2.0 * (1.0 - self.share) ** 2 / max(self.variance, TINY)

    def dither_test(self, moments: Moments) -> tuple[float, float]:
        """T and N of `feedback`: whether gradients answer the dither in proportion, given the rest of theta."""
        direct, bend, tilt = moments.dithered.tolist()
        error = math.sqrt(max(self.noise * tilt, TINY))
        T = -(direct + self.share * (bend - tilt)) / error
        return math.copysign(T, T * self.share), abs(self.share) * tilt / error

    def taken(self, sums: Sums) -> float:
        """The share of these batches' noise that the fit of k has removed from them."""
        U = sums.U - sums.H @ np.linalg.solve(regular(sums.H.sum(axis=0)), sums.U.sum(axis=0))
        removed = self.variance * float(np.sum(U * np.linalg.solve(self.omega, U.T).T))
        shown = int(np.any(sums.U, axis=0).sum())
        return float(min(removed / (float(sums.n.sum()) * max(shown, 1)), _MOST_TAKEN))


def proportion(moments: Moments, hessian: Vector, chunk_rows: int) -> Proportion | None:
    """The share, or None where the response is another one."""
    d, n = moments.dim, moments.chunks
    at_point, bend, pull, late = (moments.bent_products[i * d : (i + 1) * d] for i in range(4))
    g, z = at_point - pull, bend + pull
    _, omega, V = regression(moments, chunk_rows)
    try:
        sums = np.column_stack([g[:, -1], z[:, -1], late[:, -1]])
        removed = sums.T @ np.linalg.solve(regular(hessian) * (n * chunk_rows), sums)
        shown = np.flatnonzero(np.diag(hessian))
        own = (matrix[np.ix_(shown, shown)] for matrix in (regular(hessian), omega))
        noise = float(np.trace(np.linalg.solve(*own))) / max(len(shown), 1)
    except np.linalg.LinAlgError:
        return None
    traces = np.array([[np.trace(u[:, part]) for u in (g, z, late)] for part in (slice(0, d), slice(d, 2 * d))])
    normal = traces[:, 1:] - removed[1:, 1:]
    right = removed[1:, 0] - traces[:, 0]
    if not (normal[0, 0] > 0.0 and noise > 0.0):
        return None
    k, c, variance, t = _shares(0.5 * (normal + normal.T), right, noise)
    left = at_point + k * bend + c * late
    C = left[:, :d] - np.outer(left[:, -1], moments.products[d : 2 * d, -1] / n)
    F = float(np.sum(np.linalg.solve(omega, C) * np.linalg.solve(regular(V), C.T).T)) * (n - d - 1) / n
    R = max(moments.renewals, 1.0)
    if d**2 + SLOW * math.sqrt(2.0) * d + 0.5 * d * (d + 3.0) ** 2 / R < F or t > _LATE:
        return None
    bias = min((2.0 + 2.0 / d) / R, _MOST_BIAS)
    return Proportion(1.0 - (1.0 - k) / (1.0 + bias), variance, omega, noise)


def _shares(normal: Vector, right: Vector, noise: float) -> tuple[float, float, float, float]:
    """k, c, the variance of k, and c over its standard error; c and that are 0 where c has not the sign of k."""
    first = float(right[0] / normal[0, 0])
    across = float(normal[0, 1] / normal[0, 0])
    rest = float(normal[1, 1]) - across * float(normal[0, 1])
    variance = noise / float(normal[0, 0])
    if not rest > _ROUNDING * float(normal[1, 1]):
        return first, 0.0, variance, 0.0
    late = float(right[1] - across * right[0]) / rest
    t = abs(late) * math.sqrt(rest / noise)
    if late * (first - across * late) <= 0.0:
        return first, 0.0, variance, 0.0
    used = max(1.0 - 1.0 / max(t * t, TINY), 0.0)
    return first - across * used * late, used * late, variance + used * across**2 * noise / rest, t
