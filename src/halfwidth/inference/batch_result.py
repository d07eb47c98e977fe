"""A result that rests on batches, and asks for every direction whether they were long enough.

With x_j = v' influence_j, the share of batch j in the error of v'theta, K batches give the variance

    S_b = K / (K - 1) sum_j x_j^2,   t with K - 1 degrees of freedom.

If batches are too short, pairs and fours of neighbours give more: S_2b / S_b has mean one and variance about 2/K' - 2/K
(K' pairs) when they are not. Beyond three standard deviations the longer batches are taken, with their own critical
value, wherever that is wider. The standard error is then stated in units of the shorter batches' critical value at 95%.
Joint statements use the covariance of the shorter batches.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from halfwidth.inference.result import Result
from halfwidth.inference.student_law import student_quantile
from halfwidth.inference.trail import Trail, influence_trail
from halfwidth.kernels.arrays import Vector

_DEVIATIONS = 3.0
_LEVEL = 0.95


def in_pairs(x: Vector) -> Vector:
    """Sums of neighbours; an odd first one joins the first pair."""
    odd = len(x) % 2
    pairs = x[odd::2] + x[odd + 1 :: 2]
    if odd and len(pairs):
        pairs[0] += x[0]
    return pairs


def batch_variance(x: Vector) -> Vector:
    """K / (K - 1) sum x^2 over the batches."""
    return np.asarray(len(x) / (len(x) - 1.0) * np.square(x).sum(axis=0))


def ratio_limit(batches: int, longer: int, deviations: float = _DEVIATIONS) -> float:
    """The largest S_2b / S_b that chance explains."""
    return 1.0 + deviations * math.sqrt(2.0 / longer - 2.0 / batches)


def too_short(influences: Vector, deviations: float = _DEVIATIONS) -> bool:
    """Whether, in the median coordinate, batches of twice or four times the length give more by so many deviations."""
    noisy = influences[:, np.square(influences).any(axis=0)]
    plain, longer = batch_variance(noisy), in_pairs(noisy)
    for _ in range(2):
        if len(longer) < 2 or not plain.size:
            return False
        if np.median(batch_variance(longer) / plain) > ratio_limit(len(influences), len(longer), deviations):
            return True
        longer = in_pairs(longer)
    return False


def inflations(x: Vector, df: Vector) -> Vector:
    """By how much longer batches widen intervals with influences x (K, m) and degrees of freedom df; at least 1."""
    plain, factors = batch_variance(x), np.ones(x.shape[1])
    longer = in_pairs(x)
    for _ in range(2):
        if len(longer) < 2:
            break
        ratio = batch_variance(longer) / np.where(plain > 0.0, plain, np.inf)
        fewer = np.minimum(len(longer) - 1.0, df)
        wider = np.sqrt(ratio) * student_quantile(_LEVEL, fewer) / student_quantile(_LEVEL, df)
        beyond = ratio > ratio_limit(len(x), len(longer))
        factors = np.where(beyond, np.maximum(factors, wider), factors)
        longer = in_pairs(longer)
    return factors


@dataclass(frozen=True)
class BatchesResult(Result):
    """A result with the influences (K, d) of its batches."""

    influences: Vector = field(default_factory=lambda: np.empty((0, 0)), repr=False)

    @property
    def bse(self) -> Vector:
        """Standard errors of the coefficients."""
        return np.asarray(np.sqrt(self._variances(np.eye(self.params.size)) / self.n))

    def _trail(self) -> Trail:
        return influence_trail(self.params, self.influences, self.n)

    def inflations(self, directions: Vector) -> Vector:
        """By how much longer batches widen the interval of each direction (m, d); 1 where they do not."""
        return inflations(self.influences @ directions.T, self.degrees_of_freedom(directions))

    def _variances(self, rows: Vector) -> Vector:
        return np.asarray(super()._variances(rows) * self.inflations(rows) ** 2)
