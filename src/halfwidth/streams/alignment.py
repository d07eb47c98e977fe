"""Blocks of a source cut where chunks end, and blocks that were read ahead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from halfwidth.errors import BadRow
from halfwidth.streams.block import Block
from halfwidth.streams.design.bad_rows import missing_column


def aligned(
    blocks: Iterator[Block], columns: Sequence[str], position: int, chunk_rows: int
) -> Iterator[tuple[list[Block], BadRow | None]]:
    """Lists of blocks that end at multiples of `chunk_rows`; the last may come with the failure that ended it."""
    parts: list[Block] = []
    missing = chunk_rows - position % chunk_rows
    failure = None
    try:
        for block in blocks:
            _check_columns(block, columns)
            start = 0
            while block.rows - start >= missing:
                parts.append(block.cut(start, start + missing))
                yield parts, None
                start, parts, missing = start + missing, [], chunk_rows
            if start < block.rows:
                parts.append(block.cut(start, block.rows))
                missing -= parts[-1].rows
    except BadRow as error:
        failure = error
    if parts or failure:
        yield parts, failure


def _check_columns(block: Block, columns: Sequence[str]) -> None:
    names = block.batch.schema.names
    there = set(names)
    for column in () if block.sparse else columns:
        if column not in there:
            raise missing_column(block.file, column, names)


def read_head(blocks: Iterator[Block], rows: int) -> tuple[list[Block], BadRow | None]:
    """Blocks with at least so many rows, or as many as there are, and the failure that ended the reading."""
    head: list[Block] = []
    try:
        while rows > 0 and (block := next(blocks, None)) is not None:
            head.append(block)
            rows -= block.rows
    except BadRow as error:
        return head, error
    return head, None


def first_rows(blocks: Sequence[Block], rows: int) -> list[Block]:
    """The first so many rows of these blocks."""
    found, missing = [], rows
    for block in blocks:
        part = block.cut(0, missing)
        missing -= part.rows
        if part.rows:
            found.append(part)
    return found


def replayed(head: list[Block], rest: Iterator[Block], failure: BadRow | None) -> Iterator[Block]:
    """The blocks read ahead, none of them kept once it is given, then the others, or the failure that ended them."""
    while head:
        yield head.pop(0)
    if failure is not None:
        raise failure
    yield from rest
