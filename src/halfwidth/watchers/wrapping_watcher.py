"""A watcher around another one: the estimate is that of the inner watcher, and states hold the inner state."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Self

from halfwidth.inference.diagnostics import Diagnostics
from halfwidth.kernels.arrays import Vector
from halfwidth.watchers.base import State, Watcher
from halfwidth.watchers.state_parts import folded


class WrappingWatcher(Watcher):
    """A watcher whose estimate and covariance are those of the watcher that it reports."""

    inner: ClassVar[tuple[str, ...]]
    """The fields of a state that hold the state of a watcher."""

    @property
    @abstractmethod
    def reported(self) -> Watcher:
        """The watcher that results come from."""

    def estimate(self) -> Vector:
        return self.reported.estimate()

    def covariance(self) -> Vector:
        return self.reported.covariance()

    def diagnostics(self) -> Diagnostics:
        return self.reported.diagnostics()

    @classmethod
    def from_state(cls, state: State) -> Self:
        return super().from_state(folded(state, *cls.inner))
