"""The pieces of a formula's terms: an expression, a category, a basis of several columns, an offset."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

from halfwidth.errors import InputError
from halfwidth.streams.design.bases import (
    Basis,
    BSpline,
    Center,
    Constants,
    Harmonics,
    NaturalSpline,
    Poly,
    Scale,
)
from halfwidth.streams.design.expressions import Column, Expression, columns_of

BASES: dict[str, Basis] = {
    "scale": Scale(),
    "center": Center(),
    "poly": Poly(),
    "bs": BSpline(),
    "ns": NaturalSpline(),
    "harmonics": Harmonics(),
}


class _OfExpression:
    """What is computed from an expression of columns."""

    expression: Expression

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return tuple(dict.fromkeys(columns_of(self.expression)))


@dataclass(frozen=True)
class NumericSpec(_OfExpression):
    """An expression that gives one number for each row; a bare column of text becomes a category."""

    expression: Expression
    wrapped: bool = False

    @property
    def text(self) -> str:
        """Its name in results."""
        if isinstance(self.expression, Column):
            return self.expression.name
        return f"I({self.expression})" if self.wrapped else str(self.expression)


@dataclass(frozen=True)
class CategorySpec:
    """A column whose values are levels; `declared` when C() says so, not the data."""

    column: str
    reference: Any = None
    declared: bool = True

    @property
    def text(self) -> str:
        """Its name in results."""
        if not self.declared:
            return self.column
        inner = Column(self.column)
        return f"C({inner})" if self.reference is None else f"C({inner}, reference={self.reference!r})"

    @property
    def columns(self) -> tuple[str, ...]:
        """The column that it reads."""
        return (self.column,)


@dataclass(frozen=True)
class OffsetSpec(_OfExpression):
    """An expression that is added to the linear predictor."""

    expression: Expression

    @property
    def text(self) -> str:
        """How the formula calls it."""
        return f"offset({self.expression})"


@dataclass(frozen=True)
class BasisSpec(_OfExpression):
    """A transform of `BASES` applied to an expression."""

    name: str
    expression: Expression
    given: tuple[tuple[str, Any], ...]
    text: str

    @classmethod
    def of(cls, name: str, expression: Expression, arguments: tuple[list[Any], dict[str, Any]]) -> Self:
        """Check the arguments against what the transform takes."""
        basis = BASES[name]
        positional, named = arguments
        if len(positional) > len(basis.parameters):
            raise InputError.of(f"{name}()", f"take {', '.join(basis.parameters) or 'one argument'}", positional)
        given = dict(zip(basis.parameters, positional, strict=False))
        for key, value in named.items():
            if key not in basis.parameters or key in given:
                raise InputError.of(f"{name}()", f"take {', '.join(basis.parameters) or 'one argument'}", key)
            given[key] = value
        wrong = basis.check(given)
        if wrong:
            raise InputError.of(f"{name}()", f"be right: {wrong}", given)
        frozen = tuple((key, tuple(value) if isinstance(value, list) else value) for key, value in given.items())
        shown = tuple(_shown(value) for value in positional) + tuple(f"{k}={_shown(v)}" for k, v in named.items())
        return cls(name, expression, frozen, ", ".join([f"{name}({expression}", *shown]) + ")")

    @property
    def basis(self) -> Basis:
        """The transform."""
        return BASES[self.name]

    def fits(self, constants: Constants) -> bool:
        """Whether these can be the constants of this transform; those of a file may be anything."""
        expected = self.basis.sizes(self.parameters)
        rising = [*constants.get("bounds", [0.0, 1.0])]
        rising[1:1] = constants.get("knots", [])
        return (
            {name: len(values) for name, values in constants.items()} == expected
            and all(value > 0.0 for name in ("deviation", "norms") for value in constants.get(name, []))
            and ("bounds" not in constants or all(low < high for low, high in pairwise(rising)))
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """What was given after the first argument."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in self.given}


def _shown(value: Any) -> str:
    return repr(list(value)) if isinstance(value, tuple) else repr(value)


Factor = NumericSpec | CategorySpec | OffsetSpec | BasisSpec
