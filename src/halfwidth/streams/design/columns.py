"""Columns by name: the features of a design without a formula, and the special columns next to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from halfwidth.errors import InputError
from halfwidth.streams.block import Array, Block, need
from halfwidth.streams.design.bad_rows import MISSING, Faults, usable
from halfwidth.streams.design.convert import as_float, as_microseconds, as_text, count_numbers, numeric_type, plain

Converter = Callable[[Any], tuple[Array, NDArray[np.bool_] | None]]


@dataclass(frozen=True)
class DesignRows:
    """What a design makes of rows: X, and the response and the offset where a formula computes them."""

    X: Array
    response: Array | None = None
    offset: Array | None = None


class RowRules(NamedTuple):
    """What happens to a level that is new, whether a bad row ends the stream, and whether there is no response."""

    unknown_level: str = "add"
    stops: bool = True
    predicting: bool = False


class Design(Protocol):
    """What turns columns into the rows of X."""

    @property
    def feature_names(self) -> tuple[str, ...]: ...

    @property
    def has_intercept(self) -> bool: ...

    @property
    def columns(self) -> tuple[str, ...]: ...

    @property
    def predictors(self) -> tuple[str, ...]: ...

    @property
    def term_columns(self) -> tuple[str, ...]: ...

    @property
    def has_offset(self) -> bool: ...

    @property
    def categories(self) -> tuple[str, ...]: ...

    @property
    def notes(self) -> dict[str, str]: ...

    @property
    def reference_levels(self) -> dict[str, str]: ...

    @property
    def late_levels(self) -> dict[str, str]: ...

    @property
    def terms(self) -> dict[str, list[int]]: ...

    def matrix(self, parts: Sequence[Block], faults: Faults, rules: RowRules) -> DesignRows: ...

    def to_state(self) -> dict[str, Any]: ...


class ColumnsDesign:
    """X is the named columns, in that order, as numbers."""

    has_intercept, has_offset = True, False
    categories: tuple[str, ...] = ()

    def __init__(self, features: Sequence[str]) -> None:
        self.feature_names = self.columns = self.predictors = self.term_columns = tuple(features)

    @property
    def notes(self) -> dict[str, str]:
        """Nothing is learned here."""
        return {}

    reference_levels = late_levels = notes

    @property
    def terms(self) -> dict[str, list[int]]:
        """Every column is a term of its own."""
        return {name: [place] for place, name in enumerate(self.columns)}

    def matrix(self, parts: Sequence[Block], faults: Faults, rules: RowRules) -> DesignRows:
        """X of these rows, bad cells marked."""
        X = np.empty((len(self.columns), faults.rows)).T
        texts: dict[int, NDArray[np.bool_]] = {}
        start = 0
        for part in parts:
            stop = start + part.rows
            for j, name in enumerate(self.columns):
                X[start:stop, j], text = as_float(part.column(name))
                if text is not None:
                    texts.setdefault(j, np.zeros(len(X), dtype=bool))[start:stop] = text
            start = stop
        if not usable(X):
            for j, name in enumerate(self.columns):
                faults.mark_values(X[:, j], texts.get(j), name)
        return DesignRows(X)

    def to_state(self) -> dict[str, Any]:
        return {"kind": "columns", "features": list(self.columns)}


def number_column(parts: Sequence[Block], name: str, faults: Faults, convert: Converter = as_float) -> Array:
    """One column as float64, with its bad cells marked."""
    pieces = [convert(part.column(name)) for part in parts]
    values = np.concatenate([piece for piece, _ in pieces]) if pieces else np.empty(0)
    if not usable(values):
        text = [np.zeros(len(v), dtype=bool) if t is None else t for v, t in pieces]
        faults.mark_values(values, np.concatenate(text), name)
    return values


def text_column(parts: Sequence[Block], name: str, faults: Faults) -> NDArray[np.object_]:
    """One column as strings, with its missing cells marked."""
    pieces = [as_text(part.column(name)) for part in parts]
    faults.mark(np.concatenate([missing for _, missing in pieces]), MISSING, name)
    return np.concatenate([values for values, _ in pieces])


def group_column(parts: Sequence[Block], name: str, faults: Faults, as_words: bool) -> NDArray[Any]:
    """The group column: text, or numbers; whole ones by type stay whole, so that long ids stay apart."""
    if as_words:
        return text_column(parts, name, faults)
    columns = [plain(part.column(name)) for part in parts]
    types = need("pyarrow").types
    for is_whole, kind in ((types.is_signed_integer, np.int64), (types.is_unsigned_integer, np.uint64)):
        if all(is_whole(c.type) for c in columns):
            faults.mark(np.concatenate([c.is_null().to_numpy(zero_copy_only=False) for c in columns]), MISSING, name)
            filled = [c.fill_null(0).to_numpy(zero_copy_only=False) for c in columns]
            return np.concatenate(filled).astype(kind, copy=False)
    return number_column(parts, name, faults)


def has_numeric_type(parts: Sequence[Block], name: str) -> bool:
    """Whether a column holds numbers by its type, in every block."""
    return all(numeric_type(plain(part.column(name)).type) for part in parts)


def time_kind(parts: Sequence[Block], name: str | None) -> str:
    """Whether a time column counts as numbers or as dates, by the first buffer."""
    return "number" if name is None or is_numeric(parts, name) else "moment"


TIME: dict[str, Converter] = {"number": as_float, "moment": as_microseconds}


def is_numeric(parts: Iterable[Block], name: str, share: float = 0.5) -> bool:
    """Whether a column holds numbers: by type, or by at least this share of its cells that are not missing.

    A share below 1, so that one bad cell among the first rows is an error in that row and not a dropped column.
    """
    right = wrong = 0
    for part in parts:
        counts = count_numbers(part.column(name))
        right, wrong = right + counts[0], wrong + counts[1]
    return right >= share * (right + wrong)


def is_declared(parts: Iterable[Block], name: str) -> bool:
    """Whether a column is a category by its type: a pandas or polars categorical, an enum, an Arrow dictionary."""
    return any(need("pyarrow").types.is_dictionary(part.column(name).type) for part in parts)


def enters_as_number(parts: Sequence[Block], name: str) -> bool:
    """Whether a column of which nobody said what it is enters as a number; text by type that reads as one raises."""
    if is_declared(parts, name) or not is_numeric(parts, name):
        return False
    typed = [plain(part.column(name)) for part in parts if name not in part.untyped]
    texts = [column.drop_null() for column in typed if need("pyarrow").types.is_string(column.type)]
    texts = [column for column in texts if len(column)]
    if texts and is_numeric(parts, name, 1.0):
        raise InputError(
            f"column {name!r} is text that reads as numbers ({texts[0][0].as_py()!r}): convert it to numbers, or write "
            f"C({name}) in a formula if they are levels; features= and formula= also leave columns out"
        )
    return True


def known_columns(parts: Sequence[Block]) -> list[str]:
    """The columns of the source: those of its first block, or of all blocks where rows may lack some."""
    counted = parts if parts[0].sparse else parts[:1]
    return list(dict.fromkeys(name for part in counted for name in part.batch.schema.names))


def default_features(parts: Sequence[Block], without: Iterable[str]) -> list[str]:
    """All named numeric columns but those `without`, in the order of the source."""
    left_out = {"", *without}
    return [name for name in known_columns(parts) if name not in left_out and enters_as_number(parts, name)]
