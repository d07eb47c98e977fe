"""What passes through the layer: blocks of Arrow rows on the way in, chunks of NumPy rows on the way out."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.errors import MissingExtra

Array = NDArray[np.float64]


def need(module: str, extra: str = "streams") -> Any:
    """Import an optional module; a missing one names the extra that brings it."""
    try:
        return sys.modules.get(module) or import_module(module)
    except ImportError as error:
        raise MissingExtra.named(module.partition(".")[0], extra) from error


@dataclass(frozen=True)
class Block:
    """Consecutive rows of one file: an Arrow record batch, the file, and the rows of that file before it.

    `broken` maps the offset of a row that could not be read at all (it is null in the batch) to what is wrong.
    Where `sparse`, a column that the batch lacks is one that none of its rows has (NDJSON). The cells of `untyped`
    columns came as text for want of types (CSV): there "1" is a number. Names in `shared` are those of
    several columns of the source, which are not in the batch.
    """

    batch: Any
    file: str
    before: int
    broken: Mapping[int, str] = field(default_factory=dict)
    sparse: bool = False
    untyped: frozenset[str] = frozenset()
    shared: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """How many there are."""
        return int(self.batch.num_rows)

    @cached_property
    def _broken_rows(self) -> list[int]:
        return sorted(self.broken)

    def cut(self, start: int, stop: int) -> Block:
        """Rows start to stop of this block, without a copy."""
        if start == 0 and stop >= self.rows:
            return self
        rows = self._broken_rows
        inside = rows[bisect_left(rows, start) : bisect_left(rows, stop)]
        broken = {row - start: self.broken[row] for row in inside}
        rest = self.batch.slice(start, stop - start)
        return replace(self, batch=rest, before=self.before + start, broken=broken)

    def column(self, name: str) -> Any:
        index = self.batch.schema.get_field_index(name)
        return self.batch.column(index) if index >= 0 else need("pyarrow").nulls(self.rows)


@dataclass(frozen=True)
class Chunk:
    """Rows ready for a learner: float64, free of missing and infinite values.

    A stream resumed at `rows_read` continues right after.

    Parameters
    ----------
    X : array of shape (rows, columns)
        The features.
    y : array of shape (rows,)
        The target.
    weight, offset : array of shape (rows,) or None
        Weights and offsets, where they were asked for.
    group : array of shape (rows,) or None
        The values of the group column: int64, uint64, float64, or object (text).
    first_row : int
        Rows of the source before this chunk.
    rows_read : int
        Rows of the source up to its end; the difference exceeds `len(y)` by the rows that were skipped.
    """

    X: Array
    y: Array
    weight: Array | None
    offset: Array | None
    group: NDArray[Any] | None
    first_row: int
    rows_read: int

    def __len__(self) -> int:
        return len(self.y)
