"""What a formula says before it meets any data: its two sides, and the names that each factor reads."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any

from halfwidth.errors import InputError
from halfwidth.streams.block import need

_DIRECT = re.compile(r"^C\(\s*(?:`([^`]+)`|(\w+))\s*(?:,.*)?\)$", re.DOTALL)
_QUOTED = re.compile(r"`([^`]+)`")


class ParsedFormula:
    """A formula split into its sides, and the columns of the source that it reads."""

    def __init__(self, formula: str) -> None:
        formulaic = need("formulaic")
        try:
            parsed = formulaic.Formula(formula)
            self.right = parsed.rhs if hasattr(parsed, "rhs") else parsed
            left = getattr(parsed, "lhs", None)
            factors = [factor for term in self.right for factor in term.factors]
        except Exception as error:
            raise InputError(f"formula {formula!r} cannot be read: {first_line(error)}") from error
        self.text = formula
        self.response = None if left is None else _response(left, formula)
        self.reads = {factor.expr: _names(factor) for factor in factors}
        self.levels = {direct_column(expr) for expr in self.reads} - {None}
        elsewhere = {name for expr, names in self.reads.items() if not direct_column(expr) for name in names}
        self.levels -= elsewhere
        self.names = {name for names in self.reads.values() for name in names}

    def columns(self, known: Sequence[str], target: str) -> list[str]:
        """The columns that must be in the source: all names that are no function of formulaic's."""
        left = {target} if self.computed is None else names_in(target)
        functions = set(need("formulaic.transforms").TRANSFORMS) - set(known)
        return sorted((self.names | left) - functions)

    @property
    def computed(self) -> Any:
        """The formula of the left side, where that is more than a column."""
        return self.response[1] if self.response else None


def direct_column(expression: str) -> str | None:
    """The column of a factor that is C(column, ...) and nothing else.

    >>> direct_column("C(wind)"), direct_column("C(wind > 2)")
    ('wind', None)
    """
    match = _DIRECT.match(expression)
    return match.group(1) or match.group(2) if match else None


def first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0] or type(error).__name__


def _names(factor: Any) -> set[str]:
    """The names that a factor reads: a column itself, or those in a Python expression."""
    method = factor.eval_method.name
    if method == "LOOKUP":
        return {factor.expr}
    return set() if method == "LITERAL" else names_in(factor.expr)


def names_in(expression: str) -> set[str]:
    quoted = _QUOTED.findall(expression)
    tree = ast.parse(_QUOTED.sub("0", expression), mode="eval")
    calls = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    plain = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in calls}
    literal = {
        node.args[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Q"
        if node.args and isinstance(node.args[0], ast.Constant)
    }
    return {*quoted, *plain, *(str(name) for name in literal)}


def _response(left: Any, formula: str) -> tuple[str, Any]:
    """The left side: a column name and None, or a label and the formula that computes it."""
    factors = [factor for term in left for factor in term.factors]
    if len(factors) != 1:
        raise InputError.of("formula", "have one target on the left of ~", formula)
    if factors[0].eval_method.name == "LOOKUP":
        return factors[0].expr, None
    return factors[0].expr, need("formulaic").Formula(f"0 + {{({factors[0].expr}) * 1.0}}")
