"""CSV and newline-delimited JSON, in blocks of about a megabyte, with every row accounted for.

CSV cells are read as text and NDJSON cells as they come, because the first block must not decide what later ones
may hold; `convert` turns them into numbers. A row that cannot be read at all keeps its place, as nulls.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any

from halfwidth.streams.block import Block, need
from halfwidth.streams.design.bad_rows import BROKEN_FILE, fault, missing_column

_BLOCK_BYTES = 1 << 20
_PIECE_BYTES = 1 << 12
# Beyond this a quote that never closes is taken to be a plain character.
_LONGEST_ROW = 1 << 24


def check_columns(file: str, known: Sequence[str], columns: Sequence[str] | None) -> list[str]:
    """The columns to read from a file that has the known ones; one that is absent or there twice raises."""
    for name in columns or ():
        if name not in known:
            raise missing_column(file, name, list(known))
        if list(known).count(name) > 1:
            raise fault(file, None, name, BROKEN_FILE, "two columns have this name")
    return list(dict.fromkeys(known)) if columns is None else list(columns)


class _Bytes:
    """A byte stream whose failure waits: what was read before it comes out first, then `finish` raises it.

    Small pieces, because a decompressor that fails keeps nothing of the piece it was asked for. Nothing reads ahead
    on another thread, as Arrow's own CSV stream does: there a failure overtakes good rows, at random.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._failure: Exception | None = None

    def read(self) -> bytes:
        """About a block; empty at the end, or where the stream fails."""
        pieces, size = [], 0
        while size < _BLOCK_BYTES and self._failure is None:
            try:
                piece = bytes(self._stream.read(_PIECE_BYTES))
            except (OSError, EOFError) as error:
                self._failure = error
                break
            if not piece:
                break
            pieces.append(piece)
            size += len(piece)
        return b"".join(pieces)

    @property
    def failed(self) -> bool:
        return self._failure is not None

    def finish(self) -> None:
        if self._failure is not None:
            raise self._failure


def _last_row_end(text: bytes) -> int:
    """The place after the last newline that is not inside quotes; 0 when there is none."""
    end = text.rfind(b"\n")
    while end >= 0 and len(text) < _LONGEST_ROW and text.count(b'"', 0, end) % 2:
        end = text.rfind(b"\n", 0, end)
    return end + 1


def _whole_rows(stream: _Bytes, carried: bytes, quotes: bool) -> Iterator[bytes]:
    """Blocks that end where rows end. A row cut off by a failure is dropped, then the failure is raised."""
    while True:
        more = stream.read()
        carried += more
        end = _last_row_end(carried) if quotes else carried.rfind(b"\n") + 1
        if end:
            yield carried[:end]
            carried = carried[end:]
        if not more:
            break
    if carried and not stream.failed:
        yield carried
    stream.finish()


def _header(stream: _Bytes, file: str) -> tuple[list[str], str, bytes]:
    """The names in the first row, the delimiter, and the bytes read beyond that row."""
    head = b""
    while True:
        more = stream.read()
        head += more
        end = head.find(b"\n")
        while end >= 0 and head.count(b'"', 0, end) % 2:  # a newline inside quotes
            end = head.find(b"\n", end + 1)
        if end >= 0 or not more:
            break
    if end < 0:
        stream.finish()
        end = len(head)
    line = head[:end].decode("utf-8-sig").strip("\r\n")
    if not line.strip():
        raise fault(file, None, None, BROKEN_FILE, "it has no header row")
    delimiter = "," if "," in line else next((mark for mark in "\t;" if mark in line), ",")
    return next(csv.reader(io.StringIO(line, newline=""), delimiter=delimiter)), delimiter, head[end + 1 :]


def read_csv(stream: Any, file: str, columns: Sequence[str] | None) -> Iterator[Block]:
    """The wanted columns as text, null where a cell is empty or says NA, NaN or null."""
    source = _Bytes(stream)
    names, delimiter, front = _header(source, file)
    wanted = check_columns(file, names, columns)
    before = 0
    for text in _whole_rows(source, front, quotes=True):
        if text.strip():
            block = _parse_csv(text, file, before, names, wanted, delimiter)
            before += block.rows
            yield block


def _parse_csv(text: bytes, file: str, before: int, names: list[str], wanted: list[str], delimiter: str) -> Block:
    pa, pc = need("pyarrow"), need("pyarrow.csv")
    broken: dict[int, str] = {}

    def note(row: Any) -> str:
        broken[row.number - 1] = f"it has {row.actual_columns} fields where the header has {row.expected_columns}"
        return "skip"

    # One thread: only then does Arrow number the rows it cannot parse.
    table = pc.read_csv(
        io.BytesIO(text),
        read_options=pc.ReadOptions(column_names=names, use_threads=False, block_size=len(text) + 1),
        parse_options=pc.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=note),
        convert_options=pc.ConvertOptions(
            column_types=dict.fromkeys(wanted, pa.string()), include_columns=wanted, strings_can_be_null=True
        ),
    )
    batch = _batch(table, wanted)
    if not broken:
        return Block(batch, file, before)
    good = iter(range(batch.num_rows))
    places = [None if row in broken else next(good) for row in range(batch.num_rows + len(broken))]
    return Block(batch.take(pa.array(places, pa.int64())), file, before, broken)


def read_ndjson(stream: Any, file: str, columns: Sequence[str] | None) -> Iterator[Block]:
    """One block for each megabyte of lines; a key that a row lacks is null."""
    before = 0
    types: dict[str, Any] = {}
    wanted = None if columns is None else list(columns)
    for lines in _whole_rows(_Bytes(stream), b"", quotes=False):
        if lines.strip():
            batch, broken = _parse_lines(lines, wanted, types)
            yield Block(batch, file, before, broken, sparse=True)
            before += batch.num_rows


def _parse_lines(lines: bytes, wanted: list[str] | None, types: dict[str, Any]) -> tuple[Any, dict[int, str]]:
    """The fast path: Arrow's parser, told the types of the last block; what it refuses goes line by line."""
    pa, pj = need("pyarrow"), need("pyarrow.json")
    known = wanted is not None and all(name in types for name in wanted)
    for explicit in ([dict(types)] if known else []) + [{k: t for k, t in types.items() if t == pa.string()}]:
        try:
            table = pj.read_json(
                io.BytesIO(lines),
                read_options=pj.ReadOptions(use_threads=False, block_size=len(lines) + 1),
                parse_options=pj.ParseOptions(
                    explicit_schema=pa.schema(explicit),
                    unexpected_field_behavior="ignore" if known and explicit == types else "infer",
                ),
            )
        except pa.ArrowInvalid:
            continue
        if any(pa.types.is_timestamp(kind) for kind in table.schema.types):
            # Arrow reads text that looks like a date as one; from here on it is text, as in CSV.
            types |= {f.name: pa.string() for f in table.schema if pa.types.is_timestamp(f.type)}
            break
        names = table.column_names if wanted is None else wanted
        types |= {f.name: f.type for f in table.schema if f.name in names and not pa.types.is_null(f.type)}
        return _batch(table, names), {}
    return _parse_slowly(lines, wanted)


def _batch(table: Any, names: list[str]) -> Any:
    pa = need("pyarrow")
    columns = [
        table.column(name).combine_chunks() if name in table.column_names else pa.nulls(table.num_rows)
        for name in names
    ]
    columns = [c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c for c in columns]
    return pa.RecordBatch.from_arrays(columns, names=names)


def _parse_slowly(lines: bytes, wanted: list[str] | None) -> tuple[Any, dict[int, str]]:
    """Line by line, every cell as text: for blocks with a broken line, or with two types in one column."""
    pa = need("pyarrow")
    rows: list[dict[str, Any]] = []
    broken: dict[int, str] = {}
    for line in filter(bytes.strip, lines.split(b"\n")):
        try:
            row = json.loads(line)
            why = "it is not a JSON object"
        except ValueError as error:
            row, why = None, f"it is not valid JSON ({error})"
        if not isinstance(row, dict):
            broken[len(rows)], row = why, {}
        rows.append(row)
    names = list(dict.fromkeys(name for row in rows for name in row)) if wanted is None else wanted
    cells = [pa.array([cell_text(row.get(name)) for row in rows], pa.string()) for name in names]
    return pa.RecordBatch.from_arrays(cells, names=names), broken


def cell_text(value: Any) -> str | None:
    """A cell as the text that `convert` reads back exactly."""
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)
