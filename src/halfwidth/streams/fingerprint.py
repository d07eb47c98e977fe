"""What a checkpoint remembers of its source, so that a run goes on with the same rows or not at all.

Files are known by their bytes: the size, and hashes of the first block, of the last one and of blocks in between, of
every file up to the one that holds the last row. A file that has grown since, with those bytes in place, is the same
file with rows appended. The footers of Parquet and Arrow files, which move when rows are appended, are left out. Other
sources are known by their rows: names and types of the columns, the first rows and the last ones that were consumed.
A source that can be read only once cannot be held against anything: the caller says at which row it starts.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from typing import Any

from halfwidth.errors import InputError
from halfwidth.state.containers import ListOf, Nested, Optional, Row
from halfwidth.state.fields import Bool, Field, State, Text, Whole
from halfwidth.state.schema import Relation, Schema
from halfwidth.streams.block import Block

_EDGE_BYTES = 1 << 16
_SAMPLE_BYTES = 1 << 12
_SAMPLES = 62
MOST_ROWS = 256
_BINARY = (b"PAR1", b"ARRO", b"\xff\xff\xff\xff", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh")
ADVICE = "give the source that the run began with, or start again without resuming"

_FILE: dict[str, Field] = {
    "name": Text(doc="its name then"),
    "size": Whole(doc="its bytes then"),
    "blocks": ListOf(
        Row((Whole(), Whole(1, _EDGE_BYTES), Text())), most=_SAMPLES + 2, doc="place, length and hash of some blocks"
    ),
}
_ROWS_FIELDS: dict[str, Field] = {
    "start": Whole(doc="rows before these"),
    "count": Whole(0, MOST_ROWS, doc="how many"),
    "hash": Text(doc="their hash"),
}


def _blocks_within(state: State) -> bool:
    return all(place + length <= state["size"] for place, length, _ in state["blocks"])


FILE_SCHEMA = Schema(
    None, None, _FILE, relations=(Relation("have its blocks within its size", _blocks_within),), title="mark of a file"
)
ROWS_SCHEMA = Schema(None, None, _ROWS_FIELDS, title="mark of rows")
ORIGIN_SCHEMA = Schema(
    None,
    None,
    {
        "known_by": Text(("files", "rows", "once"), doc="what the source is known by"),
        "names": ListOf(Text(), doc="the names of its parts"),
        "columns": ListOf(Row((Text(), Text())), doc="names and types of its columns, where it can be read again"),
        "files": ListOf(Nested(FILE_SCHEMA), doc="the files up to the last row consumed"),
        "head": Optional(Nested(ROWS_SCHEMA), doc="the first rows of a source that is no file"),
        "last": Optional(Nested(ROWS_SCHEMA), doc="the last rows consumed of one"),
        "ended": Bool(doc="whether its end was reached"),
    },
    title="mark of a source",
)


def file_mark(name: str, rows: int | None = None) -> dict[str, Any]:
    """Size and hashes of a file as it is now; with `rows`, of the part of a text file that holds as many for sure."""
    with open(name, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        end = size - _footer(file, size)
        if rows is not None:
            end = size = _end_of_lines(file, rows)
        places = {0: min(_EDGE_BYTES, end), max(0, end - _EDGE_BYTES): min(_EDGE_BYTES, end)}
        for i in range(1, _SAMPLES + 1):
            places.setdefault(i * end // (_SAMPLES + 1), min(_SAMPLE_BYTES, end))
        blocks = []
        for place, length in sorted(places.items()):
            length = min(length, end - place)
            if length:
                blocks.append([place, length, _hash_at(file, place, length)])
    return {"name": str(name), "size": size, "blocks": blocks}


def check_file(name: str, mark: State, ended: bool) -> None:
    """Raise unless the file holds the bytes of the mark; where its end was read, also if its last row has grown."""
    known = f"the run read {mark['name']!r} ({mark['size']:,} bytes)"
    try:
        with open(name, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            for place, length, digest in mark["blocks"]:
                if place + length > size:
                    raise InputError(f"source is shorter than before: {known}, now {name!r} has {size:,}; {ADVICE}")
                if _hash_at(file, place, length) != digest:
                    what = "in its header or first rows" if place == 0 else f"near byte {place:,}"
                    raise InputError(f"source is another one: {known}, and {name!r} differs {what}; {ADVICE}")
            if ended and size > mark["size"] and _cut_within_a_row(file, mark["size"]):
                raise InputError(f"source has another last row: {known}, and {name!r} goes on within it; {ADVICE}")
    except OSError as error:
        raise InputError(f"source {name!r} cannot be read again: {error}; {ADVICE}") from error


def _is_text(file: Any) -> bool:
    file.seek(0)
    return not file.read(4).startswith(_BINARY)


def _end_of_lines(file: Any, lines: int) -> int:
    """Where so many lines of a text file end: no row is shorter than a line. Nothing is sure of other files."""
    if not _is_text(file):
        return 0
    file.seek(0)
    at = 0
    while lines and (piece := file.read(1 << 20)):
        count = piece.count(b"\n")
        if count < lines:
            lines, at = lines - count, at + len(piece)
            continue
        end = 0
        for _ in range(lines):
            end = piece.index(b"\n", end) + 1
        return at + end
    return at


def _cut_within_a_row(file: Any, size: int) -> bool:
    """Whether text that was added at this place made the row before it longer."""
    if not size or not _is_text(file):
        return False
    file.seek(size - 1)
    last, new = file.read(1), file.read(1)
    return last not in b"\r\n" and new not in b"\r\n"


def _hash_at(file: Any, place: int, length: int) -> str:
    file.seek(place)
    return hashlib.sha256(file.read(length)).hexdigest()[:32]


def _footer(file: Any, size: int) -> int:
    """The bytes at the end of a Parquet or Arrow file that change when rows are appended."""
    file.seek(0)
    start = file.read(6)
    mark = b"PAR1" if start[:4] == b"PAR1" else b"ARROW1" if start == b"ARROW1" else None
    if mark is None or size < 16:
        return 0
    file.seek(size - len(mark) - 4)
    length = int.from_bytes(file.read(4), "little")
    return min(size, length + len(mark) + 4)


def rows_mark(blocks: Iterable[Block], start: int, count: int) -> dict[str, Any]:
    """Where some rows stand, how many there are (at most `count`), and the hash of their cells."""
    digest, left = hashlib.sha256(), min(count, MOST_ROWS)
    for block in blocks:
        if left == 0:
            break
        piece = block.cut(0, left)
        for row in piece.batch.to_pylist():
            digest.update(repr(row).encode())
        left -= piece.rows
    return {"start": start, "count": min(count, MOST_ROWS) - left, "hash": digest.hexdigest()[:32]}


def columns_of(block: Block) -> list[list[str]]:
    """Names and types of the columns."""
    return [[field.name, str(field.type)] for field in block.batch.schema]
