"""Everything that rows can come from, behind one small interface: `files`, `rereadable`, `blocks`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from halfwidth.errors import InputError
from halfwidth.streams.block import Block, need
from halfwidth.streams.sources.files import DataFile, check_format, describe_all, find_files
from halfwidth.streams.sources.readers import STDIN, count_rows, read_blocks, read_stdin
from halfwidth.streams.sources.tables import TABLE, is_pair, is_table, table_blocks

_KINDS = (
    "be a path, a list of paths, '-', a pandas, polars or Arrow table, a DuckDB relation, an (X, y) pair, "
    "or an iterator of such tables or pairs"
)


class Source(Protocol):
    """Rows in a fixed order. `blocks` starts from the first row after `skip` at each call, if `rereadable`."""

    @property
    def files(self) -> tuple[str, ...]: ...

    @property
    def rereadable(self) -> bool: ...

    @property
    def default_target(self) -> str | None: ...

    def blocks(self, columns: Sequence[str] | None, skip: int = 0) -> Iterator[Block]: ...


class FileSource:
    """Files, one after the other."""

    rereadable = True
    default_target = None

    def __init__(self, files: Sequence[DataFile]) -> None:
        self._files = list(files)

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(file.name for file in self._files)

    def blocks(self, columns: Sequence[str] | None, skip: int = 0) -> Iterator[Block]:
        for file in self._files:
            rows = count_rows(file) if skip else None
            if rows is not None and rows <= skip:
                skip -= rows
                continue
            end = 0
            for block in read_blocks(file, columns, 0 if rows is None else skip):
                end = block.before + block.rows
                if end > skip:
                    yield block.cut(max(0, skip - block.before), block.rows)
            skip = max(0, skip - end)


class OnceSource:
    """A source that can be read once: standard input, a generator of chunks, a stream of record batches."""

    rereadable = False

    def __init__(self, name: str, blocks: Iterator[Block], default_target: str | None = None) -> None:
        self.files, self.default_target = (name,), default_target
        self._blocks: Iterator[Block] | None = blocks

    def blocks(self, columns: Sequence[str] | None, skip: int = 0) -> Iterator[Block]:
        if self._blocks is None:
            raise InputError(
                f"{self.files[0]} can be read only once; for a second pass, or to start again, "
                "store the rows in a file first"
            )
        blocks, self._blocks = self._blocks, None
        return drop_total(blocks, skip)


class TableSource:
    """A table in memory, or a list of chunks: it can be read as often as one likes."""

    rereadable = True

    def __init__(self, tables: Sequence[Any], target: str | None, names: Sequence[str]) -> None:
        self._tables, self._target = tables, target
        self.default_target = "y" if any(map(is_pair, tables)) else None
        self.files = tuple(names)

    def blocks(self, columns: Sequence[str] | None, skip: int = 0) -> Iterator[Block]:
        pieces = (
            table_blocks(table, name, columns, self._target)
            for table, name in zip(self._tables, self.files, strict=True)
        )
        return drop_total((block for blocks in pieces for block in blocks), skip)


def drop_total(blocks: Iterable[Block], skip: int) -> Iterator[Block]:
    """The blocks without their first `skip` rows, counted over all files."""
    for block in blocks:
        if block.rows > skip:
            yield block.cut(skip, block.rows)
        skip = max(0, skip - block.rows)


def _chunk_blocks(chunks: Iterable[Any], target: str | None) -> Iterator[Block]:
    for number, chunk in enumerate(chunks, 1):
        yield from table_blocks(chunk, f"chunk {number}", None, target)


def as_source(source: Any, format: str | None = None, target: str | None = None) -> Source:
    """The source behind a path, a table, a relation or an iterator of chunks."""
    check_format(format)
    if isinstance(source, str) and source == "-":
        if format == "parquet":
            raise InputError.of("format", "be csv, ndjson or arrow for standard input", format)
        return OnceSource(STDIN, read_stdin(format or "csv", None))
    if isinstance(source, (str, os.PathLike)):
        return FileSource(find_files(source, format))
    if isinstance(source, (list, tuple)) and source and all(isinstance(s, (str, os.PathLike)) for s in source):
        return FileSource(describe_all([os.fspath(s) for s in source], format))
    if is_pair(source):
        return TableSource([source], target, [TABLE])
    if isinstance(source, Mapping):
        return TableSource([need("pyarrow").table(dict(source))], target, [TABLE])
    return _from_object(source, target)


def _from_object(source: Any, target: str | None) -> Source:
    pa = need("pyarrow")
    if is_table(source):
        once = isinstance(source, pa.RecordBatchReader) or type(source).__module__.split(".")[0] not in (
            "pyarrow",
            "polars",
            "pandas",
            "duckdb",
        )
        if once:
            return OnceSource(TABLE, table_blocks(source, TABLE, None, target))
        return TableSource([source], target, [TABLE])
    if isinstance(source, Sequence) and not isinstance(source, (str, bytes)):
        return TableSource(source, target, [f"chunk {i}" for i in range(1, len(source) + 1)])
    if isinstance(source, Iterator) or (isinstance(source, Iterable) and not hasattr(source, "shape")):
        return OnceSource("<chunks>", _chunk_blocks(source, target), "y")
    raise InputError.of("source", _KINDS, type(source).__name__)
