"""The fields of a state that hold others.

| field      | holds                                                                       |
|------------|-----------------------------------------------------------------------------|
| `Optional` | None, or another field                                                      |
| `Either`   | one of several fields, whichever fits                                       |
| `ListOf`   | a list (or tuple) of one kind of field                                      |
| `Row`      | a list of fixed length, each place with its own field                       |
| `MapOf`    | a dict from text to one kind of field                                       |
| `Named`    | a dict with stated names, in the dimensions of the state around it          |
| `Nested`   | a state with a schema of its own                                            |
| `Variant`  | one of several nested states, told apart by one of their fields             |
| `Plain`    | any plain data, bounded in depth: what is shown to people and never used    |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfwidth.errors import BadState
from halfwidth.state.fields import Field, Scope

if TYPE_CHECKING:
    from halfwidth.state.schema import Schema

_DEEPEST = 16


@dataclass(frozen=True)
class _OfOne(Field):
    """A field made of another one."""

    inner: Field
    doc: str = ""


@dataclass(frozen=True)
class _OfSeveral(Field):
    """A field made of others."""

    inner: Sequence[Field]
    doc: str = ""


class Optional(_OfOne):
    """A field, or None."""

    def check(self, value: Any, where: str, scope: Scope) -> None:
        if value is not None:
            self.inner.check(value, where, scope)

    def rule(self) -> str:
        return f"be empty, or {self.inner.rule().removeprefix('be ')}"


class Either(_OfSeveral):
    """One of several fields, whichever fits."""

    def check(self, value: Any, where: str, scope: Scope) -> None:
        for choice in self.inner:
            try:
                return choice.check(value, where, scope)
            except BadState:
                continue
        raise self.refuse(where, value)

    def rule(self) -> str:
        return " or ".join(choice.rule() for choice in self.inner)


@dataclass(frozen=True)
class ListOf(Field):
    """A list of fields of one kind."""

    inner: Field
    least: int = 0
    most: int | None = None
    doc: str = ""

    def check(self, value: Any, where: str, scope: Scope) -> None:
        if not isinstance(value, (list, tuple)) or not self.least <= len(value) <= self._most:
            raise self.refuse(where, value)
        for i, item in enumerate(value):
            self.inner.check(item, f"{where}[{i}]", scope)

    @property
    def _most(self) -> float:
        return math.inf if self.most is None else self.most

    def rule(self) -> str:
        bounds = f" of {self.least} to {self.most}" if self.most is not None else ""
        bounds = f" of at least {self.least}" if self.least and not bounds else bounds
        return f"be a list{bounds}, each of which must {self.inner.rule()}"


class Row(_OfSeveral):
    """A list with a stated field at each place."""

    def check(self, value: Any, where: str, scope: Scope) -> None:
        if not isinstance(value, (list, tuple)) or len(value) != len(self.inner):
            raise self.refuse(where, value)
        for i, (place, item) in enumerate(zip(self.inner, value, strict=True)):
            place.check(item, f"{where}[{i}]", scope)

    def rule(self) -> str:
        return "be a list: " + "; ".join(place.rule() for place in self.inner)


class MapOf(_OfOne):
    """A dictionary with text keys and fields of one kind."""

    def check(self, value: Any, where: str, scope: Scope) -> None:
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise self.refuse(where, value)
        for key, item in value.items():
            self.inner.check(item, f"{where}.{key}", scope)

    def rule(self) -> str:
        return f"be a dict from text to values, each of which must {self.inner.rule()}"


@dataclass(frozen=True)
class Named(Field):
    """A dictionary with a stated field under each name; dimensions are those of the state around it."""

    fields: Mapping[str, Field]
    doc: str = ""

    def check(self, value: Any, where: str, scope: Scope) -> None:
        if not isinstance(value, dict) or set(value) != set(self.fields):
            raise self.refuse(where, list(value) if isinstance(value, dict) else value)
        for name, place in self.fields.items():
            place.check(value[name], f"{where}.{name}", scope)

    def rule(self) -> str:
        return f"name {', '.join(self.fields) or 'nothing'}"


@dataclass(frozen=True)
class Nested(Field):
    """A dictionary that obeys a schema of its own."""

    schema: Schema
    doc: str = ""

    def check(self, value: Any, where: str, scope: Scope) -> None:
        self.schema.check(value, where)

    def rule(self) -> str:
        return f"be a {self.schema.title}"


@dataclass(frozen=True)
class Variant(Field):
    """`choices` gives the schemas by the value of the field `by`; a function, so that classes may still register."""

    by: str
    choices: Callable[[], Mapping[str, Schema]]
    doc: str = ""

    def check(self, value: Any, where: str, scope: Scope) -> None:
        if not isinstance(value, dict):
            raise self.refuse(where, value)
        name, choices = value.get(self.by), self.choices()
        if not isinstance(name, str) or name not in choices:
            raise BadState.at(f"{where}.{self.by}", f"be one of {', '.join(sorted(choices))}", name)
        choices[name].check(value, where)

    def rule(self) -> str:
        return f"be a nested state with `{self.by}` one of {', '.join(sorted(self.choices()))}"


@dataclass(frozen=True)
class Plain(Field):
    """Anything that JSON can hold, and arrays, to a limited depth."""

    doc: str = ""

    def check(self, value: Any, where: str, scope: Scope) -> None:
        self._look(value, where, _DEEPEST)

    def _look(self, value: Any, where: str, depth: int) -> None:
        if depth == 0:
            raise self.refuse(where, "deeper nesting")
        if isinstance(value, dict):
            for key, item in value.items():
                self._look(item, f"{where}.{key}", depth - 1)
        elif isinstance(value, (list, tuple)):
            for i, item in enumerate(value):
                self._look(item, f"{where}[{i}]", depth - 1)
        elif value is not None and not isinstance(value, (bool, int, float, str, np.generic, np.ndarray)):
            raise self.refuse(where, value)

    def rule(self) -> str:
        return f"be plain data, at most {_DEEPEST} levels deep"
