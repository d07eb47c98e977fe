"""Functionals of the path of sums: random scaling with another power.

    v'theta:  v'theta_bar +- q_m n^(-1/2) (int_0^1 |v'B_n(r)|^m dr)^(1/m),
    B_n(r) = sqrt(n) r (theta_bar_{nr} - theta_bar_n),

which is pivotal for every power m because B_n converges to Sigma^(1/2) times a Brownian bridge. m = 2 is random
scaling (`RandomScaling`); larger powers give narrower tails, and m = 1 is the most robust to a few wild excursions.

| paper                              | here                                                                 |
|------------------------------------|----------------------------------------------------------------------|
| m                                  | `power`: 1, 4 or 6                                                   |
| phi(r) - r phi(1)                  | `bridge()`: at the ends of the 128 to 255 batches of `DyadicBatches` |
| q_m                                | `inference.scaling_laws`                                                |

The integral is a sum over the ends of the batches. Its error is of order (1/128)^(3/2) of the whole, and memory stays
O(dim) for any power, odd ones included, without the cancellations of expanding the m-th power.

Only for m = 2 is the denominator a quadratic form of v. The covariance kept is therefore the diagonal, and intervals
for a direction v read the path of v'theta, at the moment the result is made.

X. Li, J. Liang and Z. Zhang, *Online statistical inference for nonlinear stochastic approximation with Markovian data*
(2023).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.errors import CannotPool, InputError
from halfwidth.inference import Result
from halfwidth.inference.diagnostics import Diagnostics
from halfwidth.inference.scaling_laws import MEAN_SQUARE, FunctionalLaw
from halfwidth.kernels.arrays import Vector
from halfwidth.state.fields import Whole
from halfwidth.state.schema import Relation, Schema
from halfwidth.watchers.base import Critical, State
from halfwidth.watchers.dyadic_sums import DyadicBatches, batch_fields, batch_relations
from halfwidth.watchers.view import VIEW_FIELDS, VIEW_RELATION, ViewName, kept_size
from halfwidth.watchers.viewed_watcher import ViewedWatcher

_LEAST_ROWS = 64


def _tabulated(state: State) -> bool:
    return state["view"] != "full" and state["power"] in MEAN_SQUARE


def path_variances(bridge: Vector, power: int) -> Vector:
    """(mean |B|^m)^(2/m) for each column, over its mean for a standard bridge."""
    size = np.abs(bridge)
    largest = np.max(size, axis=0)
    safe = np.where(largest > 0, largest, 1.0)
    return np.asarray((safe * np.mean((size / safe) ** power, axis=0) ** (1.0 / power)) ** 2 / MEAN_SQUARE[power])


@dataclass(frozen=True)
class PathResult(Result):
    """A result that measures each direction on the path of that direction."""

    power: int = field(kw_only=True)
    bridge: Vector = field(kw_only=True, repr=False)

    def _variances(self, rows: Vector) -> Vector:
        return path_variances(self.bridge @ rows.T, self.power)


class FunctionalScaling(ViewedWatcher):
    """Random scaling with another power than 2.

    Parameters
    ----------
    power : {1, 4, 6}
        Power m of the functional of the path. Larger powers have lighter tails; 1 is the most robust to a few large
        excursions. `RandomScaling` is the power 2.
    view : {"diagonal", "projection"}
        What is kept; there is no full covariance, since the functional is not a quadratic form.

    Notes
    -----
    Time per row and memory are O(dim). Intervals for a direction v are measured on the path of v'theta,

        v'theta_bar +- q_m n^(-1/2) (int_0^1 |v'B_n(r)|^m dr)^(1/m),  B_n(r) = sqrt(n) r (theta_bar_{nr} - theta_bar_n).

    References
    ----------
    X. Li, J. Liang and Z. Zhang, *Online statistical inference for nonlinear stochastic approximation with Markovian
    data* (2023).

    Examples
    --------
    >>> watcher = FunctionalScaling(2, power=4).update_many(np.random.default_rng(0).standard_normal((1000, 2)))
    >>> bool(watcher.interval([1.0, 1.0]).covers(0.0))
    True
    """

    kind = "functional-scaling"
    version = 1
    SCHEMA = Schema(
        kind,
        version,
        {**VIEW_FIELDS, "power": Whole(1, 6, doc="the power m: 1, 4 or 6"), **batch_fields()},
        {"size": kept_size},
        (
            VIEW_RELATION,
            Relation("have a `view` other than 'full' and a `power` of 1, 4 or 6", _tabulated),
            *batch_relations(),
        ),
        settings=(*VIEW_FIELDS, "power"),
    )

    def __init__(
        self, dim: int, *, power: int, view: ViewName = "diagonal", projection: ArrayLike | None = None
    ) -> None:
        super().__init__(dim, view, projection)
        if view == "full":
            raise InputError.of("view", "be 'diagonal' or 'projection': this is not a quadratic form", view)
        if isinstance(power, bool) or power not in MEAN_SQUARE:
            raise InputError.of("power", f"be one of {sorted(MEAN_SQUARE)} (RandomScaling is the power 2)", power)
        self.power = int(power)
        self._batches = DyadicBatches(self._view.size)

    @property
    def n_seen(self) -> int:
        return self._batches.n_seen

    def take(self, thetas: Vector) -> None:
        self._batches.take(self._view.apply(thetas))

    def estimate(self) -> Vector:
        self._need(1, "an estimate")
        return self._batches.mean()

    def bridge(self) -> Vector:
        """Rescaled path of sums, B_n at the ends of the batches.

        Returns
        -------
        ndarray of shape (batches, size)
            One coordinate in each column; the last row is zero.
        """
        self._need(_LEAST_ROWS, "a path")
        sums = self._batches.sums()
        path = np.cumsum(sums - sums.mean(axis=0), axis=0)
        return np.asarray(path / np.sqrt(len(sums) * self._batches.length))

    def covariance(self) -> Vector:
        self._need(_LEAST_ROWS, "a covariance")
        return path_variances(self.bridge(), self.power)

    def law(self) -> FunctionalLaw:
        self._need(_LEAST_ROWS, "an interval")
        return FunctionalLaw(self.power)

    def diagnostics(self) -> Diagnostics:
        return Diagnostics(self.law().degrees_of_freedom)

    def result(self, critical: Critical = "calibrated") -> Result:
        known = vars(super().result(critical))
        return PathResult(**known, power=self.power, bridge=self.bridge())

    def pool(self, other: Self) -> Self:
        raise CannotPool("cannot pool functionals of paths: their mix has no tabulated law; use RandomScaling")

    def to_state(self) -> State:
        return self._head() | {"power": self.power} | self._batches.to_state()

    @classmethod
    def _restored(cls, state: State) -> Self:
        watcher = cls(state["dim"], power=state["power"], view=state["view"], projection=state["projection"])
        watcher._batches.restore(state)
        return watcher
