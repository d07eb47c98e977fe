"""From the tree of a formula to its terms, and how the categories of each term are coded.

A term is a product of factors. A category in it is coded *reduced* (no column for the reference level) where the terms
before already span what the reference would add, and *full* otherwise; this is patsy's rule
(https://patsy.readthedocs.io/en/latest/formulas.html), which makes the columns linearly independent as far as the
formula decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import prod
from typing import Any

from halfwidth.errors import InputError
from halfwidth.streams.design.expressions import Column, Expression, columns_of
from halfwidth.streams.design.factors import CategorySpec, Factor, NumericSpec, OffsetSpec
from halfwidth.streams.design.formula_parser import Constant, Cross, Dot, FormulaParser, Power, Product, Sum

Term = tuple[Factor, ...]
Coding = dict[str, bool]  # the categories of a term, by text; True for full

_MOST_TERMS = 2_000
_MOST_PRODUCTS = 50_000
_MOST_CATEGORIES = 6


class Formula:
    """A parsed formula.

    Parameters
    ----------
    text
        As the user wrote it.

    Attributes
    ----------
    response : Expression or None
        The left side.
    uses_dot : bool
        Whether `.` stands for all other columns.
    """

    def __init__(self, text: str) -> None:
        parser = FormulaParser(text)
        self.text, self.response, self._right = text, parser.left, parser.right
        self.uses_dot = _has_dot(self._right)

    @property
    def response_name(self) -> str | None:
        """What the left side is called."""
        if self.response is None:
            return None
        return self.response.name if isinstance(self.response, Column) else str(self.response)

    @property
    def computes_response(self) -> bool:
        """Whether the left side is more than a column."""
        return self.response is not None and not isinstance(self.response, Column)

    @property
    def response_columns(self) -> tuple[str, ...]:
        """The columns that the left side reads."""
        return () if self.response is None else tuple(dict.fromkeys(columns_of(self.response)))

    def columns(self, dot: Sequence[str] = ()) -> list[str]:
        """All columns that must be in the source."""
        _, terms, offsets = self.terms(dot)
        read = [name for term in terms for factor in term for name in factor.columns]
        read += [name for expression in offsets for name in columns_of(expression)]
        return list(dict.fromkeys([*read, *self.response_columns]))

    def terms(self, dot: Sequence[str] = ()) -> tuple[bool, list[Term], list[Expression]]:
        """Whether there is an intercept; the terms, those with fewer factors first; and the offsets."""
        found = _Expansion(self.text, dot).expand(Sum(((1, Constant(1)), (1, self._right))))
        offsets = [term[0].expression for term in found if term and isinstance(term[0], OffsetSpec)]
        terms = [term for term in found if not any(isinstance(factor, OffsetSpec) for factor in term)]
        if len(terms) + len(offsets) < len(found):
            raise InputError(f"formula {self.text!r} cannot be read: offset() stands alone, not in a product")
        return () in terms, sorted((term for term in terms if term), key=len), offsets


def _has_dot(node: Any) -> bool:
    if isinstance(node, Sum):
        return any(_has_dot(part) for _, part in node.parts)
    if isinstance(node, Product | Cross):
        return any(_has_dot(part) for part in node.parts)
    return isinstance(node, Dot) or (isinstance(node, Power) and _has_dot(node.base))


class _Expansion:
    """Terms of a tree; the empty term is the intercept."""

    def __init__(self, text: str, dot: Sequence[str]) -> None:
        self._text, self._dot = text, dot
        self._products = 0

    def expand(self, node: Any) -> list[Term]:
        if isinstance(node, Sum):
            return self._sum(node)
        if isinstance(node, Cross):
            return self._crossed([self.expand(part) for part in node.parts])
        if isinstance(node, Product):
            lists = [self.expand(part) for part in node.parts]
            self._count(prod(1 + len(terms) for terms in lists))
            chosen = [
                self._crossed(list(some)) for size in range(1, len(lists) + 1) for some in combinations(lists, size)
            ]
            return self._unique([term for terms in chosen for term in terms])
        if isinstance(node, Power):
            base = result = self.expand(node.base)
            for _ in range(node.exponent - 1):
                result = self._unique(result + self._crossed([result, base]))
            return result
        if isinstance(node, Dot):
            return [(NumericSpec(Column(name)),) for name in self._dot]
        return [()] * node.value if isinstance(node, Constant) else [(node,)]

    def _sum(self, node: Sum) -> list[Term]:
        terms: list[Term] = []
        for sign, part in node.parts:
            if isinstance(part, Constant):
                terms = [term for term in terms if term] + [()] * ((sign > 0) == (part.value == 1))
            elif sign > 0:
                inner = self.expand(part)
                # "0 + a" in parentheses or on its own takes the intercept away, as "- 1" does
                if isinstance(part, Sum) and _removes_intercept(part):
                    terms = [term for term in terms if term]
                terms = self._unique(terms + inner)
            else:
                out = {_key(term) for term in self.expand(part)}
                terms = [term for term in terms if _key(term) not in out]
        return terms

    def _crossed(self, lists: list[list[Term]]) -> list[Term]:
        result: list[Term] = [()]
        for terms in lists:
            self._count(len(result) * len(terms))
            result = self._unique([_merged(left, right) for left in result for right in terms])
        return result

    def _count(self, products: int) -> None:
        """Refuse, before they are made, more products of terms than any formula needs."""
        self._products += products
        if self._products > _MOST_PRODUCTS:
            raise InputError(f"formula {self._text!r} cannot be read: it multiplies out to too many terms")

    def _unique(self, terms: list[Term]) -> list[Term]:
        found: dict[frozenset[str], Term] = {}
        for term in terms:
            found.setdefault(_key(term), term)
        unique = list(found.values())
        if len(unique) > _MOST_TERMS:
            raise InputError(f"formula {self._text!r} cannot be read: it has more than {_MOST_TERMS:,} terms")
        return unique


def _removes_intercept(node: Sum) -> bool:
    last = [sign * (1 if part.value else -1) for sign, part in node.parts if isinstance(part, Constant)]
    return bool(last) and last[-1] < 0


def _key(term: Term) -> frozenset[str]:
    return frozenset(factor.text for factor in term)


def _merged(left: Term, right: Term) -> Term:
    return tuple({factor.text: factor for factor in (*left, *right)}.values())


def codings(terms: Sequence[Term], intercept: bool) -> list[tuple[Term, Coding]]:
    """The terms with their categories coded; a term may come in several codings, or in none if it adds nothing."""
    spanned: dict[frozenset[str], set[frozenset[str]]] = {}
    if intercept:
        spanned[frozenset()] = {frozenset()}
    result = []
    for term in terms:
        categories = [factor.text for factor in term if isinstance(factor, CategorySpec)]
        if len(categories) > _MOST_CATEGORIES:
            raise InputError.of("formula", f"cross at most {_MOST_CATEGORIES} categories in a term", len(categories))
        numbers = frozenset(factor.text for factor in term if not isinstance(factor, CategorySpec))
        known = spanned.setdefault(numbers, set())
        subsets = [frozenset(s) for size in range(len(categories) + 1) for s in combinations(categories, size)]
        new = [subset for subset in subsets if subset not in known]
        known.update(new)
        pieces = [dict.fromkeys(sorted(subset, key=categories.index), False) for subset in new]
        for coding in sorted(_joined(pieces), key=len):
            kept = tuple(f for f in term if not isinstance(f, CategorySpec) or f.text in coding)
            result.append((kept, coding))
    return result


def _joined(pieces: list[Coding]) -> list[Coding]:
    """Join what a subset and the subset with one more reduced category span into a full category."""
    for i, short in enumerate(pieces):
        for j, long in enumerate(pieces):
            extra = [text for text in long if text not in short]
            alike = all(long.get(text) == full for text, full in short.items())
            if i != j and len(extra) == 1 and not long[extra[0]] and alike:
                joined = {text: (True if text == extra[0] else full) for text, full in long.items()}
                rest = [piece for k, piece in enumerate(pieces) if k not in (i, j)]
                return _joined([*rest[:i], joined, *rest[i:]])
    return pieces
