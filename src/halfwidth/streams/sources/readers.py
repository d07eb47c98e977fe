"""One file, or stdin, to blocks of Arrow rows: only the wanted columns, memory flat in the size of the file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from halfwidth.errors import BadRow
from halfwidth.streams.block import Block, need
from halfwidth.streams.design.bad_rows import BROKEN_FILE, fault
from halfwidth.streams.sources.files import DataFile
from halfwidth.streams.sources.text_readers import check_columns, read_csv, read_ndjson

_PARQUET_ROWS = 8192
_BUFFER_BYTES = 1 << 20
STDIN = "<stdin>"


def read_blocks(file: DataFile, columns: Sequence[str] | None, skip: int = 0) -> Iterator[Block]:
    """The blocks of a file after its first `skip` rows; what cannot be read raises `BadRow` with the place."""
    if file.format == "parquet":
        blocks = _read_parquet(file.name, columns, skip)
    elif file.format == "arrow":
        blocks = _read_arrow(file.name, columns)
    else:
        blocks = _read_text(file, columns)
    yield from drop(_guarded(blocks, file.name, skip), skip)


def read_stdin(format: str, columns: Sequence[str] | None) -> Iterator[Block]:
    """The blocks of standard input."""
    stream = sys.stdin.buffer
    if format == "csv":
        blocks = read_csv(stream, STDIN, columns)
    elif format == "ndjson":
        blocks = read_ndjson(stream, STDIN, columns)
    else:
        blocks = _batches(_open_ipc_stream(stream, columns, STDIN), STDIN)
    yield from _guarded(blocks, STDIN, 0)


def count_rows(file: DataFile) -> int | None:
    """How many rows a file holds, where that is cheap to know (Parquet); else None."""
    if file.format != "parquet":
        return None
    try:
        return int(need("pyarrow.parquet").read_metadata(file.name).num_rows)
    except (OSError, need("pyarrow").ArrowException):
        return None  # the reader will say what is wrong with it


def drop(blocks: Iterator[Block], skip: int) -> Iterator[Block]:
    """The blocks without the rows of the file before row `skip`."""
    for block in blocks:
        if block.before + block.rows > skip:
            yield block.cut(max(0, skip - block.before), block.rows)


def _guarded(blocks: Iterator[Block], file: str, row: int) -> Iterator[Block]:
    """The same blocks; a failure of the file becomes a `BadRow` that says how far the file was read."""
    failures = (OSError, UnicodeDecodeError, EOFError, need("pyarrow").ArrowException)
    try:
        for block in blocks:
            row = block.before + block.rows
            yield block
    except BadRow:
        raise
    except failures as error:
        said = " ".join(str(error).split())
        detail = f"the file cannot be read from this row on ({said})"
        raise fault(file, row + 1, None, BROKEN_FILE, detail) from error


def _read_text(file: DataFile, columns: Sequence[str] | None) -> Iterator[Block]:
    with need("pyarrow").input_stream(file.name, compression=file.compression) as stream:
        yield from (read_csv if file.format == "csv" else read_ndjson)(stream, file.name, columns)


def _read_parquet(name: str, columns: Sequence[str] | None, skip: int) -> Iterator[Block]:
    parquet = need("pyarrow.parquet")
    # Neither whole column chunks nor later row groups are held: pages come through a small buffer.
    with parquet.ParquetFile(name, pre_buffer=False, buffer_size=_BUFFER_BYTES) as file:
        wanted = check_columns(name, file.schema_arrow.names, columns)
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        starts = [0, *accumulate(sizes)]
        groups = [i for i in range(len(sizes)) if starts[i + 1] > skip]
        before = starts[groups[0]] if groups else 0
        for batch in file.iter_batches(_PARQUET_ROWS, row_groups=groups, columns=wanted) if groups else ():
            yield Block(batch, name, before)
            before += batch.num_rows


def _read_arrow(name: str, columns: Sequence[str] | None) -> Iterator[Block]:
    pa = need("pyarrow")
    with open(name, "rb") as raw:
        is_file = raw.read(6) == b"ARROW1"
    if not is_file:
        with open(name, "rb", buffering=_BUFFER_BYTES) as stream:
            yield from _batches(_open_ipc_stream(stream, columns, name), name)
        return
    if os.path.getsize(name) == 0:
        return
    with pa.memory_map(name) as mapped:
        reader = pa.ipc.open_file(mapped)
        reader = pa.ipc.open_file(mapped, options=_fields(reader.schema.names, columns, name))
        yield from _batches((reader.get_batch(i) for i in range(reader.num_record_batches)), name)


def _fields(known: list[str], columns: Sequence[str] | None, name: str) -> Any:
    """Options that make an IPC file reader decode only the wanted columns."""
    wanted = check_columns(name, known, columns)
    return need("pyarrow").ipc.IpcReadOptions(included_fields=[known.index(column) for column in wanted])


def _open_ipc_stream(stream: Any, columns: Sequence[str] | None, name: str) -> Iterator[Any]:
    reader = need("pyarrow").ipc.open_stream(stream)
    wanted = check_columns(name, reader.schema.names, columns)
    return (batch.select(wanted) for batch in reader)


def _batches(batches: Iterator[Any], name: str) -> Iterator[Block]:
    before = 0
    for batch in batches:
        yield Block(batch, name, before)
        before += batch.num_rows
