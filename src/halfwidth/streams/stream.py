"""A source and a design become a stream of chunks that can stop anywhere and go on later.

Chunks end at multiples of `chunk_rows` rows of the source, wherever files, blocks or resumption fall, so a run
that was interrupted sees the same chunks as one that was not. In front of a bad row a chunk ends early: the rows
before it come out first, and only then the error.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from functools import partial
from typing import Any

import numpy as np

from halfwidth.errors import BadRow, InputError, NotEnoughData
from halfwidth.streams.alignment import aligned, first_rows, read_head, replayed
from halfwidth.streams.block import Block, Chunk
from halfwidth.streams.design.bad_rows import ORDER
from halfwidth.streams.design.columns import Design
from halfwidth.streams.design.explain import explain
from halfwidth.streams.design.levels import with_levels
from halfwidth.streams.design.plan import Plan, Rows
from halfwidth.streams.design.specification import Specification
from halfwidth.streams.options import Options
from halfwidth.streams.origin import Origin
from halfwidth.streams.read_ahead import read_ahead
from halfwidth.streams.sources.reader_options import Dialect, ReaderOptions, reader_state
from halfwidth.streams.sources.source import FileSource, Source, drop_total
from halfwidth.streams.stream_state import STREAM_SCHEMA
from halfwidth.streams.time_order import TimeOrder

_BUFFER_ROWS = 10_000
_CHUNK_ROWS = 8192
_CHUNK_CELLS = 1 << 21


class Stream:
    """Chunks of rows in order. Iterating starts at `position` and leaves it at the row reached.

    Parameters
    ----------
    source : Source
        Where rows come from.
    options : Options
        Which columns play which part.
    state : dict, optional
        That of an earlier stream, to go on from.
    reader : ReaderOptions, optional
        How the source is read.

    Attributes
    ----------
    has_intercept : bool
        Whether the formula has one; True without a formula: the model decides.
    target : str
        Name of the target.
    files, rereadable : tuple of str, bool
        What is read, in natural order, and whether `skip_to(0)` allows a second pass.
    position : int
        Rows consumed so far, bad ones included.
    left_out : list of str
        The columns that default features, or `.` in a formula, leave out, with the reason.
    skipped, skipped_for : dict
        Rows skipped so far by reason, and by the first column at fault; a broken row has none.
    other_levels : dict
        Rows counted as the level `other` so far, by column.
    """

    def __init__(
        self,
        source: Source,
        options: Options,
        state: dict[str, Any] | None = None,
        reader: ReaderOptions | None = None,
    ) -> None:
        self._source, self.options, self._reader = source, options, reader or ReaderOptions()
        self.files, self.rereadable = source.files, source.rereadable
        self.skipped: dict[str, int] = {}
        self.skipped_for, self.other_levels = dict[str, int](), dict[str, int]()
        self._pending: Iterator[Block] | None = None
        self._origin, self._rows_gone, self.position = Origin(source), 0, 0
        self._order = TimeOrder()
        if state is None:
            self._plan = self._learn()
        else:
            self._plan = Plan.from_state(state["plan"], options)
            self.position, self.skipped = state["position"], dict(state["skipped"])
            self.skipped_for = dict(state["skipped_for"])
            self._order, self.other_levels = TimeOrder.from_state(state), dict(state["other_levels"])
        self.has_intercept = self._plan.design.has_intercept
        self.target, self.columns, self.left_out = self._plan.target.column, self._plan.columns, self._plan.left_out
        fitting = _CHUNK_CELLS // max(1, len(self.feature_names))
        self.chunk_rows = options.chunk_rows or min(_CHUNK_ROWS, max(256, fitting))

    def _learn(self) -> Plan:
        """Fix the plan on the first buffer; a source that can be read only once keeps it for the first pass."""
        blocks = self._source.blocks(None)
        wanted = self.options.buffer_rows or _BUFFER_ROWS
        head, failure = read_head(blocks, wanted)
        if not self.rereadable:
            self._pending = replayed(head, blocks, failure)
        buffer = first_rows(head, wanted)
        self._origin.begin(buffer)
        if not buffer:
            raise failure or NotEnoughData.rows(f"source {', '.join(self.files[:3])}", 0, 1)
        return Plan.learn(self.options, buffer, self._source.default_target)

    @property
    def share(self) -> float | None:
        """How much of the source was read in this pass, from 0 to 1; None where its size is not known."""
        return self._source.share(self.position)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the columns of X so far; a level that comes late adds one at the end."""
        return self._plan.design.feature_names

    @property
    def specification(self) -> Specification:
        """What a model keeps to predict from raw columns; it grows with the design."""
        return self._plan.specification

    @property
    def design(self) -> Design:
        """How columns become those of X, with what was taken from rows: constants and levels."""
        return self._plan.design

    @property
    def dialect(self) -> Dialect | None:
        """How the text of the source is written; None for sources that are no text."""
        return getattr(getattr(self._source, "settings", None), "dialect", None)

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """The labels, class 0 first, once all are known."""
        return self._plan.target.classes

    def to_state(self) -> dict[str, Any]:
        """Plain data for `open_stream(source, state=...)`.

        Returns
        -------
        dict
            Valid under `halfwidth.streams.stream_state.STREAM_SCHEMA`.
        """
        return {
            "kind": "stream",
            "version": STREAM_SCHEMA.version,
            "plan": self._plan.to_state(),
            "reader": reader_state(self._reader, self.dialect),
            "origin": self._origin.to_state(self.position),
            "position": self.position,
            "skipped": dict(self.skipped),
            "skipped_for": dict(self.skipped_for),
            "other_levels": dict(self.other_levels),
            **self._order.to_state(),
        }

    def resume(self, origin: dict[str, Any], resume_at: int | None) -> None:
        """Check that the source is the one that the state describes, and find the row to go on at.

        Parameters
        ----------
        origin : dict
            What the state says of its source.
        resume_at : int or None
            For a source that can be read only once, the number of the first row that it gives now.
        """
        self._origin.resume(origin, self.columns)
        name, at = self.files[0], self.position + 1
        if self._origin.kind != "once":
            if resume_at is not None:
                raise InputError.of("resume_at", "be left out for a source that can be read again", resume_at)
        elif resume_at is None:
            raise InputError(
                f"{name} can be read only once, and nothing tells which of its rows comes first now: give resume_at "
                f"(--resume-at), {at} if it goes on after the last row that was read, 1 if it starts over"
            )
        elif not 1 <= resume_at <= at:
            raise InputError.of("resume_at", f"lie between 1 and {at}, so that no row is lost", resume_at)
        else:
            self._rows_gone = resume_at - 1

    def skip_to(self, row: int) -> None:
        """Let the next iteration start after `row` rows, with all counts at zero; `skip_to(0)` is a new pass.

        Parameters
        ----------
        row : int
            Rows of the source to leave out.
        """
        if row < 0:
            raise InputError.of("row", "be at least 0", row)
        self.position, self.skipped, self._order = row, {}, TimeOrder()
        self.skipped_for, self.other_levels = {}, {}

    def __iter__(self) -> Iterator[Chunk]:
        blocks, self._pending = self._blocks(), None
        try:
            for parts, failure in aligned(blocks, self.columns, self.position, self.chunk_rows):
                self._origin.passed(parts, self.position)
                rows = self._plan.rows(parts)
                stop, bad = self._usable(parts, rows)
                chunk = self._chunk(rows, stop)
                if len(chunk):
                    yield chunk
                stopped = bad if bad is not None else failure
                if stopped is not None:
                    self._origin.failed = True
                    raise stopped
        finally:
            if isinstance(blocks, Generator) and isinstance(self._source, FileSource):
                blocks.close()  # its thread ends now, not when the interpreter does
        self._origin.ended = True

    def _blocks(self) -> Iterator[Block]:
        self._source.narrow(self.columns)
        if self._pending is not None:
            return drop_total(self._pending, self.position)
        blocks = self._source.blocks(self.columns if self.rereadable else None, self.position - self._rows_gone)
        if not isinstance(self._source, FileSource):
            return blocks
        return read_ahead(blocks, prepare=partial(with_levels, columns=self._plan.categories))

    def _usable(self, parts: list[Block], rows: Rows) -> tuple[int, BadRow | None]:
        """How many rows come out of these before an error, and that error."""
        stop, bad = rows.faults.rows, None
        first = rows.faults.first()
        if first is not None and self.options.bad_rows != "skip":
            stop, bad = first, explain(parts, first, rows.faults, self._plan)
        late = self._order.first_late(rows, stop)
        if late is not None:
            stop, bad = late, explain(parts, late, ORDER, self._plan)
        return stop, bad

    def _chunk(self, rows: Rows, stop: int) -> Chunk:
        """The usable rows before `stop`; position and counts move on with them."""
        first_row, good = self.position, rows.faults.good
        keep: Any = slice(0, stop) if good is None else np.flatnonzero(good[:stop])
        faults = rows.faults
        found = (faults.counts(stop), faults.columns(stop), faults.count_others(stop))
        for kept, counts in zip((self.skipped, self.skipped_for, self.other_levels), found, strict=True):
            for name, count in counts.items():
                kept[name] = kept.get(name, 0) + count
        self.position += stop
        weight, offset, group = (None if v is None else v[keep] for v in (rows.weight, rows.offset, rows.group))
        return Chunk(rows.X[keep], rows.y[keep], weight, offset, group, first_row, self.position)
