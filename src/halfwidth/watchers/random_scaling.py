"""Random scaling: an interval without a consistent covariance, and without anything to tune.

    V_n = (1/n^2) sum_k k^2 (theta_bar_k - theta_bar_n)(theta_bar_k - theta_bar_n)'
        = (A - b theta_bar' - theta_bar b' + c theta_bar theta_bar') / n^2,          covariance() = 6 V_n.

V_n converges not to Sigma but to Sigma^(1/2) int BB' Sigma^(1/2), B a Brownian bridge, whose mean is Sigma/6: six
times V_n has mean Sigma, so that standard errors have their usual size. The ratio stays pivotal.

| paper                        | here          |
|------------------------------|---------------|
| A = sum k^2 theta_bar_k^2    | `scatter`     |
| b = sum k^2 theta_bar_k      | `cross`       |
| c = sum k^2                  | `squares`     |
| k theta_bar_k                | `block_sum`   |

Law: Z / sqrt(6 int B^2), with Karhunen-Loeve weights 6/(j pi)^2, hence exact at every level. In the paper's scale the
two-sided 95% value is 6.747. All sums are of theta minus a reference, which moves to the running mean whenever n has
doubled.

S. Lee, Y. Liao, M. H. Seo and Y. Shin, *Fast and robust online inference with stochastic gradient descent via random
scaling*, AAAI 2022.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.inference.brownian_law import BrownianLaw, pooled_law
from halfwidth.inference.diagnostics import Diagnostics
from halfwidth.inference.scaling_laws import scaling_law
from halfwidth.kernels.arrays import Vector
from halfwidth.state.containers import ListOf
from halfwidth.state.fields import Array, Field, Real, Whole
from halfwidth.state.schema import Relation, Schema, close
from halfwidth.watchers.base import State
from halfwidth.watchers.block_sums import extend_sums
from halfwidth.watchers.state_parts import check_array
from halfwidth.watchers.view import (
    VIEW_FIELDS,
    VIEW_RELATION,
    Scatter,
    ViewName,
    kept_size,
    scatter_shape,
    symmetric,
)
from halfwidth.watchers.viewed_watcher import ViewedWatcher

_BUFFER_NUMBERS = 65_536
_ARRAYS = ("reference", "block_sum", "cross")

_FIELDS: dict[str, Field] = {
    "pieces": ListOf(Whole(2), doc="rows of each trajectory, if this is pooled; else empty"),
    "n_seen": Whole(doc="iterates seen"),
    "squares": Real(0.0, doc="c = sum k^2"),
    "reference": Array(("size",), doc="what all sums are relative to"),
    "block_sum": Array(("size",), doc="n theta_bar_n"),
    "cross": Array(("size",), doc="b = sum k^2 theta_bar_k"),
    "scatter": Array(scatter_shape, doc="A = sum k^2 theta_bar_k theta_bar_k'"),
}


def _counts_follow_rows(state: State) -> bool:
    n, pieces = int(state["n_seen"]), state["pieces"]
    if pieces:
        return len(pieces) >= 2 and sum(pieces) == n and state["squares"] == 0.0 and not state["cross"].any()
    return close(state["squares"], n * (n + 1) * (2 * n + 1) // 6)


class RandomScaling(ViewedWatcher):
    """Random scaling: an interval with nothing to tune.

    Parameters
    ----------
    view : {"full", "diagonal", "projection"}
        What is kept: time and memory are O(dim^2), O(dim) or O(p dim).

    Notes
    -----
    covariance() is 6 V_n with V_n = n^-2 sum_k k^2 (theta_bar_k - theta_bar_n)(theta_bar_k - theta_bar_n)'. It does not
    converge to Sigma; its mean does, and the studentised average has the law of Z / sqrt(6 int B^2), B a Brownian
    bridge. Intervals are wider than those of a consistent estimate. Pooled trajectories are weighted by rows, in the
    average and in the scaling.

    References
    ----------
    S. Lee, Y. Liao, M. H. Seo and Y. Shin, *Fast and robust online inference with stochastic gradient descent via
    random scaling*, AAAI 2022.

    Examples
    --------
    >>> watcher = RandomScaling(1).update_many(np.random.default_rng(0).standard_normal((1000, 1)))
    >>> round(6**0.5 * watcher.law().quantile(0.95), 3)  # in the paper's scale
    6.747
    """

    kind = "random-scaling"
    version = 1
    SCHEMA = Schema(
        kind,
        version,
        VIEW_FIELDS | _FIELDS,
        {"size": kept_size},
        (
            VIEW_RELATION,
            Relation("have `squares` and `pieces` that follow from `n_seen`", _counts_follow_rows),
            symmetric("scatter"),
        ),
        settings=tuple(VIEW_FIELDS),
    )

    def __init__(self, dim: int, *, view: ViewName = "full", projection: ArrayLike | None = None) -> None:
        super().__init__(dim, view, projection)
        size = self._view.size
        self._pieces: tuple[int, ...] = ()
        self._n = 0
        self._squares = 0.0
        self._reference = np.zeros(size)
        self._block_sum = np.zeros(size)
        self._cross = np.zeros(size)
        self._scatter = Scatter(size, self._diagonal)
        self._buffer = np.empty((max(1, min(4096, max(256, _BUFFER_NUMBERS // size))), size))

    @property
    def n_seen(self) -> int:
        return self._n

    def take(self, thetas: Vector) -> None:
        if self._pieces:
            self._refuse_update()
        seen = np.ascontiguousarray(self._view.apply(thetas))
        at = 0
        while at < len(seen):
            if self._n == 0:
                self._reference[:] = seen[0]
            doubled = 2 ** self._n.bit_length()
            rows = min(len(seen) - at, doubled - self._n, len(self._buffer))
            self._extend(seen[at : at + rows])
            at += rows
            if self._n == doubled:
                self._move_reference(self.estimate())

    def _extend(self, thetas: Vector) -> None:
        rows = len(thetas)
        sums = self._buffer[:rows]
        extend_sums(thetas, self._reference, self._block_sum, sums)
        self._scatter.add(sums)
        self._block_sum[:] = sums[-1]
        k = np.arange(self._n + 1, self._n + rows + 1, dtype=np.float64)
        self._cross += k @ sums
        self._squares += float(k @ k)
        self._n += rows

    def _move_reference(self, reference: Vector) -> None:
        step = self._reference - reference
        self._scatter.shift(step, self._cross, self._squares)
        self._cross += self._squares * step
        self._block_sum += self._n * step
        self._reference = reference

    def estimate(self) -> Vector:
        self._need(1, "an estimate")
        return np.asarray(self._reference + self._block_sum / self._n)

    def covariance(self) -> Vector:
        self._need(2, "a covariance")
        return 6.0 * self._scaled() / self._n

    def _scaled(self) -> Vector:
        """n V_n, or the sum of those of the pieces."""
        if self._pieces:
            return self._scatter.read()
        centred = Scatter.holding(self._scatter.read())
        centred.shift(-self._block_sum / self._n, self._cross, self._squares)
        return centred.read() / self._n

    def law(self) -> BrownianLaw:
        self._need(2, "an interval")
        pieces = self._pieces or (self._n,)
        return pooled_law((scaling_law(),) * len(pieces), tuple(n / self._n for n in pieces))

    def diagnostics(self) -> Diagnostics:
        return Diagnostics(self.law().degrees_of_freedom)

    def pool(self, other: Self) -> Self:
        self._check_partner(other, 2)
        joined = self._blank()
        joined._pieces = (self._pieces or (self._n,)) + (other._pieces or (other._n,))
        joined._n = self._n + other._n
        joined._reference = (self._n * self.estimate() + other._n * other.estimate()) / joined._n
        joined._scatter = Scatter.holding(self._scaled() + other._scaled())
        return joined

    def to_state(self) -> State:
        state = self._head() | {"pieces": list(self._pieces), "n_seen": self._n, "squares": self._squares}
        return state | {name: getattr(self, f"_{name}").copy() for name in _ARRAYS} | {"scatter": self._scatter.read()}

    @classmethod
    def _restored(cls, state: State) -> Self:
        watcher = cls(state["dim"], view=state["view"], projection=state["projection"])
        for name in _ARRAYS:
            setattr(watcher, f"_{name}", check_array(state, name, (watcher._view.size,)))
        watcher._scatter = Scatter.holding(check_array(state, "scatter", watcher._scatter.shape))
        watcher._pieces = tuple(int(n) for n in state["pieces"])
        watcher._n, watcher._squares = int(state["n_seen"]), float(state["squares"])
        return watcher
