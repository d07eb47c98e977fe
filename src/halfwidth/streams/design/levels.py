"""The levels of a category: declared or seen, in order; the first is the reference.

Levels that a column declares (a pandas or polars categorical, an Arrow dictionary) keep their order, others are taken
in the order in which rows bring them. A level gets a place when a row of the first buffer or, later, a usable row has
it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.errors import InputError
from halfwidth.streams.block import Block, need
from halfwidth.streams.design.bad_rows import LEVEL, MISSING, Faults
from halfwidth.streams.design.columns import is_numeric
from halfwidth.streams.design.convert import as_text, no_text, numeric_type, plain

MOST_LEVELS = 1_000
OTHER = "other"
_FEW = 10
_WHOLE = re.compile(r"^[-+]?\d{1,300}$")
_NUMBER_LIKE = re.compile(r"^\s*[$€£]?\s*[-+]?[\d][\d.,' ]*\s*[%$€£]?\s*$")
_DATE_LIKE = re.compile(r"^\s*\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T]\d{1,2}:\d{2}.*)?\s*$")


class Levels:
    """One category of a design.

    Parameters
    ----------
    column
        Its column.
    numeric
        Whether its cells are numbers: then 1, 1.0 and "1" are one level.
    names
        The levels so far, the reference first.
    other
        The place of the level that stands for all unknown ones; None until there is one.
    first
        How many of the levels were among the first rows.
    """

    def __init__(
        self, column: str, numeric: bool, names: Sequence[str] = (), other: int | None = None, first: int = 0
    ) -> None:
        self.column, self.numeric, self.names, self.other, self.first = column, numeric, list(names), other, first
        # A cell that says "other" is unknown like any other: that level has no text of its own.
        self._places = {name: place for place, name in enumerate(self.names) if place != other}
        self._last: tuple[Any, NDArray[np.int64], list[str]] = (None, np.empty(0, dtype=np.int64), [])

    def learn(self, parts: Sequence[Block], usable: NDArray[np.bool_], reference: Any, declared: bool) -> None:
        """Take the levels from the usable rows of the first buffer; one too many, or the wrong kind, raises."""
        seen: dict[str, None] = {}
        order: dict[str, None] = {}
        start = 0
        for part in parts:
            coded, merged, names = self._coded(part.column(self.column))
            codes, rows = merged[coded], usable[start : start + part.rows]
            start += part.rows
            if need("pyarrow").types.is_dictionary(part.column(self.column).type):
                order |= dict.fromkeys(names)
            used, first = np.unique(codes[rows & (codes >= 0)], return_index=True)
            seen |= dict.fromkeys(names[code] for code in used[np.argsort(first)].tolist())
        if len(seen) > MOST_LEVELS:
            raise self._too_many(list(seen), int(usable.sum()))
        if not declared and not order:
            self._check_kind(list(seen))
        front = [] if reference is None else [self._canonical(str(reference))]
        if front and front[0] not in seen:
            raise InputError.of(f"reference of C({self.column})", "be a level of the first rows", reference)
        for name in [*front, *(name for name in order if name in seen), *seen]:
            if name not in self._places:
                self._add(name)
        self.first = len(self.names)

    @property
    def late(self) -> list[str]:
        """The levels that came after the first rows."""
        return [name for place, name in enumerate(self.names) if place >= self.first and place != self.other]

    def codes(
        self, parts: Sequence[Block], faults: Faults, usable: NDArray[np.bool_], unknown_level: str
    ) -> NDArray[np.int64]:
        """The place of each row's level, -1 where it has none; new levels of usable rows as asked for."""
        pieces, start = [], 0
        for part in parts:
            codes, merged, names = self._coded(part.column(self.column))
            rows = slice(start, start + part.rows)
            start += part.rows
            places = np.array([self._places.get(name, -2) for name in names] + [-1], dtype=np.int64)
            if unknown_level == "add" and (places == -2).any():
                new = (places[merged][codes] == -2) & usable[rows]
                used, first = np.unique(merged[codes[new]], return_index=True)
                for code in used[np.argsort(first)].tolist():
                    self._add(names[code])
                    places[code] = self._places[names[code]]
            pieces.append(places[merged][codes])
        found = np.concatenate(pieces) if pieces else np.empty(0, dtype=np.int64)
        if found.min(initial=0) == 0:
            return found
        faults.mark(found == -1, MISSING, self.column)
        unknown = found == -2
        if unknown_level == "other" and unknown.any():
            if self.other is None and (unknown & usable).any():
                self.other = len(self.names)
                self.names.append(OTHER if OTHER not in self._places else f"({OTHER})")
            if self.other is not None:
                faults.others[self.column] = unknown
                found[unknown] = self.other
                return found
        faults.mark(unknown, LEVEL, self.column)
        return np.maximum(found, -1)

    def _coded(self, column: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], list[str]]:
        """A code for each row, the code with which each is merged (-1 where it is missing), and the level behind it."""
        pa = need("pyarrow")
        if not pa.types.is_dictionary(column.type):
            column = encoded(plain(column))
        if len(column.dictionary) > MOST_LEVELS:
            used = np.unique(column.indices.drop_null().to_numpy(zero_copy_only=False))
            if len(used) > MOST_LEVELS:
                names, _ = as_text(column.dictionary)
                raise self._too_many([str(names[code]) for code in used.tolist()], len(column))
        merged, texts = self._decoded(column.dictionary)
        indices = column.indices.fill_null(len(texts)) if column.indices.null_count else column.indices
        return indices.to_numpy(zero_copy_only=False).astype(np.int64), merged, texts

    def _decoded(self, dictionary: Any) -> tuple[NDArray[np.int64], list[str]]:
        """Which value each is merged with, and the level of each; chunks of one block ask for the same ones."""
        key = dictionary.to_pylist() if need("pyarrow").types.is_string(dictionary.type) else None
        if key is None or key != self._last[0]:
            names, missing = as_text(dictionary)
            texts = [self._canonical(name) if name is not None else "" for name in names.tolist()]
            first = {text: place for place, text in reversed(list(enumerate(texts)))}
            merged = [-1 if gone else first[text] for text, gone in zip(texts, missing.tolist(), strict=True)]
            self._last = key, np.array([*merged, -1], dtype=np.int64), texts
        return self._last[1:]

    def _canonical(self, text: str) -> str:
        if not self.numeric:
            return text
        if _WHOLE.match(text):
            return str(int(text))  # exact, however long
        try:
            value = float(text)
        except ValueError:
            return text
        return f"{value:.0f}" if value.is_integer() and abs(value) < 2**53 else repr(value)

    def _add(self, name: str) -> None:
        if len(self.names) >= MOST_LEVELS:
            raise self._too_many([*self.names, name], None)
        self._places[name] = len(self.names)
        self.names.append(name)

    def _too_many(self, names: list[str], rows: int | None) -> InputError:
        where = "so far" if rows is None else f"among {rows:,} rows"
        return InputError(
            f"column {self.column!r} has {len(names):,} levels {where}, and at most {MOST_LEVELS:,} are possible; "
            f"{likely_cause(names, rows)}"
        )

    def _check_kind(self, names: list[str]) -> None:
        kind = looks_like(names)
        if kind and len(names) > _FEW:
            raise InputError(
                f"column {self.column!r} is text, and its {len(names):,} levels look like {kind} ({names[0]!r}); "
                f"{likely_cause(names, None)}, or write C({self.column}) if they are levels indeed"
            )

    def to_state(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "column": self.column,
            "numeric": self.numeric,
            "names": list(self.names),
            "other": self.other,
            "first": self.first,
        }


def number_levels(parts: Sequence[Block], name: str) -> bool:
    """Whether all levels are numbers, however they are written; declared text is what it says."""
    types = need("pyarrow").types
    kinds = [part.column(name).type for part in parts]
    said = any(types.is_dictionary(kind) and not numeric_type(kind.value_type) for kind in kinds)
    return not said and is_numeric(parts, name, 1.0)


def encoded(column: Any) -> Any:
    """Each value once, and its place; lists and the like have none."""
    pa = need("pyarrow")
    try:
        return column.dictionary_encode()
    except pa.ArrowException:
        raise no_text(column.type) from None


def with_levels(block: Block, columns: Sequence[str]) -> Block:
    """The block with these columns encoded, where that is possible."""
    if not columns:
        return block
    arrays = list(block.batch.columns)
    for name in columns:
        place = block.batch.schema.get_field_index(name)
        if place >= 0 and not need("pyarrow").types.is_dictionary(arrays[place].type):
            with suppress(InputError):  # what cannot be encoded is told with its row, later
                arrays[place] = encoded(plain(arrays[place]))
    return replace(block, batch=need("pyarrow").RecordBatch.from_arrays(arrays, names=block.batch.schema.names))


def looks_like(names: Sequence[str]) -> str | None:
    """Whether nearly all of these are dates or numbers.

    >>> looks_like(["2024-01-01", "2024-01-02"]), looks_like(["1,5", "2,75"]), looks_like(["AA", "DL"])
    ('dates', 'numbers', None)
    """
    for kind, pattern in (("dates", _DATE_LIKE), ("numbers", _NUMBER_LIKE)):
        if sum(pattern.match(name) is not None for name in names) >= 0.9 * len(names):
            return kind
    return None


def likely_cause(names: Sequence[str], rows: int | None) -> str:
    """What probably went wrong, and what to do."""
    kind = looks_like(names)
    if kind == "dates":
        return "they look like dates: enter a time by harmonics(column, 'year'), or leave the column out"
    if kind == "numbers":
        return f"they look like numbers ({names[0]!r}): set decimal=, thousands= or separator=, or clean the column"
    if rows is not None and len(names) > 0.5 * rows:
        return "nearly every row has its own: an identifier explains nothing; leave it out, or give it as group"
    return "join rare levels first, or give the column as group"
