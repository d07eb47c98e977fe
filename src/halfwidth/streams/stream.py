"""A source and a design become a stream of chunks that can stop anywhere and go on later.

Chunks end at multiples of `chunk_rows` rows of the source, wherever files, blocks or resumption fall, so a run
that was interrupted sees the same chunks as one that was not. In front of a bad row a chunk ends early: the rows
before it come out first, and only then the error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Unpack

import numpy as np

from halfwidth.errors import BadRow, InputError, NotEnoughData
from halfwidth.state.schema import validate
from halfwidth.streams.block import Block, Chunk
from halfwidth.streams.design.bad_rows import ORDER, missing_column
from halfwidth.streams.design.explain import explain
from halfwidth.streams.design.plan import Plan, Rows
from halfwidth.streams.design.specification import Specification
from halfwidth.streams.options import Options, as_tuple
from halfwidth.streams.origin import Origin
from halfwidth.streams.sources.reader_options import (
    Dialect,
    ReaderArguments,
    ReaderOptions,
    reader_state,
    resumed_reader,
)
from halfwidth.streams.sources.source import Source, as_source, drop_total
from halfwidth.streams.stream_state import STREAM_SCHEMA

_BUFFER_ROWS = 10_000
_CHUNK_ROWS = 8192
_CHUNK_CELLS = 1 << 21


def open_stream(
    source: Any,
    *,
    target: str | None = None,
    features: Sequence[str] | None = None,
    formula: str | None = None,
    weight: str | None = None,
    offset: str | None = None,
    group: str | None = None,
    time: str | None = None,
    labels: str | None = None,
    classes: Sequence[Any] | None = None,
    bad_rows: str | None = None,
    unknown_level: str | None = None,
    chunk_rows: int | None = None,
    buffer_rows: int | None = None,
    state: dict[str, Any] | None = None,
    resume_at: int | None = None,
    **reader: Unpack[ReaderArguments],
) -> Stream:
    """Open a source of rows and fix its design on the first `buffer_rows` rows (10,000).

    `features` names columns (all numeric ones but target and special columns, if None and no formula is given).
    `labels` is "number" (default), "count" (not negative) or "binary" (see `labels`). `bad_rows` is "error"
    (default) or "skip". `unknown_level` says what a level becomes that the first rows lack: "add" (default) gives it a
    column of its own, "other" one column to all such levels, "error" refuses it. With the `state` of an earlier stream
    (`Stream.to_state`) the design is taken from there and reading goes on where that stream stood; arguments
    left out are taken from there too. The source must be the one of that stream; rows may have been appended. Of a
    source that can be read only once, `resume_at` says the number of the first row that it gives now.
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


class Stream:
    """Chunks of rows in order. Iterating starts at `position` and leaves it at the row reached.

    | attribute       | meaning                                                                   |
    |-----------------|---------------------------------------------------------------------------|
    | `feature_names` | names of the columns of X; the intercept is not among them                |
    | `has_intercept` | whether the formula has one; True without a formula: the model decides    |
    | `target`        | name of the target                                                        |
    | `files`         | what is read, in natural order                                            |
    | `rereadable`    | whether `skip_to(0)` allows a second pass                                 |
    | `position`      | rows of the source consumed so far, bad ones included                     |
    | `left_out`      | columns that default features leave out, as they are not numeric          |
    | `skipped`       | rows skipped so far, by reason                                            |
    | `skipped_for`   | the same by the first column at fault; a broken row has none              |
    | `other_levels`  | rows counted as the level `other` so far, by column                       |
    | `classes`       | the two labels, class 0 first, once both are known                        |
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
        self.position = 0
        self.skipped: dict[str, int] = {}
        self.skipped_for: dict[str, int] = {}
        self.other_levels: dict[str, int] = {}
        self._last_time = -np.inf
        self._pending: Iterator[Block] | None = None
        self._origin, self._rows_gone = Origin(source), 0
        if state is None:
            self._plan = self._learn()
        else:
            self._plan = Plan.from_state(state["plan"], options)
            self.position, self.skipped = state["position"], dict(state["skipped"])
            self.skipped_for = dict(state["skipped_for"])
            self._last_time = state["last_time"]
            self.other_levels = dict(state["other_levels"])
        design = self._plan.design
        self.has_intercept = design.has_intercept
        self.target, self.columns = self._plan.target.column, self._plan.columns
        self.left_out = self._plan.left_out
        fitting = max(256, _CHUNK_CELLS // max(1, len(self.feature_names)))
        self.chunk_rows = options.chunk_rows or min(_CHUNK_ROWS, fitting)

    def _learn(self) -> Plan:
        """Fix the plan on the first buffer; a source that can be read only once keeps it for the first pass."""
        blocks = self._source.blocks(None)
        head, rows, failure = [], 0, None
        wanted = self.options.buffer_rows or _BUFFER_ROWS
        try:
            while rows < wanted and (block := next(blocks, None)) is not None:
                head.append(block)
                rows += block.rows
        except BadRow as error:
            failure = error
        if not self.rereadable:
            self._pending = _replay(head, blocks, failure)
        buffer, room = [], wanted
        for block in head:
            buffer.append(block.cut(0, room))
            room -= buffer[-1].rows
        buffer = [block for block in buffer if block.rows]
        self._origin.begin(buffer)
        if not buffer:
            raise failure or NotEnoughData.rows(f"source {', '.join(self.files[:3])}", 0, 1)
        return Plan.learn(self.options, buffer, self._source.default_target)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the columns of X so far; a level that comes late adds one at the end."""
        return self._plan.design.feature_names

    @property
    def specification(self) -> Specification:
        """What a model keeps to predict from raw columns; it grows with the design."""
        return self._plan.specification

    @property
    def notes(self) -> dict[str, str]:
        """The constants that the formula took from the first rows, by transform."""
        return self._plan.design.notes

    @property
    def dialect(self) -> Dialect | None:
        """How the text of the source is written; None for sources that are no text."""
        settings = getattr(self._source, "settings", None)
        return None if settings is None else settings.dialect

    @property
    def classes(self) -> tuple[Any, Any] | None:
        return self._plan.target.classes

    def to_state(self) -> dict[str, Any]:
        """Plain data with which `open_stream(source, state=...)` goes on from here with the same design."""
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
            "last_time": float(self._last_time),
        }

    def resume(self, origin: dict[str, Any], resume_at: int | None) -> None:
        """Check that the source is the one that the state describes, and find the row to go on at."""
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
        """Let the next iteration start after `row` rows, with all counts at zero; `skip_to(0)` is a new pass."""
        if row < 0:
            raise InputError.of("row", "be at least 0", row)
        self.position, self.skipped, self._last_time = row, {}, -np.inf
        self.skipped_for, self.other_levels = {}, {}

    def __iter__(self) -> Iterator[Chunk]:
        for parts, failure in self._aligned():
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
        self._origin.ended = True

    def _aligned(self) -> Iterator[tuple[list[Block], BadRow | None]]:
        """Lists of blocks that end where chunks end; the last may come with the failure that ended it."""
        blocks, self._pending = self._blocks(), None
        parts: list[Block] = []
        room = self.chunk_rows - self.position % self.chunk_rows
        failure = None
        try:
            for block in blocks:
                self._check_columns(block)
                start = 0
                while block.rows - start >= room:
                    parts.append(block.cut(start, start + room))
                    yield parts, None
                    start, parts, room = start + room, [], self.chunk_rows
                if start < block.rows:
                    parts.append(block.cut(start, block.rows))
                    room -= parts[-1].rows
        except BadRow as error:
            failure = error
        if parts or failure:
            yield parts, failure

    def _blocks(self) -> Iterator[Block]:
        self._source.narrow(self.columns)
        if self._pending is not None:
            return drop_total(self._pending, self.position)
        return self._source.blocks(self.columns if self.rereadable else None, self.position - self._rows_gone)

    def _check_columns(self, block: Block) -> None:
        names = block.batch.schema.names
        for column in () if block.sparse else self.columns:
            if column not in names:
                raise missing_column(block.file, column, names)

    def _usable(self, parts: list[Block], rows: Rows) -> tuple[int, BadRow | None]:
        """How many rows come out of these before an error, and that error."""
        stop, bad = rows.faults.rows, None
        first = rows.faults.first()
        if first is not None and self.options.bad_rows != "skip":
            stop, bad = first, explain(parts, first, rows.faults, self._plan)
        late = self._first_late(rows, stop)
        if late is not None:
            stop, bad = late, explain(parts, late, ORDER, self._plan)
        return stop, bad

    def _first_late(self, rows: Rows, stop: int) -> int | None:
        """The first usable row whose time is before that of a row above it; the time of the last is kept."""
        if rows.time is None or not stop:
            return None
        time = rows.time[:stop]
        if rows.faults.good is not None:
            time = np.where(rows.faults.good[:stop], time, -np.inf)
        highest = np.maximum.accumulate(np.concatenate([[self._last_time], time]))
        late = np.flatnonzero((time < highest[:-1]) & np.isfinite(time))
        end = int(late[0]) if len(late) else stop
        self._last_time = float(highest[end])
        return end if len(late) else None

    def _chunk(self, rows: Rows, stop: int) -> Chunk:
        """The usable rows before `stop`; position and counts move on with them."""
        first_row, good = self.position, rows.faults.good
        keep: Any = slice(0, stop) if good is None else np.flatnonzero(good[:stop])
        faults = rows.faults
        for kept, counts in (
            (self.skipped, faults.counts(stop)),
            (self.skipped_for, faults.columns(stop)),
            (self.other_levels, faults.count_others(stop)),
        ):
            for name, count in counts.items():
                kept[name] = kept.get(name, 0) + count
        self.position += stop
        weight, offset, group = (None if v is None else v[keep] for v in (rows.weight, rows.offset, rows.group))
        return Chunk(rows.X[keep], rows.y[keep], weight, offset, group, first_row, self.position)


def _replay(head: list[Block], rest: Iterator[Block], failure: BadRow | None) -> Iterator[Block]:
    """The blocks read ahead, then the others, or the failure that ended the reading."""
    yield from head
    if failure is not None:
        raise failure
    yield from rest
