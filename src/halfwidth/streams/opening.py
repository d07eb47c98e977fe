"""From what a user gives to a stream of chunks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from halfwidth.errors import InputError
from halfwidth.state.schema import validate
from halfwidth.streams.options import ColumnName, Options, as_tuple
from halfwidth.streams.sources.reader_options import ReaderArguments, ReaderOptions, resumed_reader
from halfwidth.streams.sources.source import as_source
from halfwidth.streams.stream import Stream
from halfwidth.streams.stream_state import STREAM_SCHEMA


def open_stream(
    source: Any, *, target: ColumnName = None, features: Sequence[str] | None = None, formula: str | None = None,
    weight: ColumnName = None, offset: ColumnName = None, group: ColumnName = None, time: ColumnName = None,
    labels: str | None = None, classes: Sequence[Any] | None = None, bad_rows: str | None = None,
    unknown_level: str | None = None, chunk_rows: int | None = None, buffer_rows: int | None = None,
    state: dict[str, Any] | None = None, resume_at: int | None = None, **reader: Unpack[ReaderArguments],
) -> Stream:  # fmt: skip
    """Open a source of rows and fix its design on the first rows.

    With the `state` of an earlier stream (`Stream.to_state`) the design is taken from there and reading goes on where
    that stream stood; arguments left out are taken from there too, but a formula is given again. The source must be
    the one of that stream; rows may have been appended.

    Parameters
    ----------
    source : object
        A path, a list of paths, "-", a database address, a table, or an iterator (docs/fit.md, "What it reads").
    target : str, optional
        The column to explain.
    features : sequence of str, optional
        Columns to explain it by; by default all numeric ones but the target and the special columns.
    formula : str, optional
        In place of target and features.
    weight, offset, group, time : str, optional
        Columns of weights, offsets, groups, and of times that must not fall.
    labels : str, optional
        "number" (default), "count" (not negative), "whole", "positive", "binary" (two classes) or "classes".
    classes : sequence, optional
        The two labels, class 0 first.
    bad_rows : str, optional
        "error" (default) or "skip".
    unknown_level : str, optional
        What a level becomes that the first rows lack: "add" (default) gives it a column of its own, "other" one column
        to all such levels, "error" refuses it.
    chunk_rows : int, optional
        Rows of a chunk; 8,192 by default, fewer if there are many columns.
    buffer_rows : int, optional
        The first rows, on which the design is fixed; 10,000 by default.
    state : dict, optional
        That of an earlier stream.
    resume_at : int, optional
        For a source that can be read only once, the number of the first row that it gives now.
    **reader : ReaderArguments
        How the source is read.

    Returns
    -------
    Stream
        The chunks.
    """
    if resume_at is not None and state is None:
        raise InputError("resume_at needs the state of an earlier stream (a checkpoint)")
    options = Options(
        target, as_tuple(features), formula, weight, offset, group, time, labels, as_tuple(classes),
        bad_rows, unknown_level, chunk_rows, buffer_rows,
    )  # fmt: skip
    if state is not None:
        validate(state, STREAM_SCHEMA)
        options = options.resumed(state["plan"]["options"])
    how, dialect = resumed_reader(ReaderOptions.of(reader), None if state is None else state["reader"])
    stream = Stream(as_source(source, how, options.target, dialect), options, state, how)
    if state is not None:
        stream.resume(state["origin"], resume_at)
    return stream
