"""Everything that rows can come from, behind one small interface: `files`, `rereadable`, `blocks`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from halfwidth.errors import InputError
from halfwidth.streams.block import Block, need
from halfwidth.streams.sources.databases import DatabaseSource, is_address
from halfwidth.streams.sources.files import DataFile, describe_all, find_files
from halfwidth.streams.sources.reader_options import Dialect, ReaderOptions
from halfwidth.streams.sources.readers import STDIN, TextSettings, read_blocks, read_pipe, read_stdin
from halfwidth.streams.sources.selection import Selection
from halfwidth.streams.sources.sizes import SizeOfFiles, count_rows, rows_of_table, share_of
from halfwidth.streams.sources.tables import TABLE, chunk_blocks, is_pair, is_row, is_table, row_blocks, table_blocks

_KINDS = (
    "be a path, a list of paths, '-', a database address, a pandas, polars or Arrow table, a LazyFrame, a pyarrow "
    "dataset, a DuckDB relation, an (X, y) pair, or an iterator of such tables or pairs, or of rows as dictionaries"
)


class Source(Protocol):
    """Rows in a fixed order. `blocks` starts from the first row after `skip` at each call, if `rereadable`."""

    @property
    def files(self) -> tuple[str, ...]: ...

    @property
    def rereadable(self) -> bool: ...

    @property
    def default_target(self) -> str | None: ...

    def narrow(self, columns: Sequence[str]) -> None:
        """Read only these columns from here on, where that saves work."""

    def blocks(self, columns: Sequence[str] | None, skip: int = 0) -> Iterator[Block]: ...

    def share(self, rows: int) -> float | None:
        """How much of it was read, from 0 to 1, after this many rows of a pass; None where its size is not known."""


class FileSource:
    """Files, one after the other.

    Parameters
    ----------
    files
        What to read, in order.
    options
        How text is written.
    dialect
        What an earlier run found, where one is resumed.
    """

    rereadable = True
    default_target = None

    def __init__(self, files: Sequence[DataFile], options: ReaderOptions, dialect: Dialect | None = None) -> None:
        self._files, self.settings = list(files), TextSettings(options, dialect)
        self._size = SizeOfFiles(self._files)

    def narrow(self, columns: Sequence[str]) -> None:
        """Each call of `blocks` says which columns it wants."""

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(file.name for file in self._files)

    def blocks(self, columns: Sequence[str] | None, skip: int = 0) -> Iterator[Block]:
        passed = skip
        self._size.noted.clear()
        for at, file in enumerate(self._files):
            self._size.at, self.settings.reading = at, None
            rows = count_rows(file) if skip else None
            if rows is not None and rows <= skip:
                skip -= rows
                continue
            end = 0
            for block in read_blocks(file, Selection(columns), self.settings, 0 if rows is None else skip):
                end = block.before + block.rows
                if end > skip:
                    found = block.cut(max(0, skip - block.before), block.rows)
                    passed += found.rows
                    self._size.note(passed, self.settings.reading)
                    yield found
            skip = max(0, skip - end)

    def share(self, rows: int) -> float | None:
        return self._size.share(rows)


class OnceSource:
    """A source that can be read once: standard input, a pipe, a generator of chunks, a stream of record batches."""

    rereadable = False

    def __init__(
        self,
        name: str,
        blocks: Iterator[Block],
        default_target: str | None = None,
        selection: Selection | None = None,
        settings: TextSettings | None = None,
    ) -> None:
        self.files, self.default_target = (name,), default_target
        self._blocks: Iterator[Block] | None = blocks
        self._selection, self.settings = selection or Selection(), settings

    def narrow(self, columns: Sequence[str]) -> None:
        """Let the reader skip other columns from its next block on."""
        self._selection.names = list(columns)

    def blocks(self, columns: Sequence[str] | None, skip: int = 0) -> Iterator[Block]:
        if self._blocks is None:
            raise InputError(
                f"{self.files[0]} can be read only once; for a second pass, or to start again, "
                "store the rows in a file first"
            )
        blocks, self._blocks = self._blocks, None
        return drop_total(blocks, skip)

    def share(self, rows: int) -> float | None:
        return None


class TableSource:
    """A table in memory, or a list of chunks: it can be read as often as one likes."""

    rereadable = True

    def __init__(self, tables: Sequence[Any], target: str | None, names: Sequence[str]) -> None:
        self._tables, self._target = tables, target
        self.default_target = "y" if any(map(is_pair, tables)) else None
        self.files = tuple(names)

    def narrow(self, columns: Sequence[str]) -> None:
        """Each call of `blocks` says which columns it wants."""

    def blocks(self, columns: Sequence[str] | None, skip: int = 0) -> Iterator[Block]:
        pieces = (
            table_blocks(table, name, columns, self._target)
            for table, name in zip(self._tables, self.files, strict=True)
        )
        return drop_total((block for blocks in pieces for block in blocks), skip)

    def share(self, rows: int) -> float | None:
        return share_of(rows, [rows_of_table(table) for table in self._tables])


def drop_total(blocks: Iterable[Block], skip: int) -> Iterator[Block]:
    """The blocks without their first `skip` rows, counted over all files."""
    for block in blocks:
        if block.rows > skip:
            yield block.cut(skip, block.rows)
        skip = max(0, skip - block.rows)


def as_source(source: Any, options: ReaderOptions, target: str | None = None, dialect: Dialect | None = None) -> Source:
    """The source behind a path, an address, a table, a relation or an iterator.

    Parameters
    ----------
    source
        What the user gave.
    options
        How it is read.
    target
        The name of y in an (X, y) pair.
    dialect
        How an earlier run found text to be written, where one is resumed.
    """
    selection, settings = Selection(), TextSettings(options, dialect)
    if isinstance(source, str) and source == "-":
        return OnceSource(STDIN, read_stdin(selection, settings), None, selection, settings)
    if is_address(source):
        return DatabaseSource(source, options.query)
    if options.query is not None:
        raise InputError.of("query", "come with a database address, like sqlite:///rows.db", options.query)
    if isinstance(source, (str, os.PathLike)):
        return _from_files(find_files(source, options.format), selection, settings)
    if isinstance(source, (list, tuple)) and source and all(isinstance(s, (str, os.PathLike)) for s in source):
        return _from_files(describe_all([os.fspath(s) for s in source], options.format), selection, settings)
    if is_pair(source):
        return TableSource([source], target, [TABLE])
    if isinstance(source, Mapping):
        return TableSource([source], target, [TABLE])
    return _from_object(source, target)


def _from_files(files: list[DataFile], selection: Selection, settings: TextSettings) -> Source:
    """Regular files may be read again; a pipe, like that of a process substitution, only once."""
    pipes = [file for file in files if file.stamp is None]
    if not pipes:
        return FileSource(files, settings.options, settings.dialect)
    if len(files) > 1:
        raise InputError.of("source", "be regular files, or one pipe", pipes[0].name)
    return OnceSource(pipes[0].name, _pipe_blocks(pipes[0].name, selection, settings), None, selection, settings)


def _pipe_blocks(name: str, selection: Selection, settings: TextSettings) -> Iterator[Block]:
    with open(name, "rb") as raw:
        yield from read_pipe(raw, name, selection, settings)


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
        if source and is_row(source[0]):
            return RowsSource(source)
        return TableSource(source, target, [f"chunk {i}" for i in range(1, len(source) + 1)])
    if isinstance(source, Iterator) or (isinstance(source, Iterable) and not hasattr(source, "shape")):
        return OnceSource("<chunks>", chunk_blocks(source, target), "y")
    raise InputError.of("source", _KINDS, type(source).__name__)


class RowsSource:
    """A list of rows, each a dictionary."""

    rereadable = True
    default_target = None
    files = ("<rows>",)

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._rows = rows

    def narrow(self, columns: Sequence[str]) -> None:
        """Rows are whole; nothing to do."""

    def blocks(self, columns: Sequence[str] | None, skip: int = 0) -> Iterator[Block]:
        """The blocks after the first `skip` rows."""
        return drop_total(row_blocks(self._rows, "<rows>"), skip)

    def share(self, rows: int) -> float | None:
        return share_of(rows, [len(self._rows)])
