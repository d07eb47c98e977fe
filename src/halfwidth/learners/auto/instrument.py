"""The dither as an instrument: whether gradients move with signs that nothing but the deployed theta knows.

What T, N and E are is in `halfwidth.learners.auto.feedback`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto.moments import Moments
from halfwidth.learners.auto.slopes import TINY, regression, regular

SURE = 2.33
CONFIRMED, DENIED = 3.3, 5.0
OPPOSITE = 0.5
"""Correlated noise makes G at least this share of J, with the opposite sign."""


@dataclass(frozen=True)
class Instrument:
    """T, N, its mean E if the slope is what least squares says, and whether noise seems to be correlated.

    `least` is the smaller one of E and of N for a slow response, where there may be one.
    """

    T: float
    N: float
    expected: float
    least: float
    correlated: bool

    @property
    def confirms(self) -> bool:
        return self.T > SURE

    @property
    def denies(self) -> bool:
        return not self.confirms and self.expected - self.T > (SURE if self.correlated else DENIED)

    @property
    def decided(self) -> bool:
        """Whether no more dither is needed."""
        return self.T > CONFIRMED or (self.T < SURE and self.least - self.T > DENIED)


def instrument_of(moments: Moments, chunk_rows: int, slow: bool) -> Instrument | None:
    """What the dither says, if there was any."""
    if not moments.dither_spread.any():
        return None
    d = moments.dim
    slope, _, V_b = regression(moments, chunk_rows, base=True)
    V_z = chunk_rows * moments.dither_spread[:d, :d]
    T, N = _dither_test(moments, chunk_rows, slope)
    expected = max(N - d * float(np.trace(np.linalg.solve(regular(V_b), V_z))) / N, 0.0)
    if not slow:
        return Instrument(T, N, expected, expected, False)
    slope, omega, _ = regression(moments, chunk_rows, base=True, slow=True)
    J, G = slope[:, :d], slope[:, d:]
    late, N_late = _dither_test(moments, chunk_rows, np.hstack([J, J]))
    against = np.linalg.solve(omega, J) @ V_b
    correlated = float(np.sum(against * G)) < -OPPOSITE * float(np.sum(against * J))
    return Instrument(max(T, late), N, expected, min(expected, N_late), correlated)


def _dither_test(moments: Moments, chunk_rows: int, response: Vector) -> tuple[float, float]:
    """T and N for a response to the dither, and to its trace where it has 2d columns."""
    inside = slice(0, response.shape[1])
    slope, omega, _ = regression(moments, chunk_rows, base=True, slow=response.shape[1] > moments.dim)
    # The residuals on base = u - w and the dither itself: sum (g - J_b m (u - w)) w', about their means.
    cross = moments.dithered_gradients()[:, inside] - chunk_rows * slope @ moments.dithered_bases()[inside, inside]
    weighted = np.linalg.solve(omega, response)
    V_w = chunk_rows * moments.dither_spread[inside, inside]
    N = math.sqrt(max(float(np.sum((weighted @ V_w) * response)), TINY))
    return float(np.sum(weighted * cross)) / N, N
