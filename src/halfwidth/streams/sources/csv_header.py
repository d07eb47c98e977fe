"""The first row of a CSV file: the names of its columns, and its separator."""

from __future__ import annotations

import csv
import io
from typing import Any

from halfwidth.errors import BadRow
from halfwidth.streams.design.bad_rows import BROKEN_FILE
from halfwidth.streams.sources.byte_stream import ByteStream
from halfwidth.streams.sources.dialect import find_separator
from halfwidth.streams.sources.reader_options import Dialect, ReaderOptions

_LONGEST_NAME = 1_000
_MOST_COLUMNS = 100_000
_LONGEST_HEADER = 1 << 20


def read_header(
    stream: ByteStream, file: str, options: ReaderOptions, dialect: Dialect | None
) -> tuple[list[str], Dialect, bytes]:
    """The names, the dialect as far as the header tells, and the bytes read beyond the header."""
    quote = '"' if options.quote is None else options.quote
    line, rest = _first_line(stream, file, quote)
    if not line.strip():
        raise _broken(file, "it has no header row")
    if dialect is None:
        likely = "\t" if any(ending in file.lower() for ending in (".tsv", ".tab")) else ","
        separator = options.separator or find_separator(line, quote, likely)
        found = ("separator",) if options.separator is None and separator != likely else ()
        dialect = Dialect(separator, quote, options.decimal or ".", options.thousands, found)
    return _names(line, file, dialect), dialect, rest


def _names(line: str, file: str, dialect: Dialect) -> list[str]:
    if line.count(dialect.separator) >= _MOST_COLUMNS:
        raise _broken(file, f"its header has more than {_MOST_COLUMNS:,} columns")
    if len(line) > _LONGEST_NAME and max(map(len, line.split(dialect.separator))) > _LONGEST_NAME:
        detail = f"its header has a name of more than {_LONGEST_NAME:,} characters"
        raise _broken(file, f"{detail}; the first row must name the columns")
    quoting: dict[str, Any] = {"quotechar": dialect.quote} if dialect.quote else {"quoting": csv.QUOTE_NONE}
    try:
        return next(csv.reader(io.StringIO(line, newline=""), delimiter=dialect.separator, **quoting))
    except csv.Error as error:
        raise _broken(file, f"its header cannot be read ({error})") from None


def _broken(file: str, detail: str) -> BadRow:
    return BadRow.at(file, None, None, BROKEN_FILE, detail, "repair its first row, or replace the file")


def _first_line(stream: ByteStream, file: str, quote: str) -> tuple[str, bytes]:
    """The header, and the bytes read beyond it; a name may hold a newline inside quotes."""
    head, more = b"", b"\n"
    end, is_open = 0, False
    while end == len(head) < _LONGEST_HEADER and more:
        more = stream.read()
        head += more
        end, is_open = _header_end(head, quote.encode())
    if end == len(head):
        stream.finish()
    if is_open:
        raise _broken(file, "a quote opens in its header and never closes")
    if end >= _LONGEST_HEADER:
        raise _broken(file, "its first row has no end within a megabyte; the first row must name the columns")
    try:
        return head[:end].decode("utf-8-sig").strip("\r\n"), head[end + 1 :]
    except UnicodeDecodeError as error:
        raise _broken(
            file, f"its header is not UTF-8 ({error}): give the encoding, encoding='latin-1' (--encoding latin-1)"
        ) from None


def _header_end(head: bytes, quote: bytes) -> tuple[int, bool]:
    """Where the first row ends (the length where it does not), and whether a quote is open there."""
    lines = head.replace(b"\r\n", b"\n\n").replace(b"\r", b"\n")
    start, quotes = 0, 0
    while (end := lines.find(b"\n", start)) >= 0:
        quotes += head.count(quote, start, end) if quote else 0
        if quotes % 2 == 0:
            return end, False
        start = end + 1
    quotes += head.count(quote, start) if quote else 0
    return len(head), quotes % 2 == 1
