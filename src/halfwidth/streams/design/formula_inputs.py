"""What a formula reads: which columns are numbers, times or categories; the levels and constants learned so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.errors import InputError
from halfwidth.streams.block import Array, Block
from halfwidth.streams.design.bad_rows import FORMULA, NO_NUMBER, Faults, beyond, usable
from halfwidth.streams.design.bases import Constants
from halfwidth.streams.design.columns import TIME, enters_as_number, known_columns, number_column, time_kind
from halfwidth.streams.design.expressions import Column, Expression, columns_of, evaluate
from halfwidth.streams.design.factors import BasisSpec, CategorySpec, Factor, NumericSpec
from halfwidth.streams.design.formula_terms import Formula, Term
from halfwidth.streams.design.levels import Levels, number_levels


class Inputs:
    """Rows of the source, read for a formula: columns as numbers, factors as columns, categories as codes."""

    def __init__(self, rows: int, numbers: Mapping[str, Array]) -> None:
        self.rows, self._numbers = rows, numbers
        self.values: dict[str, Array] = {}
        self.codes: dict[str, NDArray[np.int64]] = {}

    def evaluate(self, expression: Expression) -> Array:
        """An expression of the columns."""
        return evaluate(expression, self._numbers, self.rows)

    def width(self, text: str) -> int:
        """How many columns a numeric factor has."""
        return int(self.values[text].shape[1])

    def product(self, texts: Sequence[str], chosen: Sequence[int]) -> Array | None:
        """The product of one column of each factor; None without factors."""
        result = None
        for text, k in zip(texts, chosen, strict=True):
            column = self.values[text][:, k]
            with np.errstate(over="ignore", invalid="ignore"):
                result = column if result is None else result * column
        return result


class FormulaInputs:
    """The factors of a formula, settled on the first buffer.

    Parameters
    ----------
    factors
        All factors of its terms, by text.
    kinds
        For each column that is read as a number, "number" or "moment".
    levels
        The categories, by the text of their factor.
    constants
        What the transforms learned, by their text.
    """

    def __init__(
        self,
        factors: Mapping[str, Factor],
        kinds: Mapping[str, str],
        levels: Mapping[str, Levels],
        constants: Mapping[str, Constants],
    ) -> None:
        self.factors, self.kinds, self.levels = dict(factors), dict(kinds), dict(levels)
        self.constants = dict(constants)
        self.columns = tuple(dict.fromkeys([*kinds, *(known.column for known in levels.values())]))
        self.rows_learned = 0

    @classmethod
    def learn(
        cls, formula: Formula, terms: Sequence[Term], offsets: Sequence[Expression], parts: Sequence[Block]
    ) -> FormulaInputs:
        """Decide what each column is, and learn levels and constants from the usable rows."""
        known = known_columns(parts)
        factors: dict[str, Factor] = {}
        for factor in (factor for term in terms for factor in term):
            factors[factor.text] = _settled(factor, parts, known)
        levels = {
            text: Levels(factor.column, number_levels(parts, factor.column))
            for text, factor in factors.items()
            if isinstance(factor, CategorySpec)
        }
        read = [name for factor in factors.values() if not isinstance(factor, CategorySpec) for name in factor.columns]
        read += [name for expression in _more(formula, offsets) for name in columns_of(expression)]
        kinds = {name: time_kind(parts, name) for name in dict.fromkeys(read)}
        inputs = cls(factors, kinds, levels, {})
        inputs._check_times()
        inputs._learn(formula, parts)
        return inputs

    def _check_times(self) -> None:
        """A date is no number: it enters through harmonics() only."""
        for factor in self.factors.values():
            if isinstance(factor, CategorySpec) or (isinstance(factor, BasisSpec) and factor.name == "harmonics"):
                continue
            for name in factor.columns:
                if self.kinds[name] == "moment":
                    raise InputError(
                        f"column {name!r} is not numeric, so {factor.text} cannot be computed; text enters as "
                        f"C({name}), a date as harmonics({name}, 'year')"
                    )

    def _learn(self, formula: Formula, parts: Sequence[Block]) -> None:
        faults = Faults(sum(part.rows for part in parts))
        faults.mark_broken(parts)
        rows = self._read(parts, faults)
        for known in self.levels.values():
            faults.mark_missing(parts, known.column)
        self._check_usable(formula, parts, faults)
        for text, factor in self.factors.items():
            if isinstance(factor, BasisSpec):
                values = rows.evaluate(factor.expression)[faults.usable(False)]
                finite = values[~beyond(values)]
                if not len(finite):
                    raise InputError(f"formula {formula.text!r}: {text} has no finite value in the first rows")
                self.constants[text] = factor.basis.learn(finite, factor.parameters)
        self._transform(rows, faults)
        self._check_usable(formula, parts, faults)
        good = faults.usable(False)
        self.rows_learned = int(good.sum())
        for text, factor in self.factors.items():
            if isinstance(factor, CategorySpec):
                self.levels[text].learn(parts, good, factor.reference, factor.declared)

    def _check_usable(self, formula: Formula, parts: Sequence[Block], faults: Faults) -> None:
        if not faults.usable(False).any():
            blamed = ", ".join(
                f"{name} in {count:,}{self._example(name, parts)}"
                for name, count in faults.columns(faults.rows).items()
            )
            raise InputError(
                f"formula {formula.text!r}: none of the first {faults.rows:,} rows has all of {list(self.columns)}; "
                f"missing or bad: {blamed}. Repair them, or give a longer first buffer (buffer_rows)"
            )

    def _example(self, name: str, parts: Sequence[Block]) -> str:
        """What a column that is no time holds, so that one sees why."""
        if self.kinds.get(name) != "moment":
            return ""
        cells = (cell for part in parts for cell in part.column(name).slice(0, 1).to_pylist())
        return f" ({next(cells, None)!r} is no time like 2024-01-31 12:00 or 31.01.2024 12:00)"

    def _read(self, parts: Sequence[Block], faults: Faults, only: Sequence[str] | None = None) -> Inputs:
        read = {name: kind for name, kind in self.kinds.items() if only is None or name in only}
        numbers = {name: number_column(parts, name, faults, TIME[kind]) for name, kind in read.items()}
        return Inputs(faults.rows, numbers)

    def _transform(self, rows: Inputs, faults: Faults) -> None:
        """The columns of numeric factors; rows in which one is not defined are marked."""
        for text, factor in self.factors.items():
            if isinstance(factor, NumericSpec):
                rows.values[text] = rows.evaluate(factor.expression)[:, None]
            elif isinstance(factor, BasisSpec):
                with np.errstate(all="ignore"):
                    values = rows.evaluate(factor.expression)
                    rows.values[text] = factor.basis.apply(values, factor.parameters, self.constants[text])
            else:
                continue
            if not usable(rows.values[text]):
                faults.mark(np.asarray(beyond(rows.values[text]).any(axis=1)), FORMULA, text, NO_NUMBER)

    def numbers(self, parts: Sequence[Block], faults: Faults, only: Sequence[str] | None = None) -> Inputs:
        """The numeric factors of these rows; `only` some columns are read where there is no response."""
        rows = self._read(parts, faults, only)
        self._transform(rows, faults)
        return rows

    def categories(
        self, rows: Inputs, parts: Sequence[Block], faults: Faults, good: NDArray[np.bool_], unknown_level: str
    ) -> None:
        """The levels of these rows; those of good rows that are new are dealt with as asked for."""
        for text, known in self.levels.items():
            rows.codes[text] = known.codes(parts, faults, good, unknown_level)

    def settled(self, term: Term) -> Term:
        """The term with bare columns of text replaced by categories."""
        return tuple(self.factors[factor.text] for factor in term)

    def width(self, text: str) -> int:
        """How many columns a numeric factor has."""
        factor = self.factors[text]
        return len(factor.basis.labels(factor.parameters, self.constants[text])) if isinstance(factor, BasisSpec) else 1

    def label(self, text: str, column: int) -> str:
        """The name of one column of a numeric factor."""
        factor = self.factors[text]
        if not isinstance(factor, BasisSpec):
            return text
        inner = factor.basis.labels(factor.parameters, self.constants[text])[column]
        return f"{text}[{inner}]" if inner else text

    def notes(self) -> dict[str, str]:
        """The constants that came from the first rows, by transform."""
        return {
            text: "; ".join(f"{name} {', '.join(f'{value:.6g}' for value in values)}" for name, values in known.items())
            for text, known in self.constants.items()
            if any(known.values())
        }

    def to_state(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "kinds": dict(self.kinds),
            "levels": {text: known.to_state() for text, known in self.levels.items()},
            "constants": {text: dict(known) for text, known in self.constants.items()},
            "rows": self.rows_learned,
        }

    @classmethod
    def from_state(
        cls, state: dict[str, Any], formula: Formula, terms: Sequence[Term], offsets: Sequence[Expression]
    ) -> FormulaInputs:
        """The inputs that `to_state` described, held against the formula."""
        levels = {text: Levels(**known) for text, known in state["levels"].items()}
        factors: dict[str, Factor] = {}
        for factor in (factor for term in terms for factor in term):
            bare = isinstance(factor, NumericSpec) and factor.text in levels and isinstance(factor.expression, Column)
            factors[factor.text] = CategorySpec(factor.text, declared=False) if bare else factor
        inputs = cls(factors, state["kinds"], levels, state["constants"])
        inputs.rows_learned = int(state["rows"])
        needed = {name for factor in factors.values() for name in factor.columns}
        needed |= {name for expression in _more(formula, offsets) for name in columns_of(expression)}
        bases = {text: factor for text, factor in factors.items() if isinstance(factor, BasisSpec)}
        fits = all(factor.fits(inputs.constants.get(text, {})) for text, factor in bases.items())
        categories = {text for text, factor in factors.items() if isinstance(factor, CategorySpec)}
        known = set(bases) == set(inputs.constants) and categories == set(levels)
        if needed - set(inputs.columns) or not known or not fits:
            raise InputError.of("design", f"fit its formula {formula.text!r}", sorted(inputs.columns))
        return inputs


def _more(formula: Formula, offsets: Sequence[Expression]) -> list[Expression]:
    """The expressions beside the terms: offsets, and a computed left side."""
    computed = [formula.response] if formula.response is not None and formula.computes_response else []
    return [*offsets, *computed]


def _settled(factor: Factor, parts: Sequence[Block], known: Sequence[str]) -> Factor:
    """A bare column of text, or declared to be one, is a category, with a reference by order."""
    bare = isinstance(factor, NumericSpec) and isinstance(factor.expression, Column) and factor.text in known
    return CategorySpec(factor.text, declared=False) if bare and not enters_as_number(parts, factor.text) else factor
