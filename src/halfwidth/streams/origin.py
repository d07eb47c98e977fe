"""The source of a stream as a checkpoint knows it: taken when a run stops, checked when it goes on."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from halfwidth.errors import InputError
from halfwidth.state.fields import State
from halfwidth.streams.block import Block
from halfwidth.streams.fingerprint import ADVICE, MOST_ROWS, check_file, columns_of, file_mark, rows_mark
from halfwidth.streams.sources.source import FileSource, Source


class Origin:
    """What was read of a source, for `to_state`."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.kind = "files" if isinstance(source, FileSource) else "rows" if source.rereadable else "once"
        self.columns: list[list[str]] = []
        self.ended = self.failed = False
        self._head: State | None = None
        self._parts: Sequence[Block] = ()
        self._first_row = 0
        self._reached: str | None = None
        self._whole: dict[str, State] = {}
        self._known: State | None = None

    def begin(self, head: Sequence[Block]) -> None:
        """See the first blocks."""
        if head and self.kind != "once":
            self.columns = columns_of(head[0])
        if self.kind == "rows":
            self._head = rows_mark(head, 0, MOST_ROWS)

    def passed(self, parts: Sequence[Block], first_row: int) -> None:
        """See the blocks of the chunk that starts after so many rows."""
        if parts:
            self._parts, self._first_row, self._reached = parts, first_row, parts[-1].file

    def to_state(self, position: int) -> State:
        """What is known of the source after so many rows."""
        if self._known is not None and not self._parts:
            return self._known
        last = None
        if self.kind == "rows" and position > self._first_row and self._parts:
            start = max(self._first_row, position - MOST_ROWS)
            last = rows_mark(_without(self._parts, start - self._first_row), start, position - start)
        return {
            "known_by": self.kind,
            "names": [str(name) for name in self._source.files],
            "columns": self.columns,
            "files": self._file_marks(position) if self.kind == "files" and position else [],
            "head": self._head,
            "last": last,
            "ended": self.ended,
        }

    def _rows_of_file(self, position: int) -> int:
        """How many rows of the file reached were consumed."""
        left, rows = position - self._first_row, 0
        for part in self._parts:
            if left <= 0:
                break
            taken = min(left, part.rows)
            rows = part.before + taken if part.file == self._reached else 0
            left -= taken
        return rows

    def _file_marks(self, position: int) -> list[State]:
        """Marks of the files up to the one reached; of one with a bad row, which may be repaired, up to that row."""
        marks = []
        for name in self._source.files:
            if name == self._reached:
                marks.append(file_mark(name, self._rows_of_file(position) if self.failed else None))
                break
            if name not in self._whole:
                self._whole[name] = file_mark(name)
            marks.append(self._whole[name])
        return marks

    def resume(self, state: State, columns: Sequence[str]) -> None:
        """Raise unless the source is the one of the state."""
        then, now = ", ".join(state["names"][:3]), ", ".join(map(str, self._source.files[:3]))
        if state["known_by"] != self.kind:
            kinds = f"{state['known_by']!r} ({then}) and is now {self.kind!r} ({now})"
            raise InputError(f"source is another one: it was {kinds}; {ADVICE}")
        self._known = state
        if self.kind == "once":
            return
        head = next(iter(self._source.blocks(None)), None)
        self._check_columns(state, head, then, now)
        self._head, self._reached = state["head"], state["files"][-1]["name"] if state["files"] else None
        if self.kind == "files":
            self._check_files(state["files"], state["ended"], now)
        for mark, wanted in ((state["head"], None), (state["last"], columns)):
            if mark is not None:
                blocks = self._source.blocks(wanted, mark["start"])
                if rows_mark(islice(blocks, MOST_ROWS), mark["start"], mark["count"]) != mark:
                    place = f"rows {mark['start'] + 1:,} to {mark['start'] + mark['count']:,}"
                    raise InputError(f"source is another one: {place} of {now} are not those of {then}; {ADVICE}")

    def _check_columns(self, state: State, head: Block | None, then: str, now: str) -> None:
        self.columns = [] if head is None else columns_of(head)
        side = slice(None) if self.kind == "rows" else slice(1)
        before, found = ([tuple(column[side]) for column in columns] for columns in (state["columns"], self.columns))
        if state["columns"] and not (head is not None and head.sparse) and before != found:
            shown = [" ".join(column) for column in before], [" ".join(column) for column in found]
            raise InputError(f"source has other columns: {then} had {shown[0]}, {now} has {shown[1]}; {ADVICE}")

    def _check_files(self, marks: Sequence[State], ended: bool, now: str) -> None:
        if len(marks) > len(self._source.files):
            names = ", ".join(mark["name"] for mark in marks[-3:])
            raise InputError(f"source has fewer files: the run read {len(marks)} ({names}), now it is {now}; {ADVICE}")
        for mark, name in zip(marks, self._source.files, strict=False):
            check_file(name, mark, ended and mark is marks[-1])
        if marks:
            self._reached = self._source.files[len(marks) - 1]


def _without(parts: Sequence[Block], skip: int) -> list[Block]:
    kept = []
    for part in parts:
        if part.rows > skip:
            kept.append(part.cut(skip, part.rows))
        skip = max(0, skip - part.rows)
    return kept
