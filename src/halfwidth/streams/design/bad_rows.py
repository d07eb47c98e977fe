"""Which rows of a chunk cannot be used, in which column, and why: the first reason found for a row counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.errors import BadRow
from halfwidth.streams.block import Block

MISSING = "missing value"
TEXT = "not a number"
INFINITE = "infinite value"
TOO_LARGE = "value too large"
LABEL = "label outside its set"
NEGATIVE = "negative value"
NOT_POSITIVE = "value not above 0"
FRACTION = "not a whole number"
LEVEL = "unknown level"
FORMULA = "formula not defined"
BROKEN_ROW = "broken row"
BROKEN_FILE = "broken file"
MISSING_COLUMN = "missing column"
ORDER = "out of time order"
ORDER_IN_GROUP = "out of time order in its group"
NO_TIME = "not a time"
NO_NUMBER = "the formula gives no finite number here, or one beyond 1e100"

LARGEST = 1e100
"""Numbers beyond this have squares beyond all numbers."""

_SKIP = "repair it, or skip such rows and have them counted: bad_rows='skip' (--bad-rows skip)"
_ADVICE = {
    TEXT: f"{_SKIP}; a column of text enters through a formula, as C(column)",
    LABEL: f"{_SKIP}; more than two classes are for family='multinomial' (--family multinomial)",
    LEVEL: "give such levels columns of their own, unknown_level='add', or one for all, unknown_level='other' "
    "(--unknown-level add or other)",
    BROKEN_FILE: "repair or replace the file; the rows before it were read",
    MISSING_COLUMN: "name an existing column; names are case sensitive, and one that two columns share is none",
    NO_TIME: "write times like that, or as numbers; without a time column rows are taken in the order they have",
    ORDER: "sort the rows by time first; or, if rows of several units follow each other, name the unit as group "
    "(--group), and time is compared within it; or leave out the time column if the order does not matter",
    ORDER_IN_GROUP: "sort the rows of each group by time, or leave out the time column if their order does not matter",
}
_LEAVE_EMPTY = "leave its prediction empty: halfwidth predict --bad-rows skip"
_PREDICTION_ADVICE = {
    LEVEL: f"{_LEAVE_EMPTY}; or fit again on rows that have it, or with unknown_level='other' (--unknown-level other), "
    "which gives one coefficient to all levels that come late and is then used for all unknown ones",
}


def fault(
    file: str, row: int | None, column: str | None, reason: str, detail: str, *, predicting: bool = False
) -> BadRow:
    """The error for one bad row, with the advice that belongs to the reason."""
    if predicting:
        advice = _PREDICTION_ADVICE.get(reason, f"repair it, or {_LEAVE_EMPTY}")
    else:
        advice = _ADVICE.get(reason, _SKIP)
    return BadRow.at(file, row, column, reason, detail, advice)


def missing_column(file: str, column: str, known: list[str]) -> BadRow:
    """The error for a column that a file lacks; it lists those that it has."""
    shown = ", ".join(repr(name) for name in known[:20]) + (", ..." if len(known) > 20 else "")
    return fault(file, None, column, MISSING_COLUMN, f"there is no such column; the columns are {shown}")


class Faults:
    """The bad rows among `rows` rows; nothing is allocated while there are none.

    `others` holds, by column, the rows whose level is unknown and that count as the level `other`.
    """

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self._causes: list[tuple[str, str | None, str]] = []
        self._cause: NDArray[np.int64] | None = None
        self.others: dict[str, NDArray[np.bool_]] = {}

    def mark(self, bad: NDArray[np.bool_], reason: str, column: str | None, detail: str = "") -> None:
        """Blame `reason` for the rows of the mask that nothing was blamed for yet."""
        if not bad.any():
            return
        if self._cause is None:
            self._cause = np.full(self.rows, -1)
        self._cause[bad & (self._cause < 0)] = len(self._causes)
        self._causes.append((reason, column, detail))

    @property
    def good(self) -> NDArray[np.bool_] | None:
        """The mask of usable rows; None when all are."""
        return None if self._cause is None else self._cause < 0

    def usable(self, stops: bool) -> NDArray[np.bool_]:
        """The mask of usable rows; with `stops` only those before the first bad one."""
        mask = np.ones(self.rows, dtype=bool) if self._cause is None else self._cause < 0
        first = self.first()
        if stops and first is not None:
            mask[first:] = False
        return mask

    def mark_broken(self, parts: Sequence[Block]) -> None:
        """Blame the rows that could not be read at all."""
        start = 0
        by_reason: dict[str, list[int]] = {}
        for part in parts:
            for row, why in part.broken.items():
                by_reason.setdefault(why, []).append(start + row)
            start += part.rows
        for why, rows in by_reason.items():
            mask = np.zeros(self.rows, dtype=bool)
            mask[rows] = True
            self.mark(mask, BROKEN_ROW, None, why)

    def mark_missing(self, parts: Sequence[Block], column: str) -> None:
        """Blame the rows in which a column is null."""
        if parts:
            self.mark(np.concatenate([np.asarray(part.column(column).is_null()) for part in parts]), MISSING, column)

    def first(self) -> int | None:
        """The offset of the first bad row."""
        return None if self._cause is None else int(np.flatnonzero(self._cause >= 0)[0])

    def why(self, row: int) -> tuple[str, str | None, str]:
        """Reason, column and detail of a bad row."""
        return self._causes[-1 if self._cause is None else self._cause[row]]

    def counts(self, stop: int) -> dict[str, int]:
        """How many of the rows before `stop` are bad, by reason."""
        result: dict[str, int] = {}
        if self._cause is not None:
            for index, (reason, _, _) in enumerate(self._causes):
                result[reason] = result.get(reason, 0) + int(np.count_nonzero(self._cause[:stop] == index))
        return {reason: count for reason, count in result.items() if count}

    def columns(self, stop: int) -> dict[str, int]:
        """How many of the rows before `stop` are bad, by the column that is blamed."""
        result: dict[str, int] = {}
        if self._cause is not None:
            for index, (_, column, _) in enumerate(self._causes):
                if column is not None:
                    result[column] = result.get(column, 0) + int(np.count_nonzero(self._cause[:stop] == index))
        return {column: count for column, count in result.items() if count}

    def count_others(self, stop: int) -> dict[str, int]:
        """How many usable rows before `stop` count as the level `other`, by column."""
        used = {name: mask if self.good is None else mask & self.good for name, mask in self.others.items()}
        counts = {name: int(np.count_nonzero(mask[:stop])) for name, mask in used.items()}
        return {name: count for name, count in counts.items() if count}

    def mark_values(self, values: NDArray[np.float64], text: Any, column: str) -> None:
        """Blame the cells of one numeric column that are missing, text, infinite or too large."""
        bad = ~np.isfinite(values)
        if text is not None:
            self.mark(text, TEXT, column)
            bad &= ~text
        self.mark(np.isnan(values) & bad, MISSING, column)
        self.mark(np.isinf(values), INFINITE, column)
        self.mark(np.isfinite(values) & (np.abs(values) > LARGEST), TOO_LARGE, column)


def beyond(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which numbers are missing, infinite or too large."""
    return np.asarray(~(np.abs(values) <= LARGEST))


def usable(values: NDArray[np.float64]) -> bool:
    """Whether all numbers are there, finite and not too large; two sweeps clear nearly every chunk."""
    return not values.size or bool(values.min() >= -LARGEST and values.max() <= LARGEST)
