"""Parquet and Arrow IPC to blocks: only the wanted columns, memory flat in the size of the file, nothing mapped."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from itertools import accumulate
from typing import IO, Any

from halfwidth.streams.block import Block, need
from halfwidth.streams.sources.byte_stream import BLOCK_BYTES, ByteStream, CheckedFile
from halfwidth.streams.sources.files import DataFile
from halfwidth.streams.sources.selection import Selection, check_columns, shared_names

_MOST_PARQUET_ROWS, _FEWEST_PARQUET_ROWS, _PARQUET_CELLS = 49_152, 1_024, 1 << 20
ARROW_FILE, PARQUET = b"ARROW1", b"PAR1"


def read_parquet(file: DataFile, selection: Selection, skip: int) -> Iterator[Block]:
    """The blocks of a Parquet file from the row group on that holds row `skip`."""
    _check(file)
    yield from _parquet_blocks(file.name, file.name, selection, skip)
    _check(file)


def _check(file: DataFile) -> None:
    if file.stamp is not None:
        file.stamp.check(os.stat(file.name))


def _parquet_blocks(source: Any, name: str, selection: Selection, skip: int) -> Iterator[Block]:
    parquet = need("pyarrow.parquet")
    # Neither whole column chunks nor later row groups are held: pages come through a small buffer.
    with parquet.ParquetFile(source, pre_buffer=False, buffer_size=BLOCK_BYTES, memory_map=False) as opened:
        wanted = check_columns(name, opened.schema_arrow.names, selection.names) or opened.schema_arrow.names[:1]
        sizes = [opened.metadata.row_group(i).num_rows for i in range(opened.num_row_groups)]
        starts = [0, *accumulate(sizes)]
        groups = [i for i in range(len(sizes)) if starts[i + 1] > skip]
        before = starts[groups[0]] if groups else 0
        threads = need("pyarrow").cpu_count() > 1  # a pool of one only adds waiting
        rows = max(_FEWEST_PARQUET_ROWS, min(_MOST_PARQUET_ROWS, _PARQUET_CELLS // len(wanted)))
        batches = opened.iter_batches(rows, row_groups=groups, columns=wanted, use_threads=threads)
        for batch in batches if groups else ():
            batch.validate(full=True)
            yield Block(batch, name, before, shared=shared_names(opened.schema_arrow.names))
            before += batch.num_rows
        if before != (starts[-1] if groups else before):
            raise EOFError(f"the file says that it has {starts[-1]:,} rows")


def read_arrow(file: DataFile, selection: Selection) -> Iterator[Block]:
    """The blocks of an Arrow IPC file or stream."""
    pa = need("pyarrow")
    checked = CheckedFile(file.name, file.stamp)
    try:
        front = checked.raw.read(len(ARROW_FILE))
        checked.raw.seek(0)
        if front == ARROW_FILE:
            with pa.OSFile(file.name, "rb") as opened:
                yield from _ipc_file_blocks(opened, file.name, selection)
            _check(file)
        else:
            yield from read_ipc_stream(checked, file.name, selection)
        checked.check()
    finally:
        checked.close()


def _ipc_file_blocks(opened: Any, name: str, selection: Selection) -> Iterator[Block]:
    ipc = need("pyarrow").ipc
    known = ipc.open_file(opened).schema.names
    wanted = check_columns(name, known, selection.names) or known[:1]
    options = ipc.IpcReadOptions(included_fields=[known.index(column) for column in wanted])
    reader = ipc.open_file(opened, options=options)
    batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
    yield from _validated(batches, name, known)


def read_ipc_stream(source: Any, name: str, selection: Selection) -> Iterator[Block]:
    """The blocks of an Arrow IPC stream; `source` has `read(size)`."""
    pa = need("pyarrow")
    reader = pa.ipc.open_stream(pa.PythonFile(_Unbuffered(source), mode="r"))
    known = reader.schema.names

    def batches() -> Iterator[Any]:
        for batch in reader:
            yield batch.select(check_columns(name, known, selection.names) or known[:1])

    yield from _validated(batches(), name, known)
    if isinstance(source, ByteStream):
        source.finish()


class _Unbuffered:
    """What Arrow asks of a Python file; each read is as long as asked for, unless the bytes end."""

    closed = False

    def __init__(self, source: Any) -> None:
        self._source = source

    def read(self, size: int) -> bytes:
        pieces = []
        while size > 0 and (piece := self._source.read(min(size, BLOCK_BYTES))):
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def readable(self) -> bool:
        return True

    def flush(self) -> None:
        """Nothing is buffered here."""

    def close(self) -> None:
        """The source is closed by whoever opened it."""


def _validated(batches: Iterator[Any], name: str, known: list[str]) -> Iterator[Block]:
    """Blocks whose offsets and indices were checked: Arrow trusts those of a file, and reads beyond its buffers."""
    before = 0
    for batch in batches:
        batch.validate(full=True)
        yield Block(batch, name, before, shared=shared_names(known))
        before += batch.num_rows


def read_spooled(stream: ByteStream, name: str, selection: Selection) -> Iterator[Block]:
    """A Parquet or Arrow file that comes through a pipe: on disk first, because its index is at its end."""
    with tempfile.TemporaryFile() as spool:
        magic = _copy(stream, spool)
        if magic.startswith(ARROW_FILE):
            yield from _ipc_file_blocks(need("pyarrow").PythonFile(spool, mode="r"), name, selection)
        else:
            yield from _parquet_blocks(spool, name, selection, 0)


def _copy(stream: ByteStream, spool: IO[bytes]) -> bytes:
    """Copy all bytes; returns the first ones."""
    first = piece = stream.read()
    while piece:
        spool.write(piece)
        piece = stream.read()
    stream.finish()
    spool.seek(0)
    return first[:8]
