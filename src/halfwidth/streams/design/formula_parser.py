"""A formula to a tree, by a grammar of our own: nothing in it is ever evaluated as code.

    formula  = [side "~"] sum
    sum      = product (("+" | "-") product)*          terms in, terms out
    product  = cross ("*" cross)*                      a*b is a + b + a:b
    cross    = power (":" power)*                      an interaction
    power    = atom ["**" number]                      (a + b)**2 is a + b + a:b
    atom     = "0" | "1" | "." | column | call | "(" sum ")"

Inside calls stand expressions of columns and numbers with + - * / ** and comparisons. Names that are no Python names go
into backticks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from halfwidth.streams.design.expression_parser import ExpressionParser
from halfwidth.streams.design.expressions import FUNCTIONS, Call, Column, Expression
from halfwidth.streams.design.factors import BASES, BasisSpec, CategorySpec, Factor, NumericSpec, OffsetSpec

_MOST_DIGITS = 300


class Sum(NamedTuple):
    """Signed parts: terms to add, and terms to take out."""

    parts: tuple[tuple[int, Any], ...]


class Product(NamedTuple):
    """`*` between parts."""

    parts: tuple[Any, ...]


class Cross(NamedTuple):
    """`:` between parts."""

    parts: tuple[Any, ...]


class Power(NamedTuple):
    """`**`: all interactions up to so many factors."""

    base: Any
    exponent: int


class Constant(NamedTuple):
    """0 or 1: without or with an intercept."""

    value: int


class Dot(NamedTuple):
    """All other columns."""


class FormulaParser(ExpressionParser):
    """A formula as a tree: `left` (or None) and `right`."""

    def __init__(self, formula: str) -> None:
        super().__init__(formula)
        tildes = sum(token == ("mark", "~") for token in self._tokens)
        self.left: Expression | None = None
        if tildes > 1:
            raise self._error("it has more than one ~")
        if tildes and self._peek() != "~":
            self.left = self._expression()
            if self._peek() != "~":
                raise self._error("it must have one target on the left of ~, like y or log(y)")
        if tildes:
            self._take("~")
        self.right = self._sum()
        if self._at < len(self._tokens):
            raise self._error(f"{self._tokens[self._at].text!r} is not expected there")

    def _sum(self) -> Sum:
        self._deeper()
        sign = 1
        if self._peek() in ("+", "-"):
            sign = 1 if self._next().text == "+" else -1
        parts = [(sign, self._product())]
        while self._peek() in ("+", "-"):
            sign = 1 if self._next().text == "+" else -1
            parts.append((sign, self._product()))
        self._depth -= 1
        return Sum(tuple(parts))

    def _product(self) -> Any:
        parts = [self._cross()]
        while self._peek() == "*":
            self._next()
            parts.append(self._cross())
        if self._peek() == "/":
            raise self._error("'/' between terms is not in the list; write a + a:b, or I(a / b) for a quotient")
        return parts[0] if len(parts) == 1 else Product(tuple(parts))

    def _cross(self) -> Any:
        parts = [self._power()]
        while self._peek() == ":":
            self._next()
            parts.append(self._power())
        return parts[0] if len(parts) == 1 else Cross(tuple(parts))

    def _power(self) -> Any:
        base = self._atom()
        if self._peek() not in ("**", "^"):
            return base
        self._next()
        token = self._next()
        exponent = self._number(token.text) if token.kind == "number" else None
        if not isinstance(exponent, int) or not 1 <= exponent <= 10:
            raise self._error(f"a whole number from 1 to 10 must follow '**', not {token.text!r}")
        return Power(base, exponent)

    def _atom(self) -> Any:
        token = self._next()
        if token == ("mark", "("):
            return self._closed(self._sum())
        if token == ("mark", "."):
            return Dot()
        if token.kind == "number":
            if token.text not in ("0", "1"):
                raise self._error(f"the number {token.text} is no term; only 0 and 1 are (without and with intercept)")
            return Constant(int(token.text))
        if token.kind == "quoted" or (token.kind == "name" and self._peek() != "("):
            return NumericSpec(Column(token.text))  # or a category: the data tell
        if token.kind == "name":
            return self._call(token.text)
        raise self._error(f"{token.text!r} is not expected there")

    def _call(self, name: str) -> Factor:
        """A call among terms: one of the fixed list."""
        self._take("(")
        self._deeper()
        if name in FUNCTIONS:
            factor: Factor = NumericSpec(Call(name, self._expression()))
        elif name == "I":
            factor = NumericSpec(self._expression(), wrapped=True)
        elif name == "offset":
            factor = OffsetSpec(self._expression())
        elif name == "Q":
            factor = NumericSpec(Column(self._string()))
        elif name == "C":
            factor = CategorySpec(self._column(name), **self._options(name, {"reference"}))
        elif name in BASES:
            inner = self._expression()
            factor = BasisSpec.of(name, inner, self._arguments(name))
        else:
            known = ", ".join([*FUNCTIONS, *BASES, "C", "I", "Q", "offset"])
            raise self._error(f"{name!r} is not in the list of transforms; known: {known}")
        self._take(")")
        self._depth -= 1
        return factor

    def _column(self, function: str) -> str:
        expression = self._expression()
        if not isinstance(expression, Column):
            raise self._error(f"{function}() takes a column, not {expression}")
        return expression.name

    def _options(self, function: str, known: set[str]) -> dict[str, Any]:
        positional, named = self._arguments(function)
        odd = [str(value) for value in positional] + [name for name in named if name not in known]
        if odd:
            raise self._error(f"{function}() does not take {odd[0]!r}; it takes {', '.join(sorted(known))}")
        return named

    def _arguments(self, function: str) -> tuple[list[Any], dict[str, Any]]:
        """What follows the first argument: constants, by place or by name."""
        positional: list[Any] = []
        named: dict[str, Any] = {}
        while self._peek() == ",":
            self._next()
            here = self._tokens[self._at : self._at + 2]
            if len(here) == 2 and here[0].kind == "name" and here[1] == ("mark", "="):
                self._at += 2
                named[here[0].text] = self._constant(function)
            else:
                positional.append(self._constant(function))
        return positional, named

    def _constant(self, function: str) -> Any:
        self._deeper()
        token = self._next()
        value: Any = None
        if token.kind == "text":
            value = token.text[1:-1]
        elif token.kind == "number":
            value = self._number(token.text)
        elif token == ("mark", "-"):
            value = self._constant(function)
            value = -value if isinstance(value, float | int) else None
        elif token == ("mark", "["):
            value = [self._constant(function)]
            while self._peek() == ",":
                self._next()
                value.append(self._constant(function))
            self._take("]")
        if value is None:
            raise self._error(f"{function}() takes constants after its first argument, not {token.text!r}")
        self._depth -= 1
        return value

    def _number(self, text: str) -> float:
        if not text.isdecimal():
            return float(text)
        if len(text) > _MOST_DIGITS:
            raise self._error(f"a whole number has more than {_MOST_DIGITS} digits")
        return int(text)
