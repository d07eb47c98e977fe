"""CSV in blocks of about a megabyte, with every row accounted for.

Cells are read as text, because the first block must not decide what later ones may hold; `convert` turns them into
numbers. A row that cannot be read at all keeps its place, as nulls.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from typing import Any

import numpy as np

from halfwidth.streams.block import Block, need
from halfwidth.streams.sources import byte_stream
from halfwidth.streams.sources.byte_stream import ByteStream
from halfwidth.streams.sources.csv_header import read_header
from halfwidth.streams.sources.dialect import as_plain_numbers, find_numbers, sniffed_cells
from halfwidth.streams.sources.reader_options import Dialect, ReaderOptions
from halfwidth.streams.sources.row_ends import MOST_FAULTS, WHY, Marks, scan_csv
from halfwidth.streams.sources.selection import Selection, check_columns, shared_names

_BROKEN_MARK = "\x00"


class _Transcoded:
    """Bytes of another encoding as UTF-8."""

    def __init__(self, source: ByteStream, encoding: str) -> None:
        self._source, self._decoder = source, codecs.getincrementaldecoder(encoding)()
        self._done = False

    def read(self, size: int) -> bytes:
        while not self._done:
            piece = self._source.read(size)
            if not piece:
                self._source.finish()
                self._done = True
            text = self._decoder.decode(piece, final=self._done)
            if text:
                return text.encode()
        return b""


class CsvReader:
    """One CSV file. `dialect` is set once the first block was read.

    Parameters
    ----------
    stream
        The bytes.
    file
        What errors call it.
    selection
        The columns to read; it may be narrowed between two blocks.
    options
        What is known about how the file is written.
    dialect
        That of an earlier file of the same source, if there was one.
    """

    def __init__(
        self,
        stream: ByteStream,
        file: str,
        selection: Selection,
        options: ReaderOptions,
        dialect: Dialect | None = None,
    ) -> None:
        self._file, self._selection, self._options, self.dialect = file, selection, options, dialect
        front = stream.read(4)
        stream.push_back(front)
        encoding = options.encoding or ("utf-16" if front[:2] in (b"\xff\xfe", b"\xfe\xff") else None)
        if encoding is not None and codecs.lookup(encoding).name != "utf-8":
            stream = ByteStream(_Transcoded(stream, encoding))
        self._stream = stream
        self._names: list[str] = []
        self._numbers_known = dialect is not None

    def blocks(self) -> Iterator[Block]:
        """The wanted columns as text, null where a cell is empty or says NA, NaN or null."""
        self._names, self.dialect, front = read_header(self._stream, self._file, self._options, self.dialect)
        before = 0
        for text, broken in self._whole_rows(front):
            if text.strip():
                block = self._parse(text, before, broken)
                before += block.rows
                yield block

    def _whole_rows(self, carried: bytes) -> Iterator[tuple[bytes, bool]]:
        """Blocks that end where rows end, and whether lines with broken quotes were marked in them.

        A row cut off by a failure is dropped, then the failure is raised. While no row ends, each read is as long as
        all before it, so that looking again costs at most twice.
        """
        while True:
            more = self._stream.read(max(byte_stream.BLOCK_BYTES, len(carried)))
            carried += more
            final = not more and not self._stream.failed
            text, carried, broken = self._cut(carried, final)
            if text:
                yield text, broken
            if len(carried) > byte_stream.LONGEST_ROW:
                raise OverflowError(f"a row is longer than {byte_stream.LONGEST_ROW:,} bytes")
            if not more and (not text or not carried):
                break
        self._stream.finish()

    def _cut(self, data: bytes, final: bool) -> tuple[bytes, bytes, bool]:
        assert self.dialect is not None
        quote = self.dialect.quote.encode()
        if quote and quote in data:
            faults = np.empty((MOST_FAULTS, 3), dtype=np.int64)
            marks = Marks(ord(self.dialect.separator), quote[0], len(self._names))
            end, found = scan_csv(np.frombuffer(data, dtype=np.uint8), marks, final, byte_stream.LONGEST_ROW, faults)
            text = self._mark(data[:end], faults[:found]) if found else data[:end]
            return text, data[end:], bool(found)
        end = len(data) if final else data.rfind(b"\n") + 1
        if not end:
            end = data.rfind(b"\r", 0, -1) + 1
        return data[:end], data[end:], False

    def _mark(self, text: bytes, faults: Any) -> bytes:
        """The text with every broken line replaced by one with a wrong number of fields, which says why."""
        assert self.dialect is not None
        pieces, at = [], 0
        extra = self.dialect.separator if len(self._names) == 1 else ""
        for start, stop, why in faults.tolist():
            pieces += [text[at:start], f"{_BROKEN_MARK}{why}{extra}".encode()]
            at = stop
        return b"".join([*pieces, text[at:]])

    def _parse(self, text: bytes, before: int, marked: bool) -> Block:
        pa = need("pyarrow")
        wanted = check_columns(self._file, self._names, self._selection.names)
        if not wanted:
            wanted = self._names[:1]
        absent: dict[int, str] = {}
        odd: dict[int, str] = {}
        try:
            text.decode()
            table = self._arrow_table(text, wanted, absent, marked)
        except UnicodeDecodeError:
            table = self._arrow_table(text.decode(errors="replace").encode(), wanted, absent, marked)
            odd = _undecoded(table)
        if not self._numbers_known:
            self._find_numbers(table)
        columns = [column.combine_chunks() for column in table.columns]
        columns = [c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c for c in columns]
        if self.dialect is not None and not self.dialect.plain:
            columns = [as_plain_numbers(column, self.dialect) for column in columns]
        batch = pa.RecordBatch.from_arrays(columns, names=wanted)
        if absent:
            missing = np.zeros(batch.num_rows + len(absent), dtype=bool)
            missing[list(absent)] = True
            present = np.flatnonzero(~missing)
            batch = batch.take(pa.array(np.cumsum(~missing) - 1, pa.int64(), mask=missing))
            odd = {int(present[row]): why for row, why in odd.items()}
        shared = shared_names(self._names)
        return Block(batch, self._file, before, absent | odd, untyped=frozenset(wanted), shared=shared)

    def _arrow_table(self, text: bytes, wanted: list[str], absent: dict[int, str], marked: bool) -> Any:
        pc = need("pyarrow.csv")
        assert self.dialect is not None

        def note(row: Any) -> str:
            why = f"it has {row.actual_columns} fields where the header has {row.expected_columns}"
            if marked and row.text.startswith(_BROKEN_MARK):
                why = WHY.get(ord(row.text[1:2] or "0") - ord("0"), why)
            absent[row.number - 1] = why
            return "skip"

        # One thread: only then does Arrow number the rows it cannot parse.
        return pc.read_csv(
            io.BytesIO(text),
            read_options=pc.ReadOptions(column_names=self._names, use_threads=False, block_size=len(text) + 1),
            parse_options=pc.ParseOptions(
                delimiter=self.dialect.separator,
                quote_char=self.dialect.quote or False,
                newlines_in_values=True,
                invalid_row_handler=note,
            ),
            convert_options=pc.ConvertOptions(
                column_types=dict.fromkeys(wanted, need("pyarrow").string()),
                include_columns=wanted,
                strings_can_be_null=True,
            ),
        )

    def _find_numbers(self, table: Any) -> None:
        """Settle decimal and thousands marks on the first block."""
        assert self.dialect is not None
        now, self._numbers_known = self.dialect, True
        decimal, thousands = find_numbers(self._file, self._options, now.separator, sniffed_cells(table))
        found = list(now.found)
        found += ["decimal"] if decimal != now.decimal else []
        found += ["thousands"] if thousands != now.thousands else []
        self.dialect = Dialect(now.separator, now.quote, decimal, thousands, tuple(found))


def _undecoded(table: Any) -> dict[int, str]:
    """The rows of a table with bytes that were not UTF-8, and in which column."""
    pc = need("pyarrow.compute")
    odd: dict[int, str] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        mask = pc.fill_null(pc.match_substring(column, "\ufffd"), False).to_numpy()
        for row in np.flatnonzero(mask).tolist():
            why = f"column {name!r} holds bytes that are not UTF-8 (another encoding? encoding=, --encoding latin-1)"
            odd.setdefault(row, why)
    return odd
