"""Step sizes, truncation thresholds and block plans: plain callables, nothing else.

| paper                          | here                                     |
|--------------------------------|------------------------------------------|
| eta_k = eta k^-a               | `PowerStep(eta, exponent)`               |
| d_k = D k^-b                   | `Threshold(scale, exponent)`             |
| K_q, a ball                    | `TruncationSets(radius, growth, kind)`   |
| a_1 = 1, a_m = floor(c m^beta) | `BlockPlan(constant, exponent)`          |

A. Roy and K. Balasubramanian, *Online covariance estimation for SGD under Markovian sampling*, ask for
1/2 < a < 1, b < 3/8 and beta > 1/(1 - a). Their Assumption 4 as printed would also need a + b > 1, that is
b > 1/2 at a near 1/2, which contradicts b < 3/8 and their own choice a = 0.5005, b = 0.3; the conditions of
their remarks are the ones enforced here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from halfwidth.checks import check_positive
from halfwidth.errors import BadState, InputError

Schedule = Callable[[NDArray[np.int64]], NDArray[np.float64]]


def check_step_exponent(exponent: float) -> float:
    """The exponent a of the step, strictly between 1/2 and 1."""
    if not 0.5 < exponent < 1.0:
        raise InputError.of("step exponent a", "satisfy 1/2 < a < 1", exponent)
    return float(exponent)


@dataclass(frozen=True)
class PowerStep:
    """The step eta (k + offset)^-a at row k = 1, 2, ...

    >>> PowerStep(2.0, 0.505)(np.array([1, 100])).round(4).tolist()
    [2.0, 0.1954]
    """

    eta: float = 0.5
    exponent: float = 0.505
    offset: float = 0.0
    within_theory: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_positive("eta", self.eta)
        check_step_exponent(self.exponent)
        if not (math.isfinite(self.offset) and self.offset >= 0):
            raise InputError.of("offset k0", "be at least 0 and finite", self.offset)

    def __call__(self, k: NDArray[np.int64]) -> NDArray[np.float64]:
        # exp and log are vectorised in NumPy, a real power is not: several times faster at equal precision.
        return np.asarray(self.eta * np.exp(-self.exponent * np.log(k + self.offset)), dtype=np.float64)


@dataclass(frozen=True)
class ConstantStep:
    """The same step at every row: for comparisons only, since its average does not converge to theta*."""

    eta: float
    within_theory: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_positive("eta", self.eta)

    def __call__(self, k: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.full(np.shape(k), self.eta)


@dataclass(frozen=True)
class Threshold:
    """The largest move D k^-b that truncated SGD lets pass at row k; before the first row it is infinite."""

    scale: float = 10.0
    exponent: float = 0.3

    def __post_init__(self) -> None:
        check_positive("threshold scale D", self.scale)
        if not 0.0 < self.exponent < 0.375:
            raise InputError.of("threshold exponent b", "satisfy 0 < b < 3/8", self.exponent)

    def __call__(self, k: NDArray[np.int64]) -> NDArray[np.float64]:
        k = np.asarray(k, dtype=np.float64)
        with np.errstate(divide="ignore"):
            return np.asarray(np.where(k > 0, self.scale * k**-self.exponent, np.inf))


@dataclass(frozen=True)
class TruncationSets:
    """The balls K_q that truncated SGD must stay in after q truncations.

    The paper leaves their growth open, and it matters: `"linear"` adds `growth` to the radius each time, while
    `"geometric"` multiplies it by `growth`, which lets later excursions become enormous.

    >>> TruncationSets()(np.array([0, 1, 2])).tolist()
    [10.0, 11.0, 12.0]
    """

    radius: float = 10.0
    growth: float = 1.0
    kind: Literal["linear", "geometric"] = "linear"

    def __post_init__(self) -> None:
        check_positive("radius", self.radius)
        check_positive("growth", self.growth)
        if self.kind not in ("linear", "geometric"):
            raise InputError.of("kind", "be 'linear' or 'geometric'", self.kind)
        if self.kind == "geometric" and self.growth <= 1.0:
            raise InputError.of("growth", "exceed 1 when kind='geometric', so that the sets grow", self.growth)

    def __call__(self, q: NDArray[np.int64]) -> NDArray[np.float64]:
        if self.kind == "linear":
            return np.asarray(self.radius + self.growth * q, dtype=np.float64)
        with np.errstate(over="ignore"):
            return np.asarray(self.radius * self.growth ** np.asarray(q, dtype=np.float64))


@dataclass(frozen=True)
class BlockPlan:
    """Where the growing blocks of overlapping batch means start: a_1 = 1, then floor(c m^beta).

    >>> BlockPlan.for_step(0.505).starts_up_to(600).tolist()
    [1, 32, 169, 541]
    """

    constant: float
    exponent: float

    def __post_init__(self) -> None:
        check_positive("block constant c", self.constant)
        check_positive("block exponent beta", self.exponent)
        if self.exponent <= 1.0:
            raise InputError.of("block exponent beta", "exceed 1, so that blocks grow", self.exponent)
        # c (m+1)^beta - c m^beta grows with m, so the first gaps decide for all of them.
        decisive = math.exp(min(-math.log(self.constant) / (self.exponent - 1.0), 7.0))
        try:
            self._check_increasing(2 + math.ceil(decisive))
        except OverflowError:
            raise InputError(
                f"block exponent beta must leave the first block starts finite; got {self.exponent!r} with constant "
                f"c={self.constant!r}: choose a smaller step exponent or block exponent"
            ) from None

    def _check_increasing(self, how_many: int) -> None:
        previous = 1
        for m in range(2, min(how_many, 1000) + 2):
            start = self.start(m)
            if start <= previous:
                raise InputError(
                    f"block starts must strictly increase; with constant c={self.constant!r} and exponent "
                    f"beta={self.exponent!r}, a_{m} = {start} comes after a_{m - 1} = {previous}: "
                    "choose a larger c"
                )
            previous = start

    @classmethod
    def for_step(cls, step_exponent: float, constant: float = 2.0, exponent: float | None = None) -> BlockPlan:
        """The plan for a step exponent a; beta = 2/(1-a) unless given, and always above 1/(1-a)."""
        a = check_step_exponent(step_exponent)
        if exponent is None:
            exponent = 2.0 / (1.0 - a)
        elif not exponent > 1.0 / (1.0 - a):
            raise InputError.of(
                "block_exponent beta",
                f"exceed 1/(1-a) = {1.0 / (1.0 - a):.4g} for step exponent a={a}",
                exponent,
            )
        return cls(float(constant), float(exponent))

    def start(self, m: int) -> int:
        """The first row of block m."""
        return 1 if m == 1 else math.floor(self.constant * m**self.exponent)

    def blocks_up_to(self, n: int) -> int:
        """How many blocks have begun by row n."""
        guess = max(1, int((max(n, 1) / self.constant) ** (1.0 / self.exponent)))
        while self.start(guess + 1) <= n:
            guess += 1
        while guess > 1 and self.start(guess) > n:
            guess -= 1
        return guess

    def starts_up_to(self, n: int) -> NDArray[np.int64]:
        """The first rows of all blocks that have begun by row n."""
        return np.array([self.start(m) for m in range(1, self.blocks_up_to(n) + 1)], dtype=np.int64)


SCHEDULES: dict[str, Any] = {cls.__name__: cls for cls in (PowerStep, ConstantStep, Threshold, TruncationSets)}
"""The schedules that a state can hold, by name."""


def schedule_to_state(schedule: Any, name: str) -> dict[str, Any]:
    """A schedule as its name and its numbers; `name` is the argument it was given as."""
    if type(schedule) not in SCHEDULES.values():
        rule = f"be one of {', '.join(SCHEDULES)} to be kept in a state"
        raise InputError.of(name, rule, type(schedule).__name__)
    return {"schedule": type(schedule).__name__, **asdict(schedule)}


def schedule_from_state(state: Any) -> Any:
    """The schedule that `schedule_to_state` described."""
    kind = SCHEDULES.get(str(state.get("schedule"))) if isinstance(state, dict) else None
    if kind is None:
        raise BadState.at("schedule", f"be one of {', '.join(SCHEDULES)}", state)
    values = {name: value for name, value in state.items() if name != "schedule"}
    names = {field.name for field in fields(kind)}
    if set(values) != names:
        raise BadState.at(f"schedule {kind.__name__}", f"name {', '.join(sorted(names))}", sorted(values))
    return kind(**values)
