"""Newline-delimited JSON, and arrays of JSON objects, in blocks of about a megabyte; cells as they come."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from halfwidth.streams.block import Block, need
from halfwidth.streams.sources import byte_stream
from halfwidth.streams.sources.byte_stream import ByteStream
from halfwidth.streams.sources.row_ends import DEEPEST, find_deep, split_array
from halfwidth.streams.sources.selection import Selection

_KEY = re.compile(rb'"((?:[^"\\]|\\.)*)"\s*:')
_MOST_CELLS = 20_000_000
_DEEP_MARK = b"\x00"


class _ArrayLines:
    """The objects of a JSON array, one per line."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream, self._state = stream, np.zeros(3, dtype=np.int64)

    def read(self, size: int) -> bytes:
        piece = self._stream.read(size)
        if not piece:
            self._stream.finish()
            if self._state[0] != 0 or self._state[1]:
                raise EOFError("the JSON array has no end")
            return b""
        data = np.frombuffer(piece, dtype=np.uint8).copy()
        split_array(data, self._state)
        return data.tobytes()


def read_json(stream: ByteStream, file: str, selection: Selection) -> Iterator[Block]:
    """One block for each megabyte of rows; a key that a row lacks is null."""
    front = stream.read(byte_stream.BLOCK_BYTES)
    stream.push_back(front)
    if front.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        stream = ByteStream(_ArrayLines(stream))
    before = 0
    types: dict[str, Any] = {}
    for lines in _whole_lines(stream):
        if lines.strip():
            batch, broken = _parse_lines(lines, selection.names, types)
            yield Block(batch, file, before, broken, sparse=True, untyped=frozenset(batch.schema.names))
            before += batch.num_rows


def _whole_lines(stream: ByteStream) -> Iterator[bytes]:
    """Blocks that end where lines end. A line cut off by a failure is dropped, then the failure is raised."""
    carried = b""
    first = True
    while True:
        more = stream.read(max(byte_stream.BLOCK_BYTES, len(carried)))
        carried += more.removeprefix(b"\xef\xbb\xbf") if first else more
        first = False
        end = carried.rfind(b"\n") + 1
        if end:
            yield _without_deep(carried[:end])
            carried = carried[end:]
        if len(carried) > byte_stream.LONGEST_ROW:
            raise OverflowError(f"a row is longer than {byte_stream.LONGEST_ROW:,} bytes")
        if not more:
            break
    if carried and not stream.failed:
        yield _without_deep(carried)
    stream.finish()


def _without_deep(lines: bytes) -> bytes:
    """The lines with those that are nested too deep for any parser replaced by a mark."""
    faults = np.empty((len(lines) // DEEPEST + 1, 2), dtype=np.int64)
    found = find_deep(np.frombuffer(lines, dtype=np.uint8), DEEPEST, faults)
    if not found:
        return lines
    pieces, at = [], 0
    for start, stop in faults[:found].tolist():
        pieces += [lines[at:start], _DEEP_MARK]
        at = stop
    return b"".join([*pieces, lines[at:]])


def _parse_lines(lines: bytes, wanted: list[str] | None, types: dict[str, Any]) -> tuple[Any, dict[int, str]]:
    """The fast path: Arrow's parser, told the types of the last block; what it refuses goes line by line."""
    pa, pj = need("pyarrow"), need("pyarrow.json")
    known = wanted is not None and all(name in types for name in wanted)
    if not known:
        _check_keys(lines)
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
            table.validate(full=True)
            if table.num_rows != sum(1 for line in lines.split(b"\n") if line.strip()):
                break  # rows over several lines: whether they can be read must not depend on where a block ends
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
        if any(pa.types.is_timestamp(kind) for kind in table.schema.types):
            # Arrow reads text that looks like a date as one; from here on it is text, as in CSV.
            types |= {f.name: pa.string() for f in table.schema if pa.types.is_timestamp(f.type)}
            break
        names = table.column_names if wanted is None else wanted
        types |= {f.name: f.type for f in table.schema if f.name in names and not pa.types.is_null(f.type)}
        return one_batch(table, names), {}
    return _parse_slowly(lines, wanted)


def _check_keys(lines: bytes) -> None:
    """Refuse rows whose table would be mostly holes, before any parser allocates it."""
    keys = len(set(_KEY.findall(lines)))
    if keys * (lines.count(b"\n") + 1) > _MOST_CELLS:
        raise ValueError(f"its rows have too many different keys, {keys:,} within a megabyte")


def one_batch(table: Any, names: list[str]) -> Any:
    """The named columns of a table as one record batch; a column that it lacks is null."""
    pa = need("pyarrow")
    columns = [
        table.column(name).combine_chunks() if name in table.column_names else pa.nulls(table.num_rows)
        for name in names
    ]
    columns = [c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c for c in columns]
    return pa.RecordBatch.from_arrays(columns, names=names)


def _parse_slowly(lines: bytes, wanted: list[str] | None) -> tuple[Any, dict[int, str]]:
    """Line by line, every cell as text: for blocks with a broken line, or with two types in one column."""
    rows: list[dict[str, Any]] = []
    broken: dict[int, str] = {}
    for line in filter(bytes.strip, lines.split(b"\n")):
        row, why = None, "it is not a JSON object"
        if line.startswith(_DEEP_MARK):
            why = f"its values are nested more than {DEEPEST} deep"
        else:
            try:
                row = json.loads(line)
                json.dumps(row, ensure_ascii=False).encode()  # half a surrogate pair is text for Python only
            except (ValueError, RecursionError) as error:
                row, why = None, f"it is not valid JSON ({error})"
        if not isinstance(row, dict):
            broken[len(rows)], row = why, {}
        rows.append(row)
    return text_batch(rows, wanted), broken


def text_batch(rows: list[dict[str, Any]], wanted: list[str] | None = None) -> Any:
    """Rows as a record batch in which every cell is text."""
    pa = need("pyarrow")
    names = list(dict.fromkeys(str(name) for row in rows for name in row)) if wanted is None else wanted
    names = names or [""]  # a batch without columns has no rows
    cells = [pa.array([cell_text(row.get(name)) for row in rows], pa.string()) for name in names]
    return pa.RecordBatch.from_arrays(cells, names=names)


def cell_text(value: Any) -> str | None:
    """A cell as the text that `convert` reads back exactly."""
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)
