"""Tables in memory to blocks of Arrow rows: pandas, polars, Arrow, DuckDB, any Arrow stream, and (X, y) pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from halfwidth.errors import InputError
from halfwidth.streams.block import Block, need
from halfwidth.streams.sources.text_readers import cell_text, check_columns

TABLE = "<table>"
_SLICE_ROWS = 1 << 16


def is_pandas(value: Any) -> bool:
    return type(value).__module__.split(".")[0] == "pandas" and hasattr(value, "iloc") and hasattr(value, "columns")


def is_table(value: Any) -> bool:
    """Whether a value is a table by itself: a pandas frame, or anything with the Arrow stream interface."""
    return is_pandas(value) or (hasattr(value, "__arrow_c_stream__") and not is_series(value))


def is_series(value: Any) -> bool:
    """A single column: it has the Arrow stream interface too, but is no table."""
    return type(value).__name__ in ("Series", "ChunkedArray")


def is_pair(value: Any) -> bool:
    """Whether a value is an (X, y) pair; a tuple of two tables is two chunks."""
    return isinstance(value, tuple) and len(value) == 2 and not is_table(value[1])


def table_blocks(table: Any, name: str, columns: Sequence[str] | None, target: str | None = None) -> Iterator[Block]:
    """The blocks of one table or (X, y) pair; `name` is what errors call it."""
    if is_pair(table):
        table = _pair(table[0], table[1], name, target)
    if isinstance(table, Mapping):
        table = need("pyarrow").table(dict(table))
    if is_pandas(table):
        return _pandas_blocks(table, name, columns)
    if is_table(table):
        return _arrow_blocks(table, name, columns)
    raise InputError.of(name, "be a table with named columns or an (X, y) pair", type(table).__name__)


def _arrow_blocks(table: Any, name: str, columns: Sequence[str] | None) -> Iterator[Block]:
    pa = need("pyarrow")
    before = 0
    with pa.RecordBatchReader.from_stream(table) as reader:
        wanted = check_columns(name, reader.schema.names, columns)
        for batch in reader:
            yield Block(batch.select(wanted), name, before)
            before += batch.num_rows


def _pandas_blocks(frame: Any, name: str, columns: Sequence[str] | None) -> Iterator[Block]:
    pa = need("pyarrow")
    known = [str(column) for column in frame.columns]
    wanted = check_columns(name, known, columns)
    for start in range(0, len(frame), _SLICE_ROWS):
        part = frame.iloc[start : start + _SLICE_ROWS]
        cells = [_column(part.iloc[:, known.index(column)]) for column in wanted]
        yield Block(pa.RecordBatch.from_arrays(cells, names=wanted), name, start)


def _column(values: Any) -> Any:
    """An Arrow array of a pandas or NumPy column; a mixture of types becomes text, to be read cell by cell."""
    pa = need("pyarrow")
    try:
        column = pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        column = pa.array([cell_text(value) for value in values], pa.string())
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _pair(X: Any, y: Any, name: str, target: str | None) -> Any:
    """An (X, y) pair as one Arrow table; columns without names are x0, x1, ..., the target is y."""
    pa = need("pyarrow")
    if is_pandas(X):
        names, cells = [str(c) for c in X.columns], [_column(X.iloc[:, j]) for j in range(X.shape[1])]
    elif is_table(X):
        table = pa.table(X)
        names, cells = table.column_names, table.columns
    else:
        matrix = np.asarray(X)
        if matrix.ndim != 2:
            raise InputError.of(f"X of {name}", "be a matrix of rows by columns", f"shape {matrix.shape}")
        names, cells = [f"x{j}" for j in range(matrix.shape[1])], [_column(column) for column in matrix.T]
    labels = _column(y) if is_series(y) else _column(np.asarray(y))
    rows = len(cells[0]) if cells else len(labels)
    if len(labels) != rows:
        raise InputError.of(f"y of {name}", f"have as many rows as X ({rows})", len(labels))
    label = target or "y"
    if label in names:
        raise InputError.of(f"X of {name}", f"not hold the target {label!r} as well", names)
    return pa.table([*cells, labels], names=[*names, label])
