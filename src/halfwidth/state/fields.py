"""The single values that a state may hold, each with the rule that it is held to.

| field      | holds                                                                       |
|------------|-----------------------------------------------------------------------------|
| `Whole`    | an integer between two bounds                                               |
| `Real`     | a number between two bounds, finite unless said otherwise                   |
| `Bool`     | True or False                                                               |
| `Text`     | a string, one of a few where they are named                                 |
| `Array`    | an array of a kind of numbers and a shape, finite and bounded               |

What holds other fields is in `halfwidth.state.containers`. A shape is a tuple of numbers and of names of dimensions
(`Scope.size`), or a function of the state. A check never allocates by a number that it reads.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from halfwidth.errors import BadState

State = dict[str, Any]
Shape = tuple["int | str", ...]

MOST_ROWS = 2**53
"""No count exceeds this: beyond it float64 skips integers."""
_LONGEST_TEXT = 1 << 20


@dataclass
class Scope:
    """The state that is being checked, and the sizes of its named dimensions."""

    state: State
    rules: Mapping[str, Callable[[State], int]] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)

    def size(self, name: str, found: int) -> int:
        """A dimension: computed by its rule, or a count of that name, or what the first array that has it shows."""
        if name not in self.sizes:
            if name in self.rules:
                self.sizes[name] = int(self.rules[name](self.state))
            else:
                count = self.state.get(name)
                self.sizes[name] = int(count) if isinstance(count, (int, np.integer)) else found
        return self.sizes[name]


class Field(ABC):
    """One place of a state; `doc` says what it is, for the page of the file format."""

    doc: str

    @abstractmethod
    def check(self, value: Any, where: str, scope: Scope) -> None:
        """Raise `BadState` unless the value follows the rule."""

    @abstractmethod
    def rule(self) -> str:
        """The rule in words, after "must"."""

    def refuse(self, where: str, value: Any) -> BadState:
        return BadState.at(where, self.rule(), value)


Fields = dict[str, Field]


@dataclass(frozen=True)
class Whole(Field):
    """A whole number between two bounds."""

    low: int = 0
    high: int = MOST_ROWS
    doc: str = ""

    def check(self, value: Any, where: str, scope: Scope) -> None:
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if not whole or not self.low <= value <= self.high:
            raise self.refuse(where, value)

    def rule(self) -> str:
        return f"be an integer of at least {self.low}" + ("" if self.high == MOST_ROWS else f", at most {self.high}")


@dataclass(frozen=True)
class Real(Field):
    """A number between two bounds."""

    low: float = -math.inf
    high: float = math.inf
    strict: bool = False
    finite: bool = True
    doc: str = ""

    def check(self, value: Any, where: str, scope: Scope) -> None:
        number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
        if number and isinstance(value, int) and abs(value) > MOST_ROWS:
            number = False
        if not number or (self.finite and not math.isfinite(value)):
            raise self.refuse(where, value)
        inside = self.low < value < self.high if self.strict else self.low <= value <= self.high
        if not inside:
            raise self.refuse(where, value)

    def rule(self) -> str:
        kind = "be a finite number" if self.finite else "be a number"
        if (self.low, self.high) == (-math.inf, math.inf):
            return kind
        return f"{kind} {'strictly ' if self.strict else ''}between {self.low:g} and {self.high:g}"


@dataclass(frozen=True)
class Bool(Field):
    """True or False."""

    doc: str = ""

    def check(self, value: Any, where: str, scope: Scope) -> None:
        if not isinstance(value, (bool, np.bool_)):
            raise self.refuse(where, value)

    def rule(self) -> str:
        return "be true or false"


@dataclass(frozen=True)
class Text(Field):
    """A text, possibly one of several."""

    among: tuple[str, ...] = ()
    doc: str = ""

    def check(self, value: Any, where: str, scope: Scope) -> None:
        if not isinstance(value, str) or len(value) > _LONGEST_TEXT or (self.among and value not in self.among):
            raise self.refuse(where, value)

    def rule(self) -> str:
        return f"be one of {', '.join(map(repr, self.among))}" if self.among else "be text"


@dataclass(frozen=True)
class Array(Field):
    """`kinds` are NumPy's letters: f for float64, i for int64, u for uint64, b for bool, U for text, S for bytes."""

    shape: Shape | Callable[[State], Shape]
    kinds: str = "f"
    low: float = -math.inf
    high: float = math.inf
    finite: bool = True
    any_width: bool = False
    any_shape: bool = False
    doc: str = ""

    def check(self, value: Any, where: str, scope: Scope) -> None:
        if not isinstance(value, np.ndarray) or value.dtype.kind not in self.kinds:
            raise self.refuse(where, value)
        if value.dtype.kind in "fiu" and value.dtype.itemsize != 8 and not self.any_width:
            raise BadState.at(where, "hold numbers of 64 bits", value.dtype)
        if self.any_shape:
            return self._check_values(value, where)
        wanted = self.shape(scope.state) if callable(self.shape) else self.shape
        if value.ndim != len(wanted):
            raise self.refuse(where, value)
        sizes = tuple(
            side if isinstance(side, int) else scope.size(side, n) for side, n in zip(wanted, value.shape, strict=True)
        )
        if value.shape != sizes:
            raise BadState.at(where, f"have shape {sizes}", value.shape)
        self._check_values(value, where)

    def _check_values(self, value: Any, where: str) -> None:
        if value.dtype.kind not in "fiu" or not value.size:
            return
        if self.finite and value.dtype.kind == "f" and not np.isfinite(value).all():
            raise BadState.at(where, "be finite", value[~np.isfinite(value)][0])
        least, most = value.min(), value.max()
        if least < self.low or most > self.high:
            raise BadState.at(where, f"lie between {self.low:g} and {self.high:g}", least if least < self.low else most)

    def rule(self) -> str:
        words = {"f": "float64", "i": "int64", "u": "uint64", "b": "bool", "U": "text", "S": "bytes"}
        kinds = " or ".join(words[kind] for kind in self.kinds)
        shape = "its shape" if callable(self.shape) else f"shape ({', '.join(map(str, self.shape))})"
        bounds = "" if (self.low, self.high) == (-math.inf, math.inf) else f", from {self.low:g} to {self.high:g}"
        return f"be an array of {kinds} of {shape}{bounds}"
