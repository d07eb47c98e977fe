"""The dialect of a CSV file: what the options say, and for the rest what its first rows show.

The separator is the one of comma, tab, semicolon and bar that the header holds most often outside quotes. Where it is
not the comma, cells like `1,5` without any like `1.5` mean a decimal comma. Where all such cells could be both (`1,234`
is 1.234 or 1234) they are refused.
"""

from __future__ import annotations

import re
from typing import Any

from halfwidth.errors import InputError
from halfwidth.streams.block import need
from halfwidth.streams.sources.reader_options import SEPARATORS, Dialect, ReaderOptions

_COMMA = re.compile(r"^\s*[-+]?\d*,\d+\s*$")
_AMBIGUOUS = re.compile(r"^\s*[-+]?[1-9]\d{0,2}(,\d{3})+\s*$")
_POINT = re.compile(r"^\s*[-+]?\d*\.\d+\s*$")
_GROUPED = re.compile(r"^\s*[-+]?\d{1,3}(\.\d{3})+,\d+\s*$")
_SNIFFED_ROWS = 1000


def find_separator(line: str, quote: str, likely: str = ",") -> str:
    """The known separator that stands most often outside quotes in the header; `likely` if none does, or in a tie.

    >>> find_separator('"a,b";c', '"')
    ';'
    """
    outside = re.sub(f"{re.escape(quote)}[^{re.escape(quote)}]*{re.escape(quote)}", "", line) if quote else line
    return max([likely, *SEPARATORS], key=outside.count)


def find_numbers(file: str, options: ReaderOptions, separator: str, cells: list[str]) -> tuple[str, str | None]:
    """The decimal and the thousands mark of these cells, where the options leave them open."""
    decimal, thousands = options.decimal, options.thousands
    if decimal is None:
        if separator == "," or thousands == ",":
            return ".", thousands
        commas = [cell for cell in cells if _COMMA.match(cell) or _GROUPED.match(cell)]
        doubtful = [cell for cell in cells if _AMBIGUOUS.match(cell)]
        certain = [cell for cell in commas if not _AMBIGUOUS.match(cell)]
        points = any(_POINT.match(cell) for cell in cells if not _GROUPED.match(cell))
        if doubtful and not certain and not points:
            raise InputError(
                f"{file}: {doubtful[0]!r} may be a decimal number or one with thousands apart; "
                "give decimal=',' (--decimal ,) or thousands=',' (--thousands ,)"
            )
        decimal = "," if certain and not points else "."
    if thousands is None and decimal == "," and any(_GROUPED.match(cell) for cell in cells):
        thousands = "."
    return decimal, thousands


def sniffed_cells(table: Any) -> list[str]:
    """The cells of the first rows, as text."""
    head = table.slice(0, _SNIFFED_ROWS)
    return [cell for column in head.columns for cell in column.to_pylist() if cell]


def as_plain_numbers(column: Any, dialect: Dialect) -> Any:
    """Text cells with numbers rewritten with a decimal point and nothing between thousands; others as they are."""
    pc = need("pyarrow.compute")
    mark, group = re.escape(dialect.decimal), re.escape(dialect.thousands or "")
    whole = rf"(?:[0-9]{{1,3}}(?:{group}[0-9]{{3}})+|[0-9]+)" if group else "[0-9]+"
    number = rf"^\s*[-+]?(?:{whole}(?:{mark}[0-9]*)?|{mark}[0-9]+)(?:[eE][-+]?[0-9]+)?\s*$"
    is_number = pc.fill_null(pc.match_substring_regex(column, number), False)
    text = column if dialect.thousands is None else pc.replace_substring(column, dialect.thousands, "")
    if dialect.decimal != ".":
        text = pc.replace_substring(text, dialect.decimal, ".")
        # What a point means in such a file is not known: the cell must not be read as a number.
        pointed = pc.fill_null(pc.match_substring_regex(column, r"^\s*[-+]?[0-9]*\.[0-9]+\s*$"), False)
        column = pc.if_else(
            pc.and_(pointed, pc.invert(is_number)), pc.binary_join_element_wise(column, "(with a point)", " "), column
        )
    return pc.if_else(is_number, text, column)
