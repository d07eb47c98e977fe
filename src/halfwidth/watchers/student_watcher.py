"""What the watchers with a Student law share: pooling, diagnostics and state.

Their covariance estimate is, in the limit, Sigma times a chi-square with nu degrees of freedom over nu, exactly or up
to its first two moments, and independent of the average: the estimate uses contrasts of batches only. Hence t with nu
degrees of freedom, and independent trajectories are pooled with weights nu, whose sum is the pooled nu.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.inference.diagnostics import BLOCKS_PER_CORRELATION_TIME, Diagnostics, batch_diagnostics
from halfwidth.inference.student_law import StudentLaw
from halfwidth.kernels.arrays import Vector
from halfwidth.state.containers import ListOf, Optional
from halfwidth.state.fields import Array, Field, Real
from halfwidth.state.schema import Relation, Schema
from halfwidth.watchers.base import State
from halfwidth.watchers.state_parts import check_array
from halfwidth.watchers.view import VIEW_FIELDS, VIEW_RELATION, ViewName, kept_size, scatter_shape, symmetric
from halfwidth.watchers.viewed_watcher import ViewedWatcher

_POOLED_FIELDS: dict[str, Field] = {
    "pooled": ListOf(Real(0), doc="rows, degrees of freedom and longest block of pooled trajectories; else empty"),
    "pooled_estimate": Optional(Array(("size",)), doc="their average"),
    "pooled_covariance": Optional(Array(scatter_shape), doc="their covariance"),
    "pooled_spread": Optional(Array(("size",), low=0), doc="the variance of single iterates"),
}


def _pooled_whole(state: State) -> bool:
    there = [state[name] is not None for name in ("pooled_estimate", "pooled_covariance", "pooled_spread")]
    if not state["pooled"]:
        return not any(there)
    n, nu, block = state["pooled"]
    return all(there) and n == int(n) >= 2 and nu > 0 and 1 <= block == int(block) <= n


def student_schema(
    kind: str, version: int, settings: dict[str, Field], store: dict[str, Field], relations: tuple[Relation, ...]
) -> Schema:
    """The schema of a watcher with a Student law: view, settings, what is pooled, what one trajectory left."""
    own = (VIEW_RELATION, Relation("have all or nothing of what is pooled", _pooled_whole))
    return Schema(
        kind,
        version,
        VIEW_FIELDS | settings | _POOLED_FIELDS | store,
        {"size": kept_size},
        (*own, symmetric("pooled_covariance"), *relations),
        settings=(*VIEW_FIELDS, *settings),
    )


@dataclass(frozen=True)
class Pooled:
    """What is left of independent trajectories once they are joined."""

    n: int
    estimate: Vector
    covariance: Vector
    nu: float
    spread: Vector
    block: int


class StudentWatcher(ViewedWatcher):
    """A watcher whose studentised average has a t law; subclasses fill in the estimator of one trajectory."""

    settings: tuple[str, ...]
    """The arguments of the constructor other than the dimension and the view, each kept under its own name."""
    least_rows: int
    """From so many rows on there is a covariance."""
    times_per_block: float = BLOCKS_PER_CORRELATION_TIME
    """How many correlation times a block must hold."""

    def __init__(self, dim: int, view: ViewName, projection: ArrayLike | None) -> None:
        super().__init__(dim, view, projection)
        self._pooled: Pooled | None = None

    @abstractmethod
    def _rows(self) -> int:
        """How many iterates this trajectory has shown."""

    @abstractmethod
    def _take(self, seen: Vector) -> None:
        """See what the view shows of the next iterates."""

    @abstractmethod
    def _average(self) -> Vector:
        """The estimate, from at least one row."""

    @abstractmethod
    def _covariance(self) -> Vector:
        """The covariance, from at least `least_rows` rows."""

    @abstractmethod
    def _nu(self) -> float:
        """Its degrees of freedom."""

    @abstractmethod
    def _spread(self) -> Vector:
        """The variance of single iterates."""

    @abstractmethod
    def _block_rows(self) -> int:
        """The rows in the longest block, from at least `least_rows` rows."""

    @abstractmethod
    def _store(self) -> State:
        """What one trajectory has left behind."""

    @abstractmethod
    def _restore(self, state: State) -> None:
        """Become what `_store` described."""

    def _settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.settings}

    @property
    def n_seen(self) -> int:
        return self._pooled.n if self._pooled else self._rows()

    def take(self, thetas: Vector) -> None:
        if self._pooled:
            self._refuse_update()
        self._take(self._view.apply(thetas))

    def estimate(self) -> Vector:
        if self._pooled:
            return self._pooled.estimate.copy()
        self._need(1, "an estimate")
        return self._average()

    def covariance(self) -> Vector:
        if self._pooled:
            return self._pooled.covariance.copy()
        self._need(self.least_rows, "a covariance")
        return self._covariance()

    def law(self) -> StudentLaw:
        if self._pooled:
            return StudentLaw(self._pooled.nu)
        self._need(self.least_rows, "an interval")
        return StudentLaw(self._nu())

    def block_rows(self) -> int:
        """Number of rows in the longest block or window.

        Returns
        -------
        int
            Rows; a block should hold several correlation times (`diagnostics`).

        Raises
        ------
        NotEnoughData
            Too few iterates were seen.
        """
        if self._pooled:
            return self._pooled.block
        self._need(self.least_rows, "a block")
        return self._block_rows()

    def diagnostics(self) -> Diagnostics:
        summary = self._summary()
        variances, moving = self._long_run_variances(), summary.spread > 0
        time = float(np.max(0.5 * variances[moving] / summary.spread[moving], initial=0.0))
        return batch_diagnostics(summary.nu, time, summary.block, summary.n, self.times_per_block)

    def _long_run_variances(self) -> Vector:
        """The variances of sqrt(n) times the average."""
        covariance = self.covariance()
        return covariance if self._diagonal else np.diag(covariance)

    def _summary(self) -> Pooled:
        if self._pooled:
            return self._pooled
        nu = self.law().degrees_of_freedom
        return Pooled(self.n_seen, self.estimate(), self.covariance(), nu, self._spread(), self.block_rows())

    def pool(self, other: Self) -> Self:
        self._check_partner(other, self.least_rows)
        # The average is weighted by rows, the covariance by degrees of freedom, which add up.
        a, b = self._summary(), other._summary()
        n, nu = a.n + b.n, a.nu + b.nu
        joined = self._blank()
        joined._pooled = Pooled(
            n,
            (a.n * a.estimate + b.n * b.estimate) / n,
            (a.nu * a.covariance + b.nu * b.covariance) / nu,
            nu,
            (a.n * a.spread + b.n * b.spread) / n,
            max(a.block, b.block),
        )
        return joined

    def to_state(self) -> State:
        state, pooled = self._head() | self._settings(), self._pooled
        state["pooled"] = [] if pooled is None else [pooled.n, pooled.nu, pooled.block]
        for name in ("estimate", "covariance", "spread"):
            state[f"pooled_{name}"] = None if pooled is None else getattr(pooled, name).copy()
        return state | self._store()

    @classmethod
    def _restored(cls, state: State) -> Self:
        settings = {name: state[name] for name in cls.settings}
        watcher = cls(state["dim"], view=state["view"], projection=state["projection"], **settings)
        watcher._restore(state)
        if state["pooled"]:
            n, nu, block = state["pooled"]
            size = (watcher._view.size,)
            shapes = {"estimate": size, "covariance": size if watcher._diagonal else size * 2, "spread": size}
            arrays = {name: check_array(state, f"pooled_{name}", shape) for name, shape in shapes.items()}
            watcher._pooled = Pooled(n=int(n), nu=float(nu), block=int(block), **arrays)
        return watcher
