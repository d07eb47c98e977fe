"""What a model keeps of the design it was fitted with, so that it can predict from raw columns."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from halfwidth.errors import InputError
from halfwidth.streams.block import Array, Block
from halfwidth.streams.design.bad_rows import Faults, missing_column
from halfwidth.streams.design.columns import ColumnsDesign, Design, RowRules, number_column, text_column
from halfwidth.streams.design.explain import explain_prediction
from halfwidth.streams.design.formulas import FormulaDesign
from halfwidth.streams.sources.reader_options import ReaderOptions
from halfwidth.streams.sources.source import as_source
from halfwidth.streams.sources.tables import is_row, is_table

_PREDICTING = RowRules("other", stops=False, predicting=True)


@dataclass(frozen=True)
class PredictorRows:
    """Rows of X for a prediction; `offset` is None where the model has none."""

    X: Array
    offset: Array | None
    faults: Faults


class Specification:
    """The columns that a model reads, and what it makes of them.

    Parameters
    ----------
    design : Design
        From raw columns to X.
    offset : str, optional
        The column of offsets, if the model was fitted with one.
    target : str, optional
        The column that was explained, or what the formula calls it.
    """

    def __init__(self, design: Design, offset: str | None = None, target: str | None = None) -> None:
        self.design, self.offset, self.target = design, offset, target

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a prediction needs."""
        return tuple(dict.fromkeys([*self.design.predictors, *([self.offset] if self.offset else [])]))

    def convert(self, parts: Sequence[Block], *, with_offset: bool = True) -> PredictorRows:
        """X and offset of these rows; those that cannot be used are marked.

        Parameters
        ----------
        parts : sequence of Block
            Rows of a source.
        with_offset : bool
            Whether the column of offsets is read.

        Returns
        -------
        PredictorRows
            All rows, with their faults.
        """
        faults = Faults(sum(part.rows for part in parts))
        faults.mark_broken(parts)
        offset = number_column(parts, self.offset, faults) if self.offset and with_offset else None
        made = self.design.matrix(parts, faults, _PREDICTING)
        if made.offset is not None:
            offset = made.offset if offset is None else offset + made.offset
        return PredictorRows(made.X, offset, faults)

    def rows(self, table: Any, *, with_offset: bool = True) -> PredictorRows:
        """X and offset of a table of raw columns; the first row that cannot be used raises `BadRow`.

        Parameters
        ----------
        table : object
            Anything that `open_stream` reads; all of it is held.
        with_offset : bool
            Whether the column of offsets is read.

        Returns
        -------
        PredictorRows
            All rows.
        """
        parts = _parts(table, self.columns if with_offset else self.design.predictors)
        if not parts:
            return PredictorRows(np.empty((0, len(self.design.feature_names))), None, Faults(0))
        made = self.convert(parts, with_offset=with_offset)
        _check(parts, made.faults)
        return made

    def targets(self, table: Any, *, words: bool) -> NDArray[Any]:
        """The observed targets of a table of raw columns, as `score` needs them.

        Parameters
        ----------
        table : object
            Anything that `open_stream` reads.
        words : bool
            Whether targets are text.

        Returns
        -------
        ndarray of shape (n,)
            Numbers, or text.

        Raises
        ------
        BadRow
            For the first row without a usable target, or if there is no such column.
        """
        design = self.design
        computed = isinstance(design, FormulaDesign) and design.computes_response
        if self.target is None:
            raise InputError("the model does not know its target; give y")
        parts = _parts(table, design.columns if computed else (self.target,))
        faults = Faults(sum(part.rows for part in parts))
        if words:
            found: NDArray[Any] = text_column(parts, self.target, faults)
        else:
            made = design.response(parts, faults) if isinstance(design, FormulaDesign) else None
            found = number_column(parts, self.target, faults) if made is None else made
        _check(parts, faults)
        return found

    def reads(self, X: Any) -> bool:
        """Whether X is a table of raw columns, or the path of one, not a matrix with the columns of the design.

        Parameters
        ----------
        X : object
            What a user wants predictions for.

        Returns
        -------
        bool
            True for a table of raw columns.
        """
        if isinstance(X, (str, os.PathLike)):
            return True
        if not is_columns(X):
            return False
        names = column_names(X)
        return not set(self.design.feature_names) <= names or set(self.design.term_columns) <= names

    def design_rows(self, X: Any, offset: Any) -> tuple[Any, Any]:
        """The rows of the design and their offsets; a matrix stays what it is, and needs the offset a model has.

        Parameters
        ----------
        X : object
            A table of raw columns, or a matrix with the columns of the design.
        offset : array_like of shape (n,) or None
            In place of the column of offsets; that of a formula is added.

        Returns
        -------
        tuple
            Rows and offsets.
        """
        if self.reads(X):
            made = self.rows(X, with_offset=offset is None)
            given = 0.0 if offset is None else np.asarray(offset, dtype=np.float64)
            return made.X, offset if made.offset is None else made.offset + given
        if offset is None and (self.offset is not None or self.design.has_offset):
            rule = f"be given with a matrix, as the model has one; or give the raw columns {list(self.columns)}"
            raise InputError.of("offset", rule, None)
        return X, offset

    def to_state(self) -> dict[str, Any]:
        """Plain data.

        Returns
        -------
        dict
            Valid under `halfwidth.streams.stream_state.SPECIFICATION_SCHEMA`.
        """
        return {"design": self.design.to_state(), "offset": self.offset, "target": self.target}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The specification that `to_state` described; nothing in it is evaluated.

        Parameters
        ----------
        state : dict
            As `to_state` gave it.

        Returns
        -------
        Specification
            The same.
        """
        return cls(design_from_state(state["design"]), state["offset"], state["target"])


def _parts(table: Any, needed: Sequence[str]) -> list[Block]:
    """The blocks of a table or a file, which must have the columns."""
    source = as_source(table, ReaderOptions())
    source.narrow(needed)
    parts = [block for block in source.blocks(needed if source.rereadable else None) if block.rows]
    for block in parts:
        for column in () if block.sparse else needed:
            if column not in block.batch.schema.names:
                raise missing_column(block.file, column, block.batch.schema.names)
    return parts


def _check(parts: Sequence[Block], faults: Faults) -> None:
    first = faults.first()
    if first is not None:
        raise explain_prediction(parts, first, faults)


def design_from_state(state: dict[str, Any]) -> Design:
    """The design that `to_state` of either kind described."""
    return ColumnsDesign(state["features"]) if state["kind"] == "columns" else FormulaDesign.from_state(state)


def is_columns(X: Any) -> bool:
    """Whether a value is a table with named columns."""
    rows = isinstance(X, list) and bool(X) and is_row(X[0])
    return is_table(X) or isinstance(X, Mapping) or rows


def column_names(X: Any) -> set[str]:
    """The names of the columns of a table, a dictionary of columns, or a list of rows."""
    if isinstance(X, Mapping):
        return {str(name) for name in X}
    if isinstance(X, list):
        return {str(name) for row in X for name in row}
    names = getattr(X, "column_names", None) or getattr(X, "columns", None)
    if names is None:
        schema = getattr(X, "schema", None)
        names = schema.names if schema is not None else ()
    if callable(names):
        raise InputError.of("X", "be a table with named columns", type(X).__name__)
    return {str(name) for name in names}
