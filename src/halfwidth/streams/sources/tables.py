"""Tables in memory to blocks of Arrow rows: pandas, polars, Arrow, DuckDB, any Arrow stream, (X, y) pairs, and rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np

from halfwidth.checks import check_unmasked
from halfwidth.errors import InputError
from halfwidth.streams.block import Block, need
from halfwidth.streams.sources.json_reader import cell_text, text_batch
from halfwidth.streams.sources.selection import check_columns, shared_names

TABLE = "<table>"
_SLICE_ROWS = 1 << 16
_DICT_ROWS = 1 << 12


def is_pandas(value: Any) -> bool:
    """Whether a value is a pandas DataFrame."""
    return type(value).__module__.split(".")[0] == "pandas" and hasattr(value, "iloc") and hasattr(value, "columns")


def is_lazy(value: Any) -> bool:
    """Whether a value is a query that yields batches each time it runs: a polars LazyFrame or a pyarrow dataset."""
    return hasattr(value, "collect_batches") or (hasattr(value, "to_batches") and hasattr(value, "scanner"))


def is_table(value: Any) -> bool:
    """Whether a value is a table by itself: a pandas frame, or anything with the Arrow stream interface."""
    return is_pandas(value) or is_lazy(value) or (hasattr(value, "__arrow_c_stream__") and not is_series(value))


def is_series(value: Any) -> bool:
    """A single column: it has the Arrow stream interface too, but is no table."""
    return type(value).__name__ in ("Series", "ChunkedArray")


def is_pair(value: Any) -> bool:
    """Whether a value is an (X, y) pair; a tuple of two tables or rows is two chunks."""
    return isinstance(value, tuple) and len(value) == 2 and not is_table(value[1]) and not is_row(value[1])


def is_row(value: Any) -> bool:
    """Whether a value is one row, a dictionary of cells; a dictionary of columns is a table."""
    return isinstance(value, Mapping) and bool(value) and not any(_is_column(cell) for cell in value.values())


def _is_column(cell: Any) -> bool:
    return (
        is_series(cell)
        or (isinstance(cell, (Sequence, np.ndarray)) and not isinstance(cell, (str, bytes)))
        or (hasattr(cell, "__array__") and np.ndim(cell) > 0)
    )


def table_blocks(table: Any, name: str, columns: Sequence[str] | None, target: str | None = None) -> Iterator[Block]:
    """The blocks of one table or (X, y) pair; `name` is what errors call it."""
    if is_pair(table):
        table = _pair(table[0], table[1], name, target)
    if isinstance(table, Mapping):
        cells = {str(key): _column(value) for key, value in table.items()}
        rows = {key: len(column) for key, column in cells.items()}
        if len(set(rows.values())) > 1:
            raise InputError.of(name, "have columns of one length", rows)
        table = need("pyarrow").table(cells)
    if is_pandas(table):
        return _pandas_blocks(table, name, columns)
    if is_lazy(table):
        return _lazy_blocks(table, name, columns)
    if is_table(table):
        return _arrow_blocks(table, name, columns)
    raise InputError.of(name, "be a table with named columns, a row or an (X, y) pair", type(table).__name__)


def _arrow_blocks(table: Any, name: str, columns: Sequence[str] | None, before: int = 0) -> Iterator[Block]:
    pa = need("pyarrow")
    with pa.RecordBatchReader.from_stream(table) as reader:
        wanted = check_columns(name, reader.schema.names, columns)
        for batch in reader:
            yield Block(batch.select(wanted), name, before, shared=shared_names(reader.schema.names))
            before += batch.num_rows


def _lazy_blocks(query: Any, name: str, columns: Sequence[str] | None) -> Iterator[Block]:
    """Batches of a query in its own order, only the wanted columns computed."""
    before = 0
    if hasattr(query, "collect_batches"):
        wanted = check_columns(name, query.collect_schema().names(), columns)
        for frame in query.select(wanted).collect_batches(chunk_size=_SLICE_ROWS, maintain_order=True):
            for block in _arrow_blocks(frame, name, None, before):
                before = block.before + block.rows
                yield block
        return
    wanted = check_columns(name, query.schema.names, columns)
    for batch in query.to_batches(columns=wanted, batch_size=_SLICE_ROWS, batch_readahead=1, fragment_readahead=1):
        if batch.num_rows:
            yield Block(batch, name, before)
            before += batch.num_rows


def _pandas_blocks(frame: Any, name: str, columns: Sequence[str] | None) -> Iterator[Block]:
    pa = need("pyarrow")
    known = [str(column) for column in frame.columns]
    wanted = check_columns(name, known, columns)
    for start in range(0, len(frame), _SLICE_ROWS):
        part = frame.iloc[start : start + _SLICE_ROWS]
        cells = [_column(part.iloc[:, known.index(column)]) for column in wanted]
        yield Block(pa.RecordBatch.from_arrays(cells, names=wanted), name, start, shared=shared_names(known))


def row_blocks(rows: Iterable[Mapping[str, Any]], name: str) -> Iterator[Block]:
    """The blocks of an iterable of row dictionaries; a key that a row lacks is null."""
    pa = need("pyarrow")
    rows, before = iter(rows), 0
    untyped: frozenset[str] = frozenset()
    while part := list(islice(rows, _DICT_ROWS)):
        for row in part:
            if not isinstance(row, Mapping):
                raise InputError.of(f"row {before + 1} of {name}", "be a dictionary like those before it", row)
        named = [{str(key): value for key, value in row.items()} for row in part]
        keys = list(dict.fromkeys(key for row in named for key in row))
        try:
            cells = [pa.array([row.get(key) for row in named], from_pandas=True) for key in keys]
            batch = pa.RecordBatch.from_arrays(cells, names=keys)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            batch, untyped = text_batch(named), untyped.union(keys)
        except OverflowError:
            raise _too_long() from None
        yield Block(batch, name, before, sparse=True, untyped=untyped)
        before += batch.num_rows


def chunk_blocks(chunks: Iterable[Any], target: str | None) -> Iterator[Block]:
    """The blocks of an iterable of tables, of pairs, or of rows."""
    chunks = iter(chunks)
    for first in chunks:
        if is_row(first):
            yield from row_blocks(chain([first], chunks), "<rows>")
            return
        chunks = chain([first], chunks)
        break
    for number, chunk in enumerate(chunks, 1):
        yield from table_blocks(chunk, f"chunk {number}", None, target)


def _column(values: Any) -> Any:
    """An Arrow array of a pandas or NumPy column; a mixture of types becomes text, to be read cell by cell."""
    pa = need("pyarrow")
    try:
        column = pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        column = pa.array([cell_text(value) for value in values], pa.string())
    except OverflowError:
        raise _too_long() from None
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _too_long() -> InputError:
    """The error for Python's integers, which know no limit."""
    return InputError("whole numbers in a column must fit 64 bits: convert longer ones to float, or to text")


def _pair(X: Any, y: Any, name: str, target: str | None) -> Any:
    """An (X, y) pair as one Arrow table; columns without names are x0, x1, ..., the target is y."""
    pa = need("pyarrow")
    if is_pandas(X):
        names, cells = [str(c) for c in X.columns], [_column(X.iloc[:, j]) for j in range(X.shape[1])]
    elif is_table(X):
        table = pa.table(X)
        names, cells = table.column_names, table.columns
    else:
        check_unmasked(f"X of {name}", X)
        matrix = np.asarray(X)
        if matrix.ndim != 2:
            raise InputError.of(f"X of {name}", "be a matrix of rows by columns", f"shape {matrix.shape}")
        names, cells = [f"x{j}" for j in range(matrix.shape[1])], [_column(column) for column in matrix.T]
    check_unmasked(f"y of {name}", y)
    labels = _column(y) if is_series(y) else _column(np.asarray(y))
    rows = len(cells[0]) if cells else len(labels)
    if len(labels) != rows:
        raise InputError.of(f"y of {name}", f"have as many rows as X ({rows})", len(labels))
    label = target or "y"
    if label in names:
        raise InputError.of(f"X of {name}", f"not hold the target {label!r} as well", names)
    return pa.table([*cells, labels], names=[*names, label])
