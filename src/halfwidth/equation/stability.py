"""Does the coefficient hold still? A test on what the batches, in time order, add to its error.

With x_b the influence of batch b on a coefficient at the final estimate, sum x_b = 0, and partial sums S_k: if nothing
changes, S_k = W(v_k) - t_k W(1) with v_k the share of the variance and t_k the share of the information in the first k
batches. Where both clocks agree this is a Brownian bridge; noise that grows late makes it wilder. So the sup is taken
in units of the largest standard deviation that the process has, from both clocks,

    D = sup_k |S_k| / (2 max_k sd_k),   sd_k^2 = v_k + t_k^2 V - 2 t_k v_k  (v_k, V estimated from x_b^2),

which for a bridge is Kolmogorov's statistic (2 max sd = sqrt(V)) and is conservative otherwise. The variance is that of
x_b less its means before and after the largest |S_k|: a change must not hide in the noise it makes. Correlation between
batches scales it (`halfwidth.inference.longrun`); where that reaches over an eighth of them nothing is tested. Over
several coefficients: S. Holm, Scandinavian J. Statistics 6 (1979).

B. E. Hansen, J. Econometrics 97 (2000); A. Zeileis and K. Hornik, Statistica Neerlandica 61 (2007).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfwidth.inference.longrun import long_run_covariance
from halfwidth.inference.slow_dependence import less_a_step
from halfwidth.kernels.arrays import Vector

LEVEL = 0.01
FEWEST_BATCHES = 32
LONG_BATCHES = 16


class Stability(NamedTuple):
    """For every direction: the p-value of holding still, and the row after which it seems to change."""

    pvalues: Vector
    rows: Vector
    long_variances: Vector
    """Of the root, from sums over `LONG_BATCHES` stretches of the stream; nan where there are too few batches."""

    def unstable(self, tested: NDArray[np.bool_], level: float = LEVEL) -> NDArray[np.bool_]:
        """Which of the tested directions change, by Holm's procedure."""
        found = np.zeros(len(self.pvalues), dtype=np.bool_)
        places = np.flatnonzero(tested)
        for rank, at in enumerate(places[np.argsort(self.pvalues[places])].tolist()):
            if not self.pvalues[at] <= level / (len(places) - rank):
                break
            found[at] = True
        return found


def stability(influences: Vector, information: Vector, rows: Vector) -> Stability:
    """The test for influences (K, m) in time order, with the information about each direction (K, m) and rows (K,)."""
    K, m = influences.shape
    noise = less_a_step(influences) if K else influences
    long_run = long_run_covariance(noise) if K >= FEWEST_BATCHES else None
    if long_run is None or long_run.bandwidth > K / 8.0:
        return Stability(np.ones(m), np.zeros(m), _long_variances(influences, information))
    from scipy.special import kolmogorov

    squares = np.square(noise) * K / (K - 2.0)
    total = np.square(noise).sum(axis=0)
    scale = np.maximum(np.diag(long_run.covariance) / np.where(total > 0.0, total, 1.0), 1.0)
    t = np.cumsum(information, axis=0) / np.maximum(information.sum(axis=0), 1e-300)
    v = np.cumsum(squares, axis=0) * scale
    sd2 = v + t**2 * v[-1] - 2.0 * t * v
    S = np.abs(np.cumsum(influences - influences.mean(axis=0), axis=0))
    largest = 2.0 * np.sqrt(np.maximum(sd2.max(axis=0), 0.0))
    D = S.max(axis=0) / np.where(largest > 0.0, largest, np.inf)
    return Stability(
        np.asarray(kolmogorov(D)), np.cumsum(rows)[S.argmax(axis=0)], _long_variances(influences, information)
    )


def _long_variances(influences: Vector, information: Vector) -> Vector:
    """By stretches of as many batches or, where few of those hold most that is known, of as much information."""
    K, m = influences.shape
    if K < FEWEST_BATCHES:
        return np.full(m, np.nan)
    begins = np.arange(LONG_BATCHES) * K // LONG_BATCHES
    sums, known = (np.add.reduceat(array, begins, axis=0) for array in (influences, information))
    known = known / np.where((largest := np.abs(known).max(axis=0)) > 0.0, largest, 1.0)  # squares may overflow
    few = np.square(known.sum(axis=0)) < 0.5 * LONG_BATCHES * np.square(known).sum(axis=0)
    for j in np.flatnonzero(few).tolist():
        clock = np.cumsum(information[:, j])
        begins = np.searchsorted(clock, clock[-1] * np.arange(LONG_BATCHES) / LONG_BATCHES, side="right")
        if np.isfinite(clock[-1]) and (np.diff(begins) > 0).all() and begins[-1] < K:
            sums[:, j] = np.add.reduceat(influences[:, j], begins)
    return np.asarray(LONG_BATCHES / (LONG_BATCHES - 1.0) * np.square(sums - sums.mean(axis=0)).sum(axis=0))
