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
from halfwidth.streams.faults import BROKEN_FILE, fault, missing_column

_BLOCK_BYTES = 1 << 20


def check_columns(file: str, known: Sequence[str], columns: Sequence[str] | None) -> list[str]:
    """The columns to read from a file that has the known ones; one that is absent or there twice raises."""
    for name in columns or ():
        if name not in known:
            raise missing_column(file, name, list(known))
        if list(known).count(name) > 1:
            raise fault(file, None, name, BROKEN_FILE, "two columns have this name")
    return list(dict.fromkeys(known)) if columns is None else list(columns)


class _Rest(io.RawIOBase):
    """A byte stream with some bytes put back in front."""

    def __init__(self, front: bytes, stream: Any) -> None:
        self._front, self._stream = front, stream

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if self._front:
            size = len(self._front) if size < 0 else size
            taken, self._front = self._front[:size], self._front[size:]
            return taken
        return bytes(self._stream.read(size if size >= 0 else _BLOCK_BYTES))


def _header(stream: Any, file: str) -> tuple[list[str], str, bytes]:
    """The names in the first row, the delimiter, and the bytes read beyond that row."""
    head = b""
    while True:
        more = bytes(stream.read(_BLOCK_BYTES))
        head += more
        end = head.find(b"\n")
        while end >= 0 and head.count(b'"', 0, end) % 2:  # a newline inside quotes
            end = head.find(b"\n", end + 1)
        if end >= 0 or not more:
            break
    end = len(head) if end < 0 else end
    line = head[:end].decode("utf-8-sig").strip("\r\n")
    if not line.strip():
        raise fault(file, None, None, BROKEN_FILE, "it has no header row")
    delimiter = "," if "," in line else next((mark for mark in "\t;" if mark in line), ",")
    return next(csv.reader(io.StringIO(line, newline=""), delimiter=delimiter)), delimiter, head[end + 1 :]


def read_csv(stream: Any, file: str, columns: Sequence[str] | None) -> Iterator[Block]:
    """The wanted columns as text, null where a cell is empty or says NA, NaN or null."""
    pa, pc = need("pyarrow"), need("pyarrow.csv")
    names, delimiter, front = _header(stream, file)
    wanted = check_columns(file, names, columns)
    if not front and not (front := bytes(stream.read(_BLOCK_BYTES))):
        return
    if not front.strip() and not (front := front + bytes(stream.read(_BLOCK_BYTES))).strip():
        return
    broken: dict[int, str] = {}

    def note(row: Any) -> str:
        broken[row.number - 1] = f"it has {row.actual_columns} fields where the header has {row.expected_columns}"
        return "skip"

    # One thread: only then does Arrow number the rows it cannot parse.
    reader = pc.open_csv(
        pa.PythonFile(_Rest(front, stream), mode="r"),
        read_options=pc.ReadOptions(column_names=names, use_threads=False, block_size=_BLOCK_BYTES),
        parse_options=pc.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=note),
        convert_options=pc.ConvertOptions(
            column_types=dict.fromkeys(wanted, pa.string()), include_columns=wanted, strings_can_be_null=True
        ),
    )
    before = 0
    for batch in reader:
        block = _reinsert(batch, file, before, broken)
        before += block.rows
        yield block
    if broken:
        empty = pa.RecordBatch.from_arrays([pa.nulls(0, pa.string()) for _ in wanted], names=wanted)
        yield _reinsert(empty, file, before, broken, all_of_them=True)


def _reinsert(batch: Any, file: str, before: int, broken: dict[int, str], all_of_them: bool = False) -> Block:
    """The block with a null row in the place of each broken row; used entries leave `broken`."""
    end, inside = before + batch.num_rows, {}
    for row in sorted(broken):
        if row < end or all_of_them:
            inside[row - before] = broken.pop(row)
            end += 1
    if not inside:
        return Block(batch, file, before)
    good = iter(range(batch.num_rows))
    places = [None if row in inside else next(good) for row in range(end - before)]
    return Block(batch.take(need("pyarrow").array(places, "int64")), file, before, inside)


def read_ndjson(stream: Any, file: str, columns: Sequence[str] | None) -> Iterator[Block]:
    """One block for each megabyte of lines; a key that a row lacks is null."""
    before, carried = 0, b""
    types: dict[str, Any] = {}
    wanted = None if columns is None else list(columns)
    while True:
        more = bytes(stream.read(_BLOCK_BYTES))
        lines, newline, carried = (carried + more).rpartition(b"\n") if more else (carried, b"", b"")
        if lines.strip():
            batch, broken = _parse_lines(lines + newline, wanted, types)
            yield Block(batch, file, before, broken, sparse=True)
            before += batch.num_rows
        if not more:
            return


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
