"""Results whose intervals are order statistics of several estimates instead of quantiles of a limit law.

**Percentile.** Quantiles of bootstrap copies (B. Efron 1981).

**Hull.** K independent estimates, each as likely above the truth as below it: the interval from the i-th smallest to
the i-th largest misses with probability 2 P(Binomial(K, 1/2) < i), which no law of the estimates enters
(A. K. Kuchibhotla, S. Balakrishnan and L. Wasserman, *The HulC*, JRSS B 86, 2024). The largest i that keeps the level
is taken: six runs give 0.969 at most. HulC's randomisation, which makes the level exact, is left out: one stream, one
interval.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.checks import check_level
from halfwidth.errors import NotEnoughData
from halfwidth.inference.interval import Interval
from halfwidth.inference.result import Result
from halfwidth.kernels.arrays import Vector


@dataclass(frozen=True)
class DrawsResult(Result):
    """A result with the estimates (m, d) that its intervals are read off; tests and ellipsoids still use the law."""

    draws: Vector = field(default_factory=lambda: np.empty((0, 0)))

    @abstractmethod
    def _bounds(self, values: Vector, level: float) -> tuple[Vector, Vector]:
        """Lower and upper bounds, from values (m, directions)."""

    def interval(self, direction: ArrayLike | None = None, level: float = 0.95) -> Interval:
        """The interval read off the draws; `critical` is its mean half-width in standard errors."""
        by_law = super().interval(direction, level)
        values = self.draws if direction is None else self.draws @ np.asarray(direction, dtype=np.float64).T
        lower, upper = self._bounds(values, check_level(level))
        critical = float(np.mean((upper - lower) / (2.0 * np.asarray(by_law.std_error))))
        if np.ndim(by_law.estimate) == 0:
            return replace(by_law, lower=float(lower), upper=float(upper), critical=critical)
        return replace(by_law, lower=lower, upper=upper, critical=critical)


@dataclass(frozen=True)
class PercentileResult(DrawsResult):
    """Bootstrap percentiles."""

    def _bounds(self, values: Vector, level: float) -> tuple[Vector, Vector]:
        lower, upper = np.quantile(values, [0.5 * (1.0 - level), 0.5 * (1.0 + level)], axis=0)
        return lower, upper


@dataclass(frozen=True)
class HullResult(DrawsResult):
    """The hull of independent runs; an interval's estimate is its middle."""

    def _bounds(self, values: Vector, level: float) -> tuple[Vector, Vector]:
        i = hull_rank(len(values), level)
        ordered = np.sort(values, axis=0)
        return ordered[i - 1], ordered[-i]

    def interval(self, direction: ArrayLike | None = None, level: float = 0.95) -> Interval:
        hull = super().interval(direction, level)
        return replace(hull, estimate=0.5 * (hull.lower + hull.upper))


def hull_rank(runs: int, level: float) -> int:
    """The largest i for which the i-th smallest to the i-th largest of so many runs keep the level."""
    from scipy.special import bdtr

    missed = 2.0 * bdtr(np.arange((runs + 1) // 2), runs, 0.5)
    rank = int(np.sum(missed <= 1.0 - level + 1e-12))
    if rank == 0:
        raise NotEnoughData(
            f"the hull of {runs} runs covers with probability {1.0 - 2.0 ** (1 - runs):.4g} at most, below {level}; "
            f"take at least {int(np.ceil(1.0 - np.log2(1.0 - level)))} runs"
        )
    return rank
