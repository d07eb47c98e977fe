"""The bandwidth where a slow dependence lies under noise that is not: from sums over neighbouring batches.

The autoregression behind Andrews' bandwidth (`halfwidth.inference.longrun`) sees the correlation of neighbouring
batches only. White noise makes that small, however long the rest of the dependence lasts. Over sums of k = 2, 4, 8, ...
neighbours noise averages out and the slow part does not. An autoregression rho of the batches leaves to sums of k the
correlation

    rho_k = rho (1 - rho^k)^2 / (k (1 - rho^2) - 2 rho (1 - rho^k)).

With neighbouring sums x, y of a coordinate, t = sum x (y - rho_k x) / sqrt(sum x^2 (y - rho_k x)^2) says whether there
is more, in units that hold where variances differ (as in A. W. Lo and A. C. MacKinlay, Review of Financial Studies 1,
1988). Where it is beyond chance in some coordinate, Andrews' bandwidth for the sums, k times as long in batches, is
taken if it is longer, the longest of all k. Otherwise nothing changes. A sequence that is itself autoregressive, or of
moving averages, shows no more than rho_k.

A coefficient that changes is no dependence (`halfwidth.equation.stability` looks for it): what is found must be there
less a step, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from halfwidth.inference.batch_result import in_pairs
from halfwidth.inference.longrun import RHO_CAP, andrews_bandwidth, lag_one
from halfwidth.kernels.arrays import Vector

FEWEST_SUMS = 32
LEVEL = 0.05
"""Of all tests together, by Bonferroni, which is wide: independent batches get a longer bandwidth in 1% of the runs."""


class Reach(NamedTuple):
    """How far dependence reaches."""

    bandwidth: float
    """In batches, at most a quarter of them, or an eighth where it was found in sums."""
    level: int
    """It was found in sums over 2^level batches."""


def reach(influences: Vector) -> Reach:
    """The bandwidth for the influences (K, d) of batches in time order."""
    K = len(influences)
    found = [Reach(min(andrews_bandwidth(influences), K / 4.0), 0)]
    if any(True for _ in _beyond_chance(influences)):
        slow = _beyond_chance(less_a_step(influences))
        found += [Reach(min(2**level * andrews_bandwidth(sums), K / 8.0), level) for level, sums in slow]
    return max(found, key=lambda one: one.bandwidth)


def _beyond_chance(z: Vector) -> Iterator[tuple[int, Vector]]:
    """The levels, and their sums, that are more correlated than the autoregression of the batches explains."""
    from scipy.special import ndtri

    K, d = z.shape
    levels = (K // FEWEST_SUMS).bit_length() - 1
    if levels < 1 or not d:
        return
    limit = float(ndtri(1.0 - LEVEL / (levels * d)))
    rho, sums = np.clip(lag_one(z), 0.0, RHO_CAP), z
    for level in range(1, levels + 1):
        sums = in_pairs(sums)
        if (excess(sums, of_sums(rho, 2**level)) > limit).any():
            yield level, sums


def of_sums(rho: Vector, k: int) -> Vector:
    """The correlation of neighbouring sums of k terms of an autoregression."""
    far = 1.0 - rho**k
    return np.asarray(rho * far**2 / (k * (1.0 - rho**2) - 2.0 * rho * far))


def excess(z: Vector, rho: Vector) -> Vector:
    """By how many standard errors neighbours in each column are more correlated than rho."""
    x = z[:-1]
    products = x * (z[1:] - rho * x)
    spread = np.sqrt(np.einsum("ja,ja->a", products, products))
    return np.asarray(products.sum(axis=0) / np.where(spread > 0.0, spread, np.inf))


def less_a_step(x: Vector) -> Vector:
    """Less the means before and after the largest partial sum of each column."""
    mean, last = x.mean(axis=0), len(x) - 1.0
    S = np.cumsum(x - mean, axis=0)
    at = np.abs(S).argmax(axis=0)
    jump = S[at, np.arange(x.shape[1])]
    before, after = mean + jump / (at + 1.0), mean - jump / np.maximum(last - at, 1.0)
    return np.asarray(x - np.where(np.arange(len(x))[:, None] <= at, before, after))
