"""Arrow columns of any type to NumPy, strictly: a cell that is not a number is marked, never guessed.

Text is read as a number when it is a decimal number, `inf`, `nan`, or `true`/`false` (1 and 0), in any case and
with blanks around it. NaN counts as missing, as in pandas.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.errors import InputError
from halfwidth.streams.block import Array, need

_NUMBER = r"(?i)^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$|^[-+]?(inf|infinity)$|^nan$"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_FIRST = r"^\s*(\d{2})\.(\d{2})\.(\d{4})((?:[ T].*)?)$"


def plain(column: Any) -> Any:
    """The column without dictionary coding and with one kind of text."""
    pa = need("pyarrow")
    if pa.types.is_dictionary(column.type):
        column = plain(column.dictionary).take(column.indices)
    view = getattr(pa.types, "is_string_view", None)
    if pa.types.is_large_string(column.type) or (view is not None and view(column.type)):
        column = column.cast(pa.string())
    return column


def numeric_type(kind: Any) -> bool:
    """Whether an Arrow type holds numbers whatever its cells say."""
    types = need("pyarrow").types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind))


def as_float(column: Any) -> tuple[Array, NDArray[np.bool_] | None]:
    """The column as float64, with NaN where there is no number, and the mask of cells that hold something else."""
    pa = need("pyarrow")
    column = plain(column)
    if pa.types.is_float64(column.type):
        return _floats(column), None
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan), None
    if numeric_type(column.type):
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.uint8())
        return _floats(column.cast(pa.float64(), safe=False)), None
    if pa.types.is_string(column.type):
        return _parse(column)
    return np.full(len(column), np.nan), np.asarray(column.is_valid())


def _floats(column: Any) -> Array:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def _parse(column: Any) -> tuple[Array, NDArray[np.bool_] | None]:
    pa, pc = need("pyarrow"), need("pyarrow.compute")
    try:
        return _floats(column.cast(pa.float64())), None
    except pa.ArrowInvalid:
        pass
    cell = pc.utf8_lower(pc.utf8_trim_whitespace(column))
    cell = pc.if_else(pc.equal(cell, ""), pa.scalar(None, pa.string()), cell)
    cell = pc.if_else(pc.equal(cell, "true"), "1", pc.if_else(pc.equal(cell, "false"), "0", cell))
    number = pc.fill_null(pc.match_substring_regex(cell, _NUMBER), False)
    text = pc.and_(pc.is_valid(cell), pc.invert(number))
    digits = pc.replace_substring_regex(cell, r"^\+", "")
    parsed = pc.if_else(number, digits, pa.scalar(None, pa.string())).cast(pa.float64())
    mask = np.asarray(text)
    return _floats(parsed), mask if mask.any() else None


def as_text(column: Any) -> tuple[NDArray[np.object_], NDArray[np.bool_]]:
    """The column as Python strings, and the mask of missing cells; whole numbers read the same whatever their type."""
    pa = need("pyarrow")
    column = plain(column)
    if pa.types.is_floating(column.type) or pa.types.is_decimal(column.type):
        numbers = as_float(column)[0]
        return _objects([f"{v:.0f}" if v.is_integer() else repr(v) for v in numbers.tolist()]), np.isnan(numbers)
    try:
        texts = column if pa.types.is_string(column.type) else column.cast(pa.string())
        return _objects(texts.to_pylist()), np.asarray(column.is_null())
    except pa.ArrowException:
        raise no_text(column.type) from None


def no_text(kind: Any) -> InputError:
    """The error for a column whose cells cannot be told apart by their text."""
    rule = "hold numbers, text (UTF-8) or times where levels, labels or groups are read"
    return InputError.of("a column", rule, str(kind))


def _objects(cells: list[Any]) -> NDArray[np.object_]:
    result = np.empty(len(cells), dtype=object)
    result[:] = cells
    return result


def as_microseconds(column: Any) -> tuple[Array, NDArray[np.bool_] | None]:
    """Dates and times as microseconds since 1970: Arrow's, or text, UTC unless it says otherwise.

    Text is ISO 8601, or has day, month and year with points: 31.01.2024, 31.01.2024 12:00.
    """
    pa = need("pyarrow")
    column = plain(column)
    if pa.types.is_string(column.type):
        for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
            try:
                return _floats(column.cast(kind).cast(pa.int64()).cast(pa.float64(), safe=False)), None
            except pa.ArrowInvalid:
                continue
        texts = need("pyarrow.compute").replace_substring_regex(column, _DAY_FIRST, r"\3-\2-\1\4")
        if not texts.equals(column):
            return as_microseconds(texts)
        return _parse_times(column.to_pylist())
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        whole = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
        return _floats(whole.cast(pa.float64(), safe=False)), None
    return np.full(len(column), np.nan), np.asarray(column.is_valid())


def _parse_times(cells: list[str | None]) -> tuple[Array, NDArray[np.bool_]]:
    """One by one: the slow path, for text that is not all of one form."""
    values, text = np.full(len(cells), np.nan), np.zeros(len(cells), dtype=bool)
    for i, cell in enumerate(cells):
        if cell is None or not cell.strip():
            continue
        try:
            moment = datetime.fromisoformat(cell.strip())
        except ValueError:
            text[i] = True
            continue
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        values[i] = (moment - _EPOCH).total_seconds() * 1e6
    return values, text


def count_numbers(column: Any) -> tuple[int, int]:
    """How many cells hold a number, and how many hold something else."""
    values, text = as_float(column)
    return int(np.count_nonzero(~np.isnan(values))), 0 if text is None else int(text.sum())
