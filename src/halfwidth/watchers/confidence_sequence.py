"""Confidence sequences: intervals that hold at every row at once, on top of any watcher with a consistent variance.

    theta_bar_t +- s_t sqrt(2 (t r^2 + 1) / (t^2 r^2) log(sqrt(t r^2 + 1) / alpha)),   s_t^2 the watcher's variance.

| paper    | here                                             |
|----------|--------------------------------------------------|
| s_t^2    | `variance.covariance()`                          |
| t*       | `tightest`: the row at which the interval is tightest |
| r        | `inference.normal_mixture.MixtureLaw`                  |

One may look after every row and stop at any time. The guarantee is asymptotic: it needs a variance that
is consistent (`EqualBatchMeans`, `FlatTopBatchMeans`, `SpectralVariance`, `OverlappingBatchMeans`,
`IncreasingBatchMeans`), and looks that start once the variance has settled. A watcher whose variance stays random
(`FixedBatchMeans`, `RandomScaling`) is refused.

I. Waudby-Smith, D. Arbour, R. Sinha, E. Kennedy and A. Ramdas, *Time-uniform central limit theory and asymptotic
confidence sequences* (2021).
"""

from __future__ import annotations

from typing import Self

from halfwidth.checks import check_count
from halfwidth.errors import CannotPool, InputError, NotEnoughData
from halfwidth.inference.normal_mixture import MixtureLaw
from halfwidth.kernels.arrays import Vector
from halfwidth.state.containers import Variant
from halfwidth.state.fields import Field, Whole
from halfwidth.state.schema import Schema
from halfwidth.watchers.base import State, Watcher
from halfwidth.watchers.equal_batches import EqualBatchMeans
from halfwidth.watchers.flat_top import FlatTopBatchMeans
from halfwidth.watchers.increasing_batches import IncreasingBatchMeans
from halfwidth.watchers.kinds import restored
from halfwidth.watchers.overlapping_batches import OverlappingBatchMeans
from halfwidth.watchers.spectral_variance import SpectralVariance
from halfwidth.watchers.state_parts import nested
from halfwidth.watchers.wrapping_watcher import WrappingWatcher

CONSISTENT = (EqualBatchMeans, FlatTopBatchMeans, IncreasingBatchMeans, OverlappingBatchMeans, SpectralVariance)


def _consistent() -> dict[str, Schema]:
    return {watcher.kind: watcher.SCHEMA for watcher in CONSISTENT}


_FIELDS: dict[str, Field] = {
    "tightest": Whole(1, doc="the row at which the interval is tightest"),
    "variance": Variant("kind", _consistent, doc="the watcher; its fields are stored as `variance.NAME`"),
}


class ConfidenceSequence(WrappingWatcher):
    """Intervals that hold at every row at once: look after every row, stop at any time.

    Parameters
    ----------
    variance : Watcher
        A watcher whose covariance is consistent; it must not have been given to a learner as well.
    tightest : int
        Row at which the interval is tightest: where one most expects to stop.

    Raises
    ------
    InputError
        The variance of the watcher stays random, as that of `FixedBatchMeans` or `RandomScaling`.

    Notes
    -----
    theta_bar_t +- s_t sqrt(2 (t r^2 + 1) / (t^2 r^2) log(sqrt(t r^2 + 1) / alpha)), s_t^2 the watcher's variance. The
    guarantee is asymptotic: looks should start once the variance has settled.

    References
    ----------
    I. Waudby-Smith, D. Arbour, R. Sinha, E. Kennedy and A. Ramdas, *Time-uniform central limit theory and asymptotic
    confidence sequences* (2021).

    Examples
    --------
    >>> watcher = ConfidenceSequence(EqualBatchMeans(1), tightest=10_000)
    >>> watcher.update_many(np.random.default_rng(0).standard_normal((10_000, 1))).n_seen
    10000
    >>> round(watcher.law().quantile(0.95), 2)
    3.04
    """

    kind = "confidence-sequence"
    version = 1
    inner = ("variance",)
    SCHEMA = Schema(kind, version, _FIELDS, settings=("tightest",))

    def __init__(self, variance: Watcher, *, tightest: int = 10_000) -> None:
        if not isinstance(variance, CONSISTENT):
            rule = f"be a watcher whose variance is consistent: {', '.join(c.__name__ for c in CONSISTENT)}"
            raise InputError.of("variance", rule, type(variance).__name__)
        self.variance = variance
        self.dim = variance.dim
        self.tightest = check_count("tightest", tightest)

    @property
    def reported(self) -> Watcher:
        """The watcher of the variance."""
        return self.variance

    @property
    def n_seen(self) -> int:
        return self.variance.n_seen

    def take(self, thetas: Vector) -> None:
        self.variance.take(thetas)

    def law(self) -> MixtureLaw:
        if not self.n_seen:
            raise NotEnoughData.rows("an interval", 0, 1)
        return MixtureLaw(self.n_seen, self.tightest)

    def pool(self, other: Self) -> Self:
        raise CannotPool("cannot pool confidence sequences: looks at different runs have no common clock")

    def to_state(self) -> State:
        head = {"kind": self.kind, "version": self.version, "tightest": self.tightest}
        return head | nested("variance", self.variance.to_state())

    @classmethod
    def _restored(cls, state: State) -> Self:
        return cls(restored(state["variance"]), tightest=state["tightest"])
