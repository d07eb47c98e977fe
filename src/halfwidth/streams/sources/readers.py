"""One file, or standard input, to blocks of Arrow rows; whatever fails ends in a `BadRow` with file and row."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from halfwidth.errors import HalfwidthError, InputError
from halfwidth.streams.block import Block, need
from halfwidth.streams.design.bad_rows import BROKEN_FILE, fault
from halfwidth.streams.sources.binary_readers import (
    ARROW_FILE,
    PARQUET,
    read_arrow,
    read_ipc_stream,
    read_parquet,
    read_spooled,
)
from halfwidth.streams.sources.byte_stream import ByteStream, ChangedFile, CheckedFile
from halfwidth.streams.sources.csv_reader import CsvReader
from halfwidth.streams.sources.files import DataFile
from halfwidth.streams.sources.json_reader import read_json
from halfwidth.streams.sources.reader_options import Dialect, ReaderOptions
from halfwidth.streams.sources.selection import Selection

STDIN = "<stdin>"
_GO_ON = "; what was there before was read: run again, or resume from the checkpoint"


class TextSettings:
    """How the text of a source is written: the options, and the dialect that its first file showed."""

    def __init__(self, options: ReaderOptions, dialect: Dialect | None = None) -> None:
        self.options, self.dialect = options, dialect
        self.reading: CheckedFile | None = None
        """The file whose bytes are read now."""


def read_blocks(file: DataFile, selection: Selection, settings: TextSettings, skip: int = 0) -> Iterator[Block]:
    """The blocks of a file after its first `skip` rows; what cannot be read raises `BadRow` with the place."""
    inner = Selection(None if selection.names is None else [n for n in selection.names if n not in file.keys])
    if file.format == "parquet":
        blocks = read_parquet(file, inner, skip)
    elif file.format == "arrow":
        blocks = read_arrow(file, inner)
    else:
        blocks = _read_text(file, inner, settings)
    for block in drop(_guarded(blocks, file.name, skip), skip):
        yield _with_keys(block, file, selection) if file.keys else block


def _with_keys(block: Block, file: DataFile, selection: Selection) -> Block:
    """The block with the partition keys of its file as columns; a column of the file itself goes first."""
    pa = need("pyarrow")
    batch = block.batch
    for name, value in file.keys.items():
        if name not in batch.schema.names and (selection.names is None or name in selection.names):
            batch = batch.append_column(name, pa.repeat(pa.scalar(value, pa.string()), batch.num_rows))
    return replace(block, batch=batch, untyped=block.untyped.union(file.keys))


def read_stdin(selection: Selection, settings: TextSettings) -> Iterator[Block]:
    """The blocks of standard input."""
    if sys.stdin is None or sys.stdin.closed:
        raise InputError("source '-' needs standard input, which is closed; pipe rows into the command")
    yield from read_pipe(sys.stdin.buffer, STDIN, selection, settings)


def read_pipe(raw: Any, name: str, selection: Selection, settings: TextSettings) -> Iterator[Block]:
    """The blocks of bytes that can be read only once, compressed or not; the first bytes tell the format."""
    stream = ByteStream(raw, "sniff")
    yield from _guarded(_piped_blocks(stream, name, selection, settings), name, 0)


def _piped_blocks(stream: ByteStream, name: str, selection: Selection, settings: TextSettings) -> Iterator[Block]:
    front = stream.read(8)
    stream.push_back(front)
    format = settings.options.format
    if front.startswith((PARQUET, ARROW_FILE)) and format in (None, "parquet", "arrow"):
        return read_spooled(stream, name, selection)
    if format == "parquet":
        raise ValueError("it does not begin like a Parquet file")
    if format == "arrow" or (format is None and front.startswith(b"\xff\xff\xff\xff")):
        return read_ipc_stream(stream, name, selection)
    if format == "ndjson" or (format is None and front.lstrip()[:1] in (b"{", b"[")):
        return read_json(stream, name, selection)
    return _csv_blocks(stream, name, selection, settings)


def drop(blocks: Iterator[Block], skip: int) -> Iterator[Block]:
    """The blocks without the rows of the file before row `skip`."""
    for block in blocks:
        if block.before + block.rows > skip:
            yield block.cut(max(0, skip - block.before), block.rows)


def _guarded(blocks: Iterator[Block], file: str, row: int) -> Iterator[Block]:
    """The same blocks; a failure becomes a `BadRow` that says how far the file was read.

    Every exception counts, because decoders of damaged bytes raise nearly any of them; the cause stays attached.
    """
    try:
        for block in blocks:
            row = block.before + block.rows
            yield block
    except HalfwidthError:
        raise
    except Exception as error:
        if type(error).__name__ == "ArrowCancelled":  # a signal, which says nothing about the file
            raise KeyboardInterrupt from error
        said = " ".join(str(error).split())[:300] or type(error).__name__
        ending = _GO_ON if isinstance(error, ChangedFile) else ""
        detail = f"the file cannot be read from this row on ({said}){ending}"
        raise fault(file, row + 1, None, BROKEN_FILE, detail) from error


def _read_text(file: DataFile, selection: Selection, settings: TextSettings) -> Iterator[Block]:
    checked = settings.reading = CheckedFile(file.name, file.stamp)
    try:
        stream = ByteStream(checked, file.compression)
        if file.format == "ndjson":
            yield from read_json(stream, file.name, selection)
        else:
            yield from _csv_blocks(stream, file.name, selection, settings)
    finally:
        checked.close()


def _csv_blocks(stream: ByteStream, name: str, selection: Selection, settings: TextSettings) -> Iterator[Block]:
    reader = CsvReader(stream, name, selection, settings.options, settings.dialect)
    for block in reader.blocks():
        settings.dialect = settings.dialect or reader.dialect
        yield block
