"""A formula's columns of X: constants are fixed on the first buffer, levels get their columns as rows bring them.

A column of X belongs to a *cell*: a coded term, one column of each of its bases, one level of each of its categories. A
cell gets its column when the first usable row falls into it; in all earlier rows that column would have been zero. The
columns of the first buffer come in the order of the terms and levels, later ones are appended in the order of rows, so
that neither chunks nor interruptions change them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.errors import InputError
from halfwidth.streams.block import Array, Block
from halfwidth.streams.design.bad_rows import FORMULA, LEVEL, NO_NUMBER, Faults, beyond, usable
from halfwidth.streams.design.cells import Cell, CodedTerm, coded_term, first_rows, widened
from halfwidth.streams.design.columns import DesignRows, RowRules
from halfwidth.streams.design.expressions import columns_of
from halfwidth.streams.design.formula_inputs import FormulaInputs, Inputs
from halfwidth.streams.design.formula_terms import Formula, codings

MOST_FEATURES = 5_000
_FEW = 10


class FormulaDesign:
    """X by a formula; the intercept is a flag, never a column.

    Parameters
    ----------
    formula
        The parsed formula.
    inputs
        The columns that it reads, with levels and constants.
    dot
        What `.` stands for.
    """

    def __init__(self, formula: Formula, inputs: FormulaInputs, dot: Sequence[str]) -> None:
        self.formula, self.inputs, self._dot = formula, inputs, list(dot)
        self.has_intercept, terms, self._offsets = formula.terms(dot)
        terms = [inputs.settled(term) for term in terms]
        self._coded = [coded_term(term, coding) for term, coding in codings(terms, self.has_intercept)]
        self.columns = inputs.columns
        self.term_columns = tuple(dict.fromkeys(name for term in terms for factor in term for name in factor.columns))
        more = [name for expression in self._offsets for name in columns_of(expression)]
        self.predictors, self.has_offset = tuple(dict.fromkeys([*self.term_columns, *more])), bool(self._offsets)
        self.computes_response = formula.computes_response
        self._cells: list[Cell] = []
        self._names: list[str] = []

    @classmethod
    def learn(cls, formula: Formula, parts: Sequence[Block], dot: Sequence[str]) -> FormulaDesign:
        """Fix kinds of columns, constants and first levels on the usable rows of the first buffer."""
        _, terms, offsets = formula.terms(dot)
        inputs = FormulaInputs.learn(formula, terms, offsets, parts)
        design = cls(formula, inputs, dot)
        faults = Faults(sum(part.rows for part in parts))
        rows = inputs.numbers(parts, faults)
        inputs.categories(rows, parts, faults, faults.usable(False), "error")
        design._grow(rows, faults.usable(False), in_order=False)
        return design

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the columns of X so far."""
        return tuple(self._names)

    @property
    def categories(self) -> tuple[str, ...]:
        """The columns that are read as categories only."""
        return tuple(known.column for known in self.inputs.levels.values() if known.column not in self.inputs.kinds)

    @property
    def notes(self) -> dict[str, str]:
        """The constants that were taken from the first rows, by transform."""
        return self.inputs.notes()

    @property
    def reference_levels(self) -> dict[str, str]:
        """The reference of each category that has one, by its text in the formula."""
        coded = [text for term in self._coded for text, full in term.categories if not full]
        return {text: self.inputs.levels[text].names[0] for text in dict.fromkeys(coded)}

    @property
    def late_levels(self) -> dict[str, str]:
        """The levels that came after the first rows, by category."""
        return {text: _listed(known.late) for text, known in self.inputs.levels.items() if known.late}

    @property
    def terms(self) -> dict[str, list[int]]:
        """The columns of X that belong to each term, by its text."""
        found: dict[str, list[int]] = {}
        for place, (number, _, _) in enumerate(self._cells):
            found.setdefault(":".join(self._coded[number].order), []).append(place)
        return found

    def matrix(self, parts: Sequence[Block], faults: Faults, rules: RowRules) -> DesignRows:
        """X, the response and the offset of these rows; levels that are new get columns, unless they are refused.

        Numbers come first, so that a row that cannot be used brings no level.
        """
        rows = self.inputs.numbers(parts, faults, self.predictors if rules.predicting else None)
        offset, response = None, None if rules.predicting else self._response(rows, faults)
        for expression in self._offsets:
            offset = rows.evaluate(expression) + (0.0 if offset is None else offset)
        if offset is not None:
            faults.mark(beyond(offset), FORMULA, "offset()", NO_NUMBER)
        learning = faults.usable(rules.stops) & (not rules.predicting)
        self.inputs.categories(rows, parts, faults, learning, rules.unknown_level)
        if rules.unknown_level != "error":
            self._grow(rows, faults.usable(rules.stops) & learning, in_order=True)
        X = self._fill(rows, faults)
        # Row by row for predictions, which are then those of the same rows in an array, to the bit.
        return DesignRows(np.ascontiguousarray(X) if rules.predicting else X, response, offset)

    def response(self, parts: Sequence[Block], faults: Faults) -> Array | None:
        """The response of these rows, where the formula computes it."""
        return self._response(self.inputs.numbers(parts, faults), faults) if self.computes_response else None

    def _response(self, rows: Inputs, faults: Faults) -> Array | None:
        if not self.computes_response or self.formula.response is None:
            return None
        response = rows.evaluate(self.formula.response)
        faults.mark(beyond(response), FORMULA, self.formula.response_name, NO_NUMBER)
        return response

    def _fill(self, rows: Inputs, faults: Faults) -> Array:
        """X, column by column; one more column, the last, takes what belongs to none (a place of -1)."""
        columns = np.zeros((len(self._names) + 1, faults.rows))
        cells, every = columns.ravel(), np.arange(faults.rows)
        for coded in self._coded:
            codes = tuple(rows.codes[text] for text, _ in coded.categories)
            for chosen, places in coded.places.items():
                value = rows.product(coded.numbers, chosen)
                if not codes:
                    columns[int(places)] = 1.0 if value is None else value
                    continue
                at = self._columns_of_rows(coded, places[codes], codes, faults)
                at *= faults.rows
                at += every
                cells[at] = 1.0 if value is None else value
        X = columns[:-1].T
        self._mark(X, faults)
        return X

    def _columns_of_rows(
        self, coded: CodedTerm, at: NDArray[np.int64], codes: tuple[NDArray[np.int64], ...], faults: Faults
    ) -> NDArray[np.int64]:
        """The column of each row's cell: -1 for a reference, an unknown level, or a cell that has none.

        A row of a cell that has no column cannot be told from one of the reference levels.
        """
        for code in codes:
            if code.min(initial=0) < 0:
                at[code < 0] = -1
        if at.min(initial=-1) < -1:
            column = ":".join(self.inputs.levels[text].column for text, _ in coded.categories)
            faults.mark(at == -2, LEVEL, column, f"no row before had these levels of {column} together")
            np.maximum(at, -1, out=at)
        return at

    def _mark(self, X: Array, faults: Faults) -> None:
        """Blame rows in which a product is no number; single factors are checked when they are computed."""
        if any(len(coded.numbers) > 1 for coded in self._coded) and not usable(X):
            for column, name in enumerate(self._names):
                faults.mark(beyond(X[:, column]), FORMULA, name, NO_NUMBER)

    def _grow(self, rows: Inputs, good: NDArray[np.bool_], *, in_order: bool) -> None:
        """Give columns to the cells into which good rows fall for the first time."""
        found: list[tuple[int, Cell]] = []
        for number, coded in enumerate(self._coded):
            shape = tuple(len(self.inputs.levels[text].names) for text, _ in coded.categories)
            for chosen in product(*(range(rows.width(text)) for text in coded.numbers)):
                places = widened(coded, chosen, shape)
                codes = tuple(rows.codes[text] for text, _ in coded.categories)
                if not codes:
                    found += [(0, (number, chosen, ()))] if places == -2 and good.any() else []
                    continue
                new = first_rows(places, codes, good)
                found += [(row, (number, chosen, levels)) for row, levels in new]
        if in_order:
            found.sort(key=lambda item: item[0])
        else:
            found.sort(key=lambda item: (item[1][0], item[1][1][::-1], item[1][2][::-1]))
        for _, cell in found:
            self._add(cell)

    def _add(self, cell: Cell) -> None:
        if len(self._cells) >= MOST_FEATURES:
            raise InputError(f"formula {self.formula.text!r} gives more than {MOST_FEATURES:,} columns")
        number, chosen, levels = cell
        coded = self._coded[number]
        places = widened(coded, chosen, tuple(len(self.inputs.levels[text].names) for text, _ in coded.categories))
        if (
            places.ndim != len(levels)
            or places[levels] != -2
            or any(k >= self.inputs.width(text) for text, k in zip(coded.numbers, chosen, strict=True))
        ):
            raise ValueError(f"there is no column {cell}")
        places[levels] = len(self._cells)
        self._cells.append(cell)
        self._names.append(self._name(cell))

    def _name(self, cell: Cell) -> str:
        number, chosen, levels = cell
        coded = self._coded[number]
        texts = {text: self.inputs.label(text, k) for text, k in zip(coded.numbers, chosen, strict=True)}
        for (text, full), level in zip(coded.categories, levels, strict=True):
            texts[text] = f"{text}[{'' if full else 'T.'}{self.inputs.levels[text].names[level]}]"
        return ":".join(texts[text] for text in coded.order)

    def to_state(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "kind": "formula",
            "formula": self.formula.text,
            "dot": list(self._dot),
            "inputs": self.inputs.to_state(),
            "cells": [{"term": term, "columns": list(k), "levels": list(v)} for term, k, v in self._cells],
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> FormulaDesign:
        """The design that `to_state` described; its formula is parsed, never evaluated."""
        formula = Formula(state["formula"])
        _, terms, offsets = formula.terms(state["dot"])
        design = cls(formula, FormulaInputs.from_state(state["inputs"], formula, terms, offsets), state["dot"])
        try:
            for cell in state["cells"]:
                design._add((cell["term"], tuple(cell["columns"]), tuple(cell["levels"])))
        except (IndexError, KeyError, TypeError, ValueError) as error:
            raise InputError.of("design", f"fit its formula {formula.text!r}", str(error)) from None
        return design


def _listed(names: Sequence[str]) -> str:
    """Names for a summary, the first few of many."""
    more = f", and {len(names) - _FEW:,} more" if len(names) > _FEW else ""
    return ", ".join(names[:_FEW]) + more
