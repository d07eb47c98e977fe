"""A run of `fit`: chunk after chunk into the model, and a checkpoint between two of them now and then."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np

from halfwidth.checks import check_count
from halfwidth.errors import CannotWrite, HalfwidthError, InputError, Interrupted
from halfwidth.models.base import StreamModel
from halfwidth.models.classifier import Classifier
from halfwidth.models.identification import check_names
from halfwidth.models.registry import model_from_state
from halfwidth.models.run_state import FIT_SCHEMA
from halfwidth.models.run_status import NEEDS_SECOND_PASS
from halfwidth.models.saving import Saving
from halfwidth.state.ending import Ending
from halfwidth.streams import Chunk, Stream

Every = int | Literal["doubling"]
Passes = int | Literal["auto"]
Report = Callable[[StreamModel], None]

CHECKPOINT_SECONDS = 10.0
MOST_AUTO_PASSES = 8
_FIRST_REPORT = 1_000
_OPTIONS = {"fit_intercept": "--no-intercept"}
"""What a setting is called on the command line, where that is another name."""


class Run:
    """A model, a stream, and what happens between chunks."""

    def __init__(
        self,
        stream: Stream,
        model: StreamModel,
        saving: Saving,
        every: Every | None,
        report: Report | None,
        progress: Callable[[int], None] | None,
    ) -> None:
        if every is not None and every != "doubling":
            check_count("every", every)
        self.stream, self.model, self.saving = stream, model, saving
        self.every, self.report, self.progress = every, report, progress
        self.passes_done = 0
        self._saved = clock.monotonic()
        self._whole = True  # whether the model has learned what the stream has given
        self._ended = False
        self._ending: Ending | None = None

    def start(self, state: dict[str, Any] | None) -> None:
        if state is None:
            check_names(self.stream.feature_names, self.stream.has_intercept and self.model.fit_intercept)
            self.model.feature_names_in_ = np.array(self.stream.feature_names, dtype=object)
            self.model.n_features_in_ = len(self.stream.feature_names)
            self._take_labels()
            self.model._begin(self.model.n_features_in_, intercept=self.stream.has_intercept)
            self.model.specification_ = self.stream.specification
            return
        known = model_from_state(state["model"])
        _check_settings(known, self.model)
        self.model, self.passes_done = known, state["passes_done"]
        self.model.specification_ = self.stream.specification

    def read_all(self, passes: Passes) -> None:
        """All passes that are left; a finished run looks for rows that were appended."""
        if self.passes_done and (passes == "auto" or self.passes_done >= passes):
            self.passes_done = self.model._passes - 1
        with Ending(self.saving.path is not None) as self._ending:
            another = self._wants_another(passes)
            while another:
                self.read()
                self._tell()
                another = self._wants_another(passes)
                self._save(finished=not another)

    def _wants_another(self, passes: Passes) -> bool:
        """Whether to read the source (again)."""
        if self.passes_done < self.model._passes:
            return True
        if passes != "auto":
            return self.passes_done < passes
        if not (self.stream.rereadable and self.model.n_seen_) or self.passes_done >= MOST_AUTO_PASSES:
            return False
        return self.model.status_ == NEEDS_SECOND_PASS or getattr(self.model._engine, "suspects", False)

    def read(self) -> None:
        """One pass, without its last checkpoint; a second one starts again, from the estimate of the first."""
        if self.passes_done == self.model._passes:
            self.model._start_next_pass()
            self.stream.skip_to(0)
        try:
            for chunk in self._chunks():
                if chunk.X.shape[1] > self.model.n_features_in_:
                    check_names(self.stream.feature_names, self.model._has_intercept())
                    self.model._add_columns(self.stream.feature_names, chunk.X)
                for piece in self._cut(_of_some_weight(chunk)):
                    self.model._take(piece.X, piece.y, piece.weight, piece.offset, piece.group)
                    if self.report is not None and self.model.n_seen_ == self._next_report:
                        self._tell()
                        self.report(self.model)
                self._whole = True
                if self.progress is not None:
                    self.progress(chunk.rows_read)
                if clock.monotonic() - self._saved > CHECKPOINT_SECONDS:
                    self._save()
                self._end_if_asked()
        except CannotWrite:
            raise
        except BaseException:
            if self._whole and not self._ended:
                self._save()
            raise
        self.passes_done += 1

    def _chunks(self) -> Iterator[Chunk]:
        """The chunks of the stream; from asking for one until it is learned, model and stream do not agree."""
        chunks = iter(self.stream)
        while True:
            self._whole = False
            try:
                chunk = next(chunks, None)
            except HalfwidthError:
                self._whole = True  # a stream that refuses a row stands in front of it
                raise
            if chunk is None:
                self._whole = True
                return
            yield chunk

    def _end_if_asked(self) -> None:
        if self._ending is None or self._ending.received is None:
            return
        self._save()
        self._ended = True
        raise Interrupted(
            f"ended by a signal after {self.stream.position:,} rows; what was learned is in {str(self.saving.path)!r}: "
            "go on with the same arguments and resume (--resume)",
            self._ending.received,
        )

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
            facts["columns_left_out"] = ", ".join(self.stream.left_out)
        if self.stream.skipped:
            facts["skipped_rows"] = dict(self.stream.skipped)
        if self.stream.skipped_for:
            facts["skipped_rows_by_column"] = dict(self.stream.skipped_for)
        design = self.stream.design
        if design.reference_levels:
            facts["reference_levels"] = design.reference_levels
        if design.late_levels:
            facts["late_levels"] = design.late_levels
        if self.stream.other_levels:
            facts["rows_of_level_other"] = dict(self.stream.other_levels)
        if design.notes:
            notes = (f"{name}: {text}" for name, text in design.notes.items())
            facts["constants_of_the_first_rows"] = "; ".join(notes)
        if self.model._passes > 1:
            facts["passes"] = f"{self.model._passes}, each expanded at the estimate of the one before"
        time = self.stream.options.time
        if time is not None and not self.model._engine.grouped:
            facts["spacing"] = f"rows are taken as equally spaced in {time}; gaps in it are not looked at"
        self.model._stream_facts = facts
        self._take_labels()

    def _take_labels(self) -> None:
        if isinstance(self.model, Classifier):
            self.model._take_labels(self.stream.classes)

    def _save(self, *, finished: bool = False) -> None:
        self._tell()
        self._saved = clock.monotonic()
        if self.saving.path is None:
            return
        state = {
            "kind": "fit",
            "version": FIT_SCHEMA.version,
            "model": self.model.to_state(),
            "stream": self.stream.to_state(),
            "passes_done": self.passes_done,
            "finished": finished,
        }
        self.saving.write(state)


def _check_settings(known: StreamModel, given: StreamModel) -> None:
    """Raise unless a run goes on with the settings that it began with; those that differ are named."""
    before, now = ({"family": model.family, **model.get_params()} for model in (known, given))
    differ = [name for name in before if before[name] != now.get(name, before[name])]
    if differ:
        told = ", ".join(f"{name} ({_OPTIONS.get(name, '--' + name)}) was {before[name]}" for name in differ)
        values = ", ".join(str(now[name]) for name in differ)
        raise InputError(f"a run goes on with the settings that it began with: {told}; got {values}")


def _of_some_weight(chunk: Chunk) -> Chunk:
    """The rows that count."""
    if chunk.weight is None or chunk.weight.all():
        return chunk
    used = chunk.weight > 0.0
    weight, offset, group = (None if v is None else v[used] for v in (chunk.weight, chunk.offset, chunk.group))
    return Chunk(chunk.X[used], chunk.y[used], weight, offset, group, chunk.first_row, chunk.rows_read)


def _part(chunk: Chunk, start: int, stop: int) -> Chunk:
    cut = slice(start, stop)
    weight, offset, group = (None if v is None else v[cut] for v in (chunk.weight, chunk.offset, chunk.group))
    return Chunk(chunk.X[cut], chunk.y[cut], weight, offset, group, chunk.first_row, chunk.rows_read)
