"""Arithmetic of columns: a tree of known operations, evaluated on arrays. Nothing here runs a user's text as code.

Each row's value depends on that row alone, so chunks never change it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from halfwidth.streams.block import Array

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "log": np.log,
    "log1p": np.log1p,
    "log2": np.log2,
    "log10": np.log10,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "abs": np.abs,
}
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "**": np.power,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}
_BINDING = {"+": 2, "-": 2, "*": 3, "/": 3, "**": 5}


@dataclass(frozen=True)
class Number:
    """A constant."""

    value: float

    def __str__(self) -> str:
        return f"{self.value:g}" if float(f"{self.value:g}") == self.value else repr(self.value)


@dataclass(frozen=True)
class Column:
    """A column of the source."""

    name: str

    def __str__(self) -> str:
        return self.name if self.name.replace(".", "_").isidentifier() else f"`{self.name}`"


@dataclass(frozen=True)
class Call:
    """A function of `FUNCTIONS` applied to one expression."""

    function: str
    argument: Expression

    def __str__(self) -> str:
        return f"{self.function}({self.argument})"


@dataclass(frozen=True)
class Operation:
    """An operator of `OPERATORS` between two expressions."""

    operator: str
    left: Expression
    right: Expression

    def __str__(self) -> str:
        mine = _BINDING.get(self.operator, 1)
        left = f"({self.left})" if _binding(self.left) < mine else str(self.left)
        right = f"({self.right})" if _binding(self.right) <= mine else str(self.right)
        return f"{left} {self.operator} {right}"


@dataclass(frozen=True)
class Negative:
    """Minus an expression."""

    argument: Expression

    def __str__(self) -> str:
        return f"-({self.argument})" if _binding(self.argument) < 4 else f"-{self.argument}"


Expression = Number | Column | Call | Operation | Negative


def _binding(expression: Expression) -> int:
    if isinstance(expression, Operation):
        return _BINDING.get(expression.operator, 1)
    return 4 if isinstance(expression, Negative) else 6


def columns_of(expression: Expression) -> Iterator[str]:
    """The columns that an expression reads."""
    if isinstance(expression, Column):
        yield expression.name
    elif isinstance(expression, Operation):
        yield from columns_of(expression.left)
        yield from columns_of(expression.right)
    elif isinstance(expression, Call | Negative):
        yield from columns_of(expression.argument)


def evaluate(expression: Expression, data: Mapping[str, Array], rows: int) -> Array:
    """The value of an expression in each row, as float64; where it is not defined, NaN or infinity."""
    with np.errstate(all="ignore"):
        return np.broadcast_to(np.asarray(_value(expression, data), dtype=np.float64), (rows,))


def _value(expression: Expression, data: Mapping[str, Array]) -> Any:
    if isinstance(expression, Number):
        return expression.value
    if isinstance(expression, Column):
        return data[expression.name]
    if isinstance(expression, Call):
        return FUNCTIONS[expression.function](_value(expression.argument, data))
    if isinstance(expression, Negative):
        return np.negative(_value(expression.argument, data))
    left, right = (np.asarray(_value(side, data), dtype=np.float64) for side in (expression.left, expression.right))
    result = OPERATORS[expression.operator](left, right)
    if expression.operator in ("<", "<=", ">", ">=", "==", "!="):
        # A comparison with a missing value is false for NumPy; here it is missing.
        return np.where(np.isnan(left) | np.isnan(right), np.nan, result.astype(np.float64))
    return result
