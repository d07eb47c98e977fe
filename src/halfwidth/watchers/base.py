"""The watcher contract: sees a trajectory, whoever made it, and estimates the covariance of its average.

A new estimator is one file with one subclass that fills in the abstract methods; intervals, tests and summaries
come from the result it builds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.errors import BadState, InputError
from halfwidth.inference import Interval, LimitLaw, NormalLaw, Result
from halfwidth.inference.diagnostics import Diagnostics
from halfwidth.state.schema import Schema, build, validate

Critical = Literal["calibrated", "normal"]
State = dict[str, Any]


def check_array(state: State, name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """A copy of an array of a state, which must have the shape that its watcher expects."""
    value = np.array(state.get(name), dtype=np.float64)
    if value.shape != shape:
        raise InputError.of(f"state[{name!r}]", f"have shape {shape}", value.shape)
    return value


def folded(state: State, *parts: str) -> State:
    """A flat state with its parts as states of their own, as their schemas have them."""
    starts = tuple(f"{part}." for part in parts)
    own = {key: value for key, value in state.items() if not str(key).startswith(starts)}
    return own | {part: unnested(part, state) for part in parts}


def nested(name: str, state: State) -> State:
    """A watcher's state as part of another's, which stays flat."""
    return {f"{name}.{key}": value for key, value in state.items()}


def unnested(name: str, state: State) -> State:
    """The part that `nested` put there."""
    start = f"{name}."
    return {str(key).removeprefix(start): value for key, value in state.items() if str(key).startswith(start)}


def watcher_kinds() -> dict[str, type[Watcher]]:
    """Every kind of watcher that has a state."""
    found, families = {}, [Watcher]
    while families:
        family = families.pop()
        if "SCHEMA" in vars(family):
            found[family.kind] = family
        families += family.__subclasses__()
    return found


def watcher_schemas() -> dict[str, Schema]:
    """The schemas of all watchers, by kind."""
    return {kind: watcher.SCHEMA for kind, watcher in watcher_kinds().items()}


def restored(state: State) -> Watcher:
    """The watcher of any kind that `to_state` described."""
    kind, kinds = state.get("kind"), watcher_kinds()
    if not isinstance(kind, str) or kind not in kinds:
        raise BadState.at("state.kind", f"be one of {', '.join(sorted(kinds))}", kind)
    return kinds[kind].from_state(state)


class Watcher(ABC):
    """Watches iterates of a fixed dimension and says how far their average may be from the truth."""

    kind: str
    version: int
    dim: int
    SCHEMA: ClassVar[Schema]
    """What `to_state` gives and `from_state` insists on."""

    @property
    @abstractmethod
    def n_seen(self) -> int:
        """How many iterates were seen."""

    @abstractmethod
    def take(self, thetas: NDArray[np.float64]) -> None:
        """See the next iterates, one in each row of a contiguous, finite array: what `update_many` has checked."""

    @abstractmethod
    def estimate(self) -> NDArray[np.float64]:
        """The average of the iterates."""

    @abstractmethod
    def covariance(self) -> NDArray[np.float64]:
        """The covariance of sqrt(n) times the error of the average."""

    @abstractmethod
    def law(self) -> LimitLaw:
        """The law of the studentised average at this n."""

    @abstractmethod
    def diagnostics(self) -> Diagnostics:
        """What the covariance rests on."""

    @abstractmethod
    def pool(self, other: Self) -> Self:
        """Join with an independent trajectory; the result can be read and pooled again, not updated."""

    @abstractmethod
    def to_state(self) -> State:
        """Plain numbers and arrays, with `kind` and `version`."""

    @classmethod
    @abstractmethod
    def _restored(cls, state: State) -> Self:
        """The watcher of a state that follows the schema."""

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The watcher that `to_state` described.

        Raises
        ------
        BadState
            The state breaks a rule of `SCHEMA`; nothing was built.
        """
        validate(state, cls.SCHEMA)
        return build(cls.kind, lambda: cls._restored(state))

    def update_many(self, thetas: ArrayLike) -> Self:
        """See the next iterates, one in each row; a bad row raises and leaves the state as it was."""
        self.take(self._check_iterates(thetas))
        return self

    def update(self, theta: ArrayLike) -> Self:
        """See one more iterate."""
        return self.update_many(np.asarray(theta, dtype=np.float64)[None])

    def result(self, critical: Critical = "calibrated") -> Result:
        """Everything that can be said at this moment, frozen."""
        if critical not in ("calibrated", "normal"):
            raise InputError.of("critical", "be 'calibrated' or 'normal'", critical)
        law = self.law() if critical == "calibrated" else NormalLaw()
        return Result(self.estimate(), self.covariance(), self.n_seen, law, self.kind, self.diagnostics())

    def interval(
        self, direction: ArrayLike | None = None, level: float = 0.95, critical: Critical = "calibrated"
    ) -> Interval:
        """The interval for one direction (dim,), several (m, dim), or every coordinate when none is given."""
        return self.result(critical).interval(direction, level)

    def _check_iterates(self, thetas: ArrayLike) -> NDArray[np.float64]:
        array = np.ascontiguousarray(thetas, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] != self.dim:
            raise InputError.of("thetas", f"have shape (m, {self.dim})", np.shape(thetas))
        if np.isfinite(array.sum()):  # one quick pass; only an odd sum is looked at closely
            return array
        finite = np.isfinite(array)
        if not finite.all():
            row, column = (int(i) for i in np.argwhere(~finite)[0])
            raise InputError(
                f"thetas must be finite; row {row} of this call has {array[row, column]} in coordinate {column}. "
                "Nothing of this call was taken in"
            )
        return array
