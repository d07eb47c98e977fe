"""Expressions of columns and numbers, parsed by recursive descent; the tokens of a formula."""

from __future__ import annotations

import re
from typing import NamedTuple, TypeVar

from halfwidth.errors import InputError
from halfwidth.streams.design.expressions import FUNCTIONS, Call, Column, Expression, Negative, Number, Operation

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)|(?P<name>[^\W\d]\w*(?:\.\w+)*)"
    r"|`(?P<quoted>[^`]+)`|(?P<text>'[^']*'|\"[^\"]*\")|(?P<mark>\*\*|<=|>=|==|!=|[-+*/:()~,.<>=\[\]^]))"
)
_LONGEST = 20_000
_DEEPEST = 60
_MOST_OPERATIONS = 200
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


T = TypeVar("T")


class Token(NamedTuple):
    """A piece of the formula: what kind, and its text."""

    kind: str
    text: str


def tokens(formula: str) -> list[Token]:
    """The pieces of a formula; a character that has no meaning in one raises."""
    if len(formula) > _LONGEST:
        raise InputError.of("formula", f"have at most {_LONGEST:,} characters", len(formula))
    found, at = [], 0
    while formula[at:].strip():
        match = _TOKEN.match(formula, at)
        if match is None:
            raise _refused(formula, f"{formula[at:].strip()[0]!r} has no meaning in a formula")
        kind = str(match.lastgroup)
        found.append(Token(kind, match.group(kind)))
        at = match.end()
    return found


def _refused(formula: str, why: str) -> InputError:
    return InputError(f"formula {formula!r} cannot be read: {why}")


class ExpressionParser:
    """The tokens of one text, and expressions among them."""

    def __init__(self, text: str) -> None:
        self._formula, self._tokens, self._at, self._depth, self._operations = text, tokens(text), 0, 0, 0

    def _error(self, why: str) -> InputError:
        return _refused(self._formula, why)

    def _peek(self) -> str:
        """The mark at hand, or an empty string."""
        here = self._tokens[self._at] if self._at < len(self._tokens) else Token("end", "")
        return here.text if here.kind == "mark" else ""

    def _next(self) -> Token:
        if self._at >= len(self._tokens):
            raise self._error("it ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def _take(self, mark: str) -> None:
        token = self._next()
        if token != ("mark", mark):
            raise self._error(f"{mark!r} is expected, not {token.text!r}")

    def _closed(self, inner: T) -> T:
        """What was parsed, once the parenthesis behind it is taken."""
        self._take(")")
        return inner

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._error(f"it is nested more than {_DEEPEST} deep")

    def _string(self) -> str:
        token = self._next()
        if token.kind != "text":
            raise self._error(f"a quoted name is expected, not {token.text!r}")
        return token.text[1:-1]

    def _expression(self) -> Expression:
        self._deeper()
        left = self._additive()
        if self._peek() in _COMPARISONS:
            left = self._operate(self._next().text, left, self._additive())
        self._depth -= 1
        return left

    def _operate(self, operator: str, left: Expression, right: Expression) -> Expression:
        self._operations += 1
        if self._operations > _MOST_OPERATIONS:
            raise self._error(f"it has more than {_MOST_OPERATIONS} operations")
        return Operation(operator, left, right)

    def _additive(self) -> Expression:
        left = self._multiplicative()
        while self._peek() in ("+", "-"):
            left = self._operate(self._next().text, left, self._multiplicative())
        return left

    def _multiplicative(self) -> Expression:
        left = self._unary()
        while self._peek() in ("*", "/"):
            left = self._operate(self._next().text, left, self._unary())
        return left

    def _unary(self) -> Expression:
        if self._peek() == "-":
            self._next()
            self._deeper()
            inner = Negative(self._unary())
            self._depth -= 1
            return inner
        base = self._primary()
        if self._peek() in ("**", "^"):
            self._next()
            self._deeper()
            base = self._operate("**", base, self._unary())
            self._depth -= 1
        return base

    def _primary(self) -> Expression:
        token = self._next()
        if token == ("mark", "("):
            return self._closed(self._expression())
        if token.kind == "number":
            return Number(float(token.text))
        if token.kind == "quoted" or (token.kind == "name" and self._peek() != "("):
            return Column(token.text)
        if token.kind == "name":
            return self._function(token.text)
        raise self._error(f"{token.text!r} is not expected in an expression")

    def _function(self, name: str) -> Expression:
        self._take("(")
        if name == "Q":
            inner: Expression = Column(self._string())
        elif name in FUNCTIONS:
            inner = Call(name, self._expression())
        elif name == "I":
            inner = self._expression()
        else:
            raise self._error(f"{name!r} cannot stand inside an expression; known: {', '.join([*FUNCTIONS, 'I', 'Q'])}")
        return self._closed(inner)
