"""What a stream was asked for: which columns play which part. Stored with a run, and compared when it resumes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from halfwidth.errors import InputError, UnknownName
from halfwidth.streams.design.labels import LABELS

ColumnName = str | None
"""A column of the source, or none."""
BAD_ROWS = ("error", "skip")
UNKNOWN_LEVEL = ("add", "other", "error")
# What may change between the parts of an interrupted run: how to treat rows, not what they mean.
_MAY_CHANGE = ("bad_rows", "unknown_level")


@dataclass(frozen=True)
class Options:
    """The arguments of `open_stream` that say what rows mean; None stands for the default."""

    target: ColumnName = None
    features: tuple[str, ...] | None = None
    formula: str | None = None
    weight: ColumnName = None
    offset: ColumnName = None
    group: ColumnName = None
    time: ColumnName = None
    labels: str | None = None
    classes: tuple[Any, Any] | None = None
    bad_rows: str | None = None
    unknown_level: str | None = None
    chunk_rows: int | None = None
    buffer_rows: int | None = None

    def __post_init__(self) -> None:
        for name, known in (("labels", LABELS), ("bad_rows", BAD_ROWS), ("unknown_level", UNKNOWN_LEVEL)):
            if (value := getattr(self, name)) is not None and value not in known:
                raise UnknownName.among(name, value, known)
        for name in ("chunk_rows", "buffer_rows"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise InputError.of(name, "be at least 1", value)
        if self.formula is not None and self.features is not None:
            raise InputError("give features or a formula, not both")
        if self.features is not None and (not self.features or len(set(self.features)) < len(self.features)):
            raise InputError.of("features", "name at least one column, each once", list(self.features))

    @property
    def special(self) -> list[str]:
        """The columns that are neither features nor target."""
        return [name for name in (self.weight, self.offset, self.group, self.time) if name is not None]

    def to_state(self) -> dict[str, Any]:
        return {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self).items()}

    def resumed(self, state: dict[str, Any]) -> Options:
        """These options with the gaps filled from an earlier run; a contradiction raises."""
        if self.formula is None and state["formula"] is not None:
            raise InputError(
                f"give the formula again: this run began with {state['formula']!r}, and a formula in a file is "
                "compared with yours, never evaluated"
            )
        merged: dict[str, Any] = {}
        for field in fields(self):
            now, before = getattr(self, field.name), state[field.name]
            before = tuple(before) if isinstance(before, list) else before
            if now is not None and now != before and field.name not in _MAY_CHANGE:
                raise InputError.of(field.name, f"stay {before!r} when a run is resumed", now)
            merged[field.name] = before if now is None else now
        return replace(self, **merged)


def as_tuple(value: Sequence[Any] | None) -> tuple[Any, ...] | None:
    """A list as a tuple; a text, which is a sequence too, raises."""
    if isinstance(value, str):
        raise InputError.of("features and classes", "be a list", value)
    return None if value is None else tuple(value)
