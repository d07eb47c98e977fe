"""Linear hypotheses as people write them: "x = 0.5", "x - z", "a = b = 0", "2 * x + z / 3 = 1, w".

A text is split at commas into statements; a statement is one linear expression, or several that are said to be equal.
An expression without "=" is set equal to zero. Each statement with k signs of equality gives k rows of R theta = r.
Names of coefficients are matched first, the longest that fits, so that "C(carrier)[T.AA]" or "log(x)" is a name and no
arithmetic. The text of a term that has several coefficients, like "carrier", says that all of them are zero. Nothing is
evaluated as code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from halfwidth.errors import InputError, UnknownName
from halfwidth.kernels.arrays import Vector

_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_WORD = re.compile(r"[A-Za-z_]\w*")
_SIGNS = "+-*/()=,"
_LARGEST = 1e100


class Hypothesis(NamedTuple):
    """R theta = r, and how each row was written."""

    R: Vector
    r: Vector
    labels: tuple[str, ...]


class _Linear(NamedTuple):
    """A linear expression: coefficients of the names, and a constant."""

    slopes: Vector
    constant: float

    def plus(self, other: _Linear, sign: float = 1.0) -> _Linear:
        return _Linear(self.slopes + sign * other.slopes, self.constant + sign * other.constant)

    @np.errstate(over="ignore", invalid="ignore")  # a statement that is not finite is refused
    def times(self, factor: float) -> _Linear:
        return _Linear(factor * self.slopes, factor * self.constant)


def parse_hypotheses(
    text: str | Sequence[str], names: Sequence[str], terms: Mapping[str, Sequence[int]] | None = None
) -> Hypothesis:
    """Read one or several texts as rows of R theta = r.

    Parameters
    ----------
    text : str or sequence of str
        Hypotheses about the coefficients.
    names : sequence of str
        The coefficients, in the order of theta.
    terms : mapping, optional
        The coefficients that belong to a term of a formula, by its text; such a text stands for all of them being zero.

    Returns
    -------
    Hypothesis
        R of shape (q, d), r of shape (q,) and a label for each row.

    Raises
    ------
    UnknownName
        Where a text names no coefficient.
    InputError
        Where it is not linear in the names, or is no expression at all; the message says where.

    Examples
    --------
    >>> parse_hypotheses("x - z = 1", ["Intercept", "x", "z"])
    Hypothesis(R=array([[ 0.,  1., -1.]]), r=array([1.]), labels=('x - z = 1',))
    """
    rows: list[_Linear] = []
    labels: list[str] = []
    for each in [text] if isinstance(text, str) else text:
        reader = _Reader(each, names, terms or {})
        for statement, said in reader.statements():
            rows += statement
            labels += [said] if len(statement) == 1 else [f"{said} ({k})" for k in range(1, len(statement) + 1)]
    if not rows:
        raise InputError.of("hypotheses", "name at least one", text)
    return Hypothesis(np.array([row.slopes for row in rows]), np.array([-row.constant for row in rows]), tuple(labels))


class _Reader:
    """Reads a text from left to right: statements, sums, products, names and numbers."""

    def __init__(self, text: str, names: Sequence[str], terms: Mapping[str, Sequence[int]]) -> None:
        self.text = text
        self.names = list(names)
        self.terms = {term: places for term, places in terms.items() if term not in self.names}
        self.tokens = list(self._split())
        self.at = 0

    def _fail(self, why: str, place: int) -> InputError:
        return InputError(f"hypothesis {self.text!r}: {why} (at character {place + 1})")

    def _split(self) -> list[tuple[str, str, int]]:
        """Tokens as (kind, text, place): a name, a term, a number or a sign."""
        ordered = sorted((name for name in [*self.names, *self.terms] if name), key=len, reverse=True)
        tokens, at = [], 0
        while at < len(self.text):
            if self.text[at].isspace():
                at += 1
                continue
            name = next((n for n in ordered if self.text.startswith(n, at) and self._ends(n, at)), None)
            if name is not None:
                tokens.append(("term" if name in self.terms else "name", name, at))
                at += len(name)
            elif found := _NUMBER.match(self.text, at):
                tokens.append(("number", found[0], at))
                at = found.end()
            elif self.text[at] in _SIGNS:
                tokens.append(("sign", self.text[at], at))
                at += 1
            else:
                word = _WORD.match(self.text, at)
                if word:
                    raise UnknownName.among("coefficient", word[0], [*self.names, *self.terms])
                raise self._fail(f"unknown sign {self.text[at]!r}", at)
        return tokens

    def _ends(self, name: str, at: int) -> bool:
        """Whether the name is not the beginning of a longer word."""
        after = self.text[at + len(name) : at + len(name) + 1]
        return not (name[-1].isalnum() or name[-1] == "_") or not (after.isalnum() or after == "_")

    def _peek(self) -> str:
        kind, text, _ = self.tokens[self.at] if self.at < len(self.tokens) else ("end", "", 0)
        return text if kind == "sign" else kind

    def _place(self) -> int:
        return self.tokens[self.at][2] if self.at < len(self.tokens) else len(self.text)

    def statements(self) -> list[tuple[list[_Linear], str]]:
        found = []
        while self.at < len(self.tokens):
            first = self._place()
            if self._peek() == "term":
                found += self._term(first)
                continue
            sides = [self._sum()]
            while self._peek() == "=":
                self.at += 1
                sides.append(self._sum())
            if self._peek() not in (",", "end"):
                raise self._fail("an operator, '=' or ',' is missing", self._place())
            said = self.text[first : self._place()].strip()
            rows = [a.plus(b, -1.0) for a, b in pairwise(sides)] if len(sides) > 1 else sides
            for row in rows:
                if not (np.abs(row.slopes).max() <= _LARGEST and abs(row.constant) <= _LARGEST):
                    raise self._fail(f"the numbers of {said!r} must lie between -{_LARGEST:g} and {_LARGEST:g}", first)
                if not row.slopes.any():
                    raise self._fail(f"{said!r} is about no coefficient", first)
            found.append((rows, said))
            self.at += self._peek() == ","
        return found

    def _term(self, first: int) -> list[tuple[list[_Linear], str]]:
        """All coefficients of a term are zero; nothing but "= 0" may follow."""
        term = self.tokens[self.at][1]
        rest = [token[1] for token in self.tokens[self.at + 1 : self.at + 3]]
        self.at += 3 if rest[:2] == ["=", "0"] else 1
        if self._peek() not in (",", "end"):
            raise self._not_alone(term, first)
        self.at += self._peek() == ","
        eye = np.eye(len(self.names))
        return [([_Linear(eye[place], 0.0)], self.names[place]) for place in self.terms[term]]

    def _not_alone(self, term: str, place: int) -> InputError:
        return self._fail(f"{term!r} is a term of several coefficients, which can only be zero together", place)

    def _sum(self) -> _Linear:
        total = self._product()
        while self._peek() in ("+", "-"):
            sign = 1.0 if self._peek() == "+" else -1.0
            self.at += 1
            total = total.plus(self._product(), sign)
        return total

    def _product(self) -> _Linear:
        left = self._factor()
        while self._peek() in ("*", "/"):
            sign, place = self._peek(), self._place()
            self.at += 1
            right = self._factor()
            if sign == "/" and (right.slopes.any() or right.constant == 0.0):
                raise self._fail("only a number other than 0 can divide", place)
            if sign == "/":
                left = left.times(1.0 / right.constant)
            elif not right.slopes.any():
                left = left.times(right.constant)
            elif not left.slopes.any():
                left = right.times(left.constant)
            else:
                raise self._fail("a product of coefficients is not linear", place)
        return left

    def _factor(self) -> _Linear:
        kind, place = self._peek(), self._place()
        none = np.zeros(len(self.names))
        self.at += 1
        if kind in ("+", "-"):
            return self._factor().times(1.0 if kind == "+" else -1.0)
        if kind == "number":
            return _Linear(none, float(self.tokens[self.at - 1][1]))
        if kind == "name":
            none[self.names.index(self.tokens[self.at - 1][1])] = 1.0
            return _Linear(none, 0.0)
        if kind == "term":
            raise self._not_alone(self.tokens[self.at - 1][1], place)
        if kind == "(":
            inside = self._sum()
            if self._peek() != ")":
                raise self._fail("a bracket is not closed", place)
            self.at += 1
            return inside
        raise self._fail("a coefficient or a number is missing", place)
