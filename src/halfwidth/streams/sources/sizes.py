"""How large a source is, where that is cheap to know: rows of Parquet files and tables, bytes of text."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from halfwidth.streams.block import need
from halfwidth.streams.sources.byte_stream import CheckedFile
from halfwidth.streams.sources.files import DataFile
from halfwidth.streams.sources.tables import is_pair

_MOST_NOTES = 256


class SizeOfFiles:
    """Rows where all files are Parquet and say so, bytes otherwise; `at` is the file that is read.

    A reader may be ahead of what was learned, so the bytes are noted after each block.

    Parameters
    ----------
    files
        What is read, in order.
    """

    def __init__(self, files: Sequence[DataFile]) -> None:
        self._files, self.at = files, 0
        self.noted: deque[tuple[int, float]] = deque(maxlen=_MOST_NOTES)

    @cached_property
    def _rows(self) -> list[int | None]:
        return [count_rows(file) for file in self._files]

    def note(self, rows: int, reading: CheckedFile | None) -> None:
        """Note the bytes that were read for the first `rows` rows."""
        sizes = [0 if file.stamp is None else file.stamp.size for file in self._files]
        if all(sizes) and (reading is not None or len(sizes) > 1):
            done = sum(sizes[: self.at]) + (0 if reading is None else reading.done)
            self.noted.append((rows, min(done / sum(sizes), 1.0)))

    def share(self, rows: int) -> float | None:
        """How much was read after this many rows; None where only the rows would tell, and are not known."""
        if all(file.format == "parquet" for file in self._files):
            return share_of(rows, self._rows)
        return next((share for end, share in tuple(self.noted) if end >= rows), None)


def count_rows(file: DataFile) -> int | None:
    """How many rows a file holds, where that is cheap to know (Parquet); else None."""
    if file.format != "parquet":
        return None
    try:
        return int(need("pyarrow.parquet").read_metadata(file.name).num_rows)
    except (OSError, need("pyarrow").ArrowException):
        return None  # the reader will say what is wrong with it


def rows_of_table(table: Any) -> int | None:
    """How many rows a table in memory has; None for one that would have to be computed."""
    if is_pair(table):
        table = table[1]
    elif isinstance(table, Mapping):
        table = next(iter(table.values()), ())
    elif type(table).__module__.split(".")[0] not in ("pandas", "polars", "pyarrow"):
        return None
    return len(table) if hasattr(table, "__len__") else None


def share_of(rows: int, sizes: Sequence[int | None]) -> float | None:
    """The share of rows in tables of these sizes; None where one is not known, or all are empty."""
    known = [size for size in sizes if size is not None]
    total = sum(known)
    return min(rows / total, 1.0) if len(known) == len(sizes) and total else None
