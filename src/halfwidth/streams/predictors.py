"""The rows of a source as a model reads them for predictions: no target, nothing learned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from halfwidth.errors import UnknownName
from halfwidth.streams.block import Array
from halfwidth.streams.design.bad_rows import missing_column
from halfwidth.streams.design.explain import explain_prediction
from halfwidth.streams.design.specification import Specification
from halfwidth.streams.options import BAD_ROWS
from halfwidth.streams.sources.reader_options import ReaderArguments, ReaderOptions
from halfwidth.streams.sources.source import as_source

_ROWS = 8192


@dataclass(frozen=True)
class PredictorBlock:
    """The usable rows of a block, and which those are.

    Parameters
    ----------
    X : array of shape (rows, columns)
        The columns of the design.
    offset : array of shape (rows,) or None
        The offsets, where the model has any.
    good : array of shape (all rows,) or None
        The mask of usable rows; None where all are.
    skipped : dict
        How many of the others there are, by reason.
    """

    X: Array
    offset: Array | None
    good: NDArray[np.bool_] | None = None
    skipped: dict[str, int] = field(default_factory=dict)


def read_predictors(
    source: Any, specification: Specification, bad_rows: str = "error", **reader: Unpack[ReaderArguments]
) -> Iterator[PredictorBlock]:
    """Read a source for predictions, block by block.

    Parameters
    ----------
    source : object
        As for `open_stream`; it needs no target.
    specification : Specification
        What the model reads.
    bad_rows : str
        "error": a row that cannot be used raises `BadRow`; "skip": it is left out.
    **reader : ReaderArguments
        How the source is read.

    Yields
    ------
    PredictorBlock
        X and offset of the usable rows, and which those are.
    """
    if bad_rows not in BAD_ROWS:
        raise UnknownName.among("bad_rows", bad_rows, BAD_ROWS)
    opened = as_source(source, ReaderOptions.of(reader))
    columns = specification.columns
    opened.narrow(columns)
    for block in opened.blocks(columns if opened.rereadable else None):
        for column in () if block.sparse else columns:
            if column not in block.batch.schema.names:
                raise missing_column(block.file, column, block.batch.schema.names)
        for start in range(0, block.rows, _ROWS):
            part = block.cut(start, min(start + _ROWS, block.rows))
            made = specification.convert([part])
            first = made.faults.first()
            if first is None:
                yield PredictorBlock(made.X, made.offset)
                continue
            if bad_rows == "error":
                raise explain_prediction([part], first, made.faults)
            good = made.faults.usable(False)
            offset = None if made.offset is None else made.offset[good]
            yield PredictorBlock(made.X[good], offset, good, made.faults.counts(part.rows))
