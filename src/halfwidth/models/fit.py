"""`halfwidth.fit`: a regression over anything that yields rows, in one pass, resumable.

The stream fixes its design on the first buffer and yields chunks; the model takes them in order. A checkpoint holds
both: the model with the rows it has put aside, and the position in the source. Because the model cuts rows into
chunks of its own, a run that was interrupted anywhere ends with the same bits as one that was not.
"""

from __future__ import annotations

import os
import time as clock
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np

from halfwidth.checks import check_count
from halfwidth.errors import InputError
from halfwidth.families import ALIASES
from halfwidth.models.base import StreamModel
from halfwidth.models.registry import model_class, model_from_state
from halfwidth.models.run_state import FIT_SCHEMA
from halfwidth.state.checkpoint import read_checkpoint, write_checkpoint
from halfwidth.state.schema import validate
from halfwidth.streams import Chunk, ReaderArguments, Stream, open_stream

Every = int | Literal["doubling"]
Report = Callable[[StreamModel], None]

CHECKPOINT_SECONDS = 10.0
_FIRST_REPORT = 1_000
_LABELS = {"logistic": "binary", "poisson": "count"}


def fit(
    source: Any,
    *,
    target: str | None = None,
    features: Sequence[str] | None = None,
    formula: str | None = None,
    family: str = "linear",
    quantile: float | None = None,
    fit_intercept: bool = True,
    ridge: float = 0.0,
    method: str = "auto",
    engine: str = "auto",
    time: str | None = None,
    group: str | None = None,
    weight: str | None = None,
    offset: str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    bad_rows: str = "error",
    unknown_level: str = "add",
    passes: int = 1,
    every: Every | None = None,
    report: Report | None = None,
    progress: Callable[[int], None] | None = None,
    **reader: Unpack[ReaderArguments],
) -> StreamModel:
    """Fit a regression to a file, a folder, a table or an iterator of chunks; returns the model.

    `source` is a path (CSV, Parquet, Arrow IPC, NDJSON; a folder or a glob), `-` for stdin, a pandas, polars or Arrow
    table, a DuckDB relation, or an iterator of chunks. `family` is linear, logistic, poisson, quantile or huber.
    `unknown_level` says what becomes of a level of a category that the first 10,000 rows lack: "add" gives it a
    column of its own, "other" gives one column to all such levels, "error" refuses it. How the source is read
    (`separator`, `decimal`, `query`, ...) is described at `halfwidth.streams.ReaderArguments`.
    `every` calls `report(model)` after so many rows, or at 1,000, 2,000, 4,000 ... rows with `"doubling"`.
    `checkpoint` is written every ten seconds, at the end, and when a bad row stops the run; with `resume` it is
    where the run goes on; if there is none yet, the run starts at the first row. `passes=2` reads the source twice
    and ends at the offline fit.
    """
    name = ALIASES.get(family, family)
    kind = model_class(name)
    if quantile is not None and name != "quantile":
        raise InputError.of("quantile", "be given with family='quantile' only", quantile)
    if passes not in (1, 2):
        raise InputError.of("passes", "be 1 or 2", passes)
    if resume and checkpoint is None:
        raise InputError("resume needs the checkpoint to resume from")
    state = read_checkpoint(checkpoint) if resume and checkpoint is not None and Path(checkpoint).exists() else None
    if state is not None:
        validate(state, FIT_SCHEMA, "checkpoint")
    stream = open_stream(
        source, target=target, features=features, formula=formula, weight=weight, offset=offset, group=group,
        time=time, labels=_LABELS.get(name), bad_rows=bad_rows, unknown_level=unknown_level,
        state=None if state is None else state["stream"], **reader,
    )  # fmt: skip
    if passes == 2 and not stream.rereadable:
        raise InputError.of("passes", "be 1 for a source that can be read only once", passes)
    options = {} if quantile is None else {"quantile": quantile}
    fresh = kind(fit_intercept=fit_intercept, ridge=ridge, method=method, engine=engine, **options)
    run = _Run(stream, fresh, checkpoint, every, report, progress)
    run.start(state)
    while run.passes_done < passes:
        run.read()
    return run.model


class _Run:
    """A model, a stream, and what happens between chunks."""

    def __init__(
        self,
        stream: Stream,
        model: StreamModel,
        checkpoint: str | os.PathLike[str] | None,
        every: Every | None,
        report: Report | None,
        progress: Callable[[int], None] | None,
    ) -> None:
        if every is not None and every != "doubling":
            check_count("every", every)
        self.stream, self.model, self.checkpoint = stream, model, checkpoint
        self.every, self.report, self.progress = every, report, progress
        self.passes_done = 0
        self._saved = clock.monotonic()
        self._between = True

    def start(self, state: dict[str, Any] | None) -> None:
        if state is None:
            self.model.feature_names_in_ = np.array(self.stream.feature_names, dtype=object)
            self.model.n_features_in_ = len(self.stream.feature_names)
            self.model._begin(self.model.n_features_in_, intercept=self.stream.has_intercept)
            self.model.specification_ = self.stream.specification
            return
        known = model_from_state(state["model"])
        if type(known) is not type(self.model) or known.get_params() != self.model.get_params():
            raise InputError(f"a run must be resumed with the settings it began with: {known!r}; got {self.model!r}")
        self.model, self.passes_done = known, state["passes_done"]
        self.model.specification_ = self.stream.specification

    def read(self) -> None:
        """One pass; a second one starts again at the first row, from the estimate of the first."""
        if self.passes_done == 1 and not self.model._second_pass:
            self.model._start_second_pass()
            self.stream.skip_to(0)
        try:
            for chunk in self.stream:
                self._between = False
                if chunk.X.shape[1] > self.model.n_features_in_:
                    self.model._add_columns(self.stream.feature_names, chunk.X)
                for piece in self._cut(chunk):
                    self.model._engine.consume(piece.X, piece.y, piece.weight, piece.offset, piece.group)
                    if self.report is not None and self.model.n_seen_ == self._next_report:
                        self._tell()
                        self.report(self.model)
                self._between = True
                if self.progress is not None:
                    self.progress(chunk.rows_read)
                if clock.monotonic() - self._saved > CHECKPOINT_SECONDS:
                    self._save()
        except BaseException:
            if self._between:  # within a chunk the stream is ahead of the model: the last checkpoint stays
                self._save()
            raise
        self.passes_done += 1
        self._save()

    @property
    def _next_report(self) -> int:
        return self._after(self.model.n_seen_ - 1)

    def _after(self, seen: int) -> int:
        """The next number of rows at which to report."""
        assert self.every is not None
        if self.every != "doubling":
            return (seen // self.every + 1) * self.every
        at = _FIRST_REPORT
        while at <= seen:
            at *= 2
        return at

    def _cut(self, chunk: Chunk) -> Iterator[Chunk]:
        """The chunk in pieces that end where a report is due."""
        seen, at = self.model.n_seen_, 0
        while self.report is not None and self.every is not None and self._after(seen) < seen + len(chunk) - at:
            stop = at + self._after(seen) - seen
            yield _part(chunk, at, stop)
            seen, at = seen + stop - at, stop
        yield chunk if at == 0 else _part(chunk, at, len(chunk))

    def _tell(self) -> None:
        """Let the model know what the stream did to its rows."""
        facts: dict[str, Any] = {}
        if len(self.stream.files) > 1:
            facts["files"] = f"{len(self.stream.files)} in natural order, {self.stream.files[0]} first"
        if self.stream.dialect is not None and self.stream.dialect.found:
            facts["csv"] = self.stream.dialect.describe()
        if self.stream.left_out:
            facts["columns_left_out"] = f"{', '.join(self.stream.left_out)} (not numeric)"
        if self.stream.skipped:
            facts["skipped_rows"] = dict(self.stream.skipped)
        if self.stream.skipped_for:
            facts["skipped_rows_by_column"] = dict(self.stream.skipped_for)
        if self.stream.other_levels:
            facts["rows_of_level_other"] = dict(self.stream.other_levels)
        if self.stream.notes:
            notes = (f"{name}: {text}" for name, text in self.stream.notes.items())
            facts["constants_of_the_first_rows"] = "; ".join(notes)
        if self.model._second_pass:
            facts["passes"] = 2
        self.model._stream_facts = facts
        if self.model.family == "logistic":
            self.model.classes_ = np.array(self.stream.classes or (0, 1))

    def _save(self) -> None:
        self._tell()
        self._saved = clock.monotonic()
        if self.checkpoint is None:
            return
        state = {
            "kind": "fit",
            "version": FIT_SCHEMA.version,
            "model": self.model.to_state(),
            "stream": self.stream.to_state(),
            "passes_done": self.passes_done,
        }
        write_checkpoint(self.checkpoint, state)


def _part(chunk: Chunk, start: int, stop: int) -> Chunk:
    cut = slice(start, stop)
    weight, offset, group = (None if v is None else v[cut] for v in (chunk.weight, chunk.offset, chunk.group))
    return Chunk(chunk.X[cut], chunk.y[cut], weight, offset, group, chunk.first_row, chunk.rows_read)
