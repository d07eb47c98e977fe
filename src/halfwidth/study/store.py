"""Finished replicates on disk, so that a study that was interrupted goes on where it stopped.

A replicate's numbers depend on the specification, its index and the code, on nothing else: not on the other methods
of the study, nor on how many replicates there are. So they are kept under a key of the specification without
these two, in a folder named after a hash of the code that studies run, and a larger study finds what a smaller one
left.

    studies / <hash of the code> / <hash of the specification> / spec.json
                                                                / 00000020-00000039-<hash>.span
                                                                / times.json

A span file holds some methods over consecutive replicates, in the layout of checkpoints: it appears whole or not at
all, and is believed only if its checksum, its key and its shapes are right. One that is not is computed again. Two
processes that run one study write the same bytes under the same names.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.errors import InputError
from halfwidth.state.atomic import replace_file
from halfwidth.state.checkpoint import read_checkpoint, write_checkpoint
from halfwidth.state.containers import ListOf, MapOf, Nested
from halfwidth.state.fields import Array, Field, State, Text, Whole
from halfwidth.state.schema import Relation, Schema, validate
from halfwidth.streams.datasets.fetch import cache_folder
from halfwidth.study.code_version import code_version
from halfwidth.study.replicate import Notes
from halfwidth.study.spec import Spec

_ARRAYS = tuple(field.name for field in fields(Notes) if field.name != "reason")
_WIDE = ("estimate", "half_width", "standard_error", "doubted")

Replicates = dict[str, dict[int, Notes]]


def _one_length(state: State) -> bool:
    return all(len(notes[name]) == state["count"] for notes in state["methods"].values() for name in notes)


_NARROW = ("replicates", "checkpoints")
_NOTES: dict[str, Field] = {
    name: Array((*_NARROW, "directions") if name in _WIDE else _NARROW, finite=False) for name in _ARRAYS
}
SPAN_SCHEMA = Schema(
    "study-span",
    1,
    {
        "key": Text(doc="the specification, without methods and replicates"),
        "first": Whole(doc="index of the first replicate"),
        "count": Whole(1, doc="how many there are"),
        "methods": MapOf(
            Nested(Schema(None, None, {**_NOTES, "reason": ListOf(Text())}, title="set of notes of a method")),
            doc="what every replicate noted, by method",
        ),
    },
    relations=(Relation("have notes of `count` replicates for every method", _one_length),),
    title="span of a study",
)
ARRAYS_SCHEMA = Schema(
    "study-arrays",
    1,
    {
        "key": Text(doc="what the arrays depend on"),
        "arrays": MapOf(Array((), "biufU", any_width=True, any_shape=True, finite=False)),
    },
    title="set of arrays",
)


def spec_text(spec: Spec) -> str:
    """What the numbers of one replicate depend on, as JSON."""
    content = {key: value for key, value in asdict(spec).items() if key not in ("methods", "replicates")}
    return json.dumps(content, sort_keys=True, indent=1, default=lambda value: np.asarray(value).tolist())


class Store:
    """A folder of studies; by default `studies` in halfwidth's folder in the user's cache."""

    def __init__(self, folder: str | Path | None = None) -> None:
        self.folder = cache_folder() / "studies" if folder is None else Path(folder)

    def place(self, spec: Spec) -> Path:
        """Where this study is kept."""
        return self.folder / code_version() / hashlib.sha256(spec_text(spec).encode()).hexdigest()[:24]

    def load(self, spec: Spec) -> Replicates:
        """The replicates that are there, by method and index."""
        found: Replicates = {name: {} for name in spec.methods}
        for path in sorted(self.place(spec).glob("*.span")):
            for name, notes in _read_span(path, spec).items():
                found[name].update(notes)
        return found

    def save(self, spec: Spec, first: int, span: Sequence[dict[str, Notes]]) -> None:
        """Keep consecutive replicates from index `first` on."""
        methods = sorted(span[0])
        state = {
            "kind": SPAN_SCHEMA.kind,
            "version": SPAN_SCHEMA.version,
            "key": spec_text(spec),
            "first": int(first),
            "count": len(span),
            "methods": {name: _stacked([notes[name] for notes in span]) for name in methods},
        }
        mark = hashlib.sha256(",".join(methods).encode()).hexdigest()[:8]
        write_checkpoint(self._open(spec) / f"{first:08d}-{first + len(span) - 1:08d}-{mark}.span", state)

    def load_times(self, spec: Spec) -> dict[str, float]:
        """Microseconds per row, by method, as measured when the study was first run."""
        try:
            known = json.loads((self.place(spec) / "times.json").read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        items = known.items() if isinstance(known, dict) else ()
        return {name: float(time) for name, time in items if isinstance(time, (int, float)) and math.isfinite(time)}

    def save_times(self, spec: Spec, times: dict[str, float]) -> None:
        text = json.dumps(self.load_times(spec) | times, indent=1)
        replace_file(self._open(spec) / "times.json", text.encode(), "study")

    def load_arrays(self, key: str, name: str) -> dict[str, NDArray[Any]] | None:
        """The arrays kept under this key and name, or None."""
        try:
            state = read_checkpoint(self._arrays_place(key) / f"{name}.span")
            validate(state, ARRAYS_SCHEMA)
        except InputError:
            return None
        return dict(state["arrays"]) if state["key"] == key else None

    def save_arrays(self, key: str, name: str, arrays: Mapping[str, Any]) -> None:
        """Keep arrays under a key and a name."""
        place = _opened(self._arrays_place(key), "key.txt", key)
        kept = {part: np.asarray(value) for part, value in arrays.items()}
        state = {"kind": ARRAYS_SCHEMA.kind, "version": ARRAYS_SCHEMA.version, "key": key, "arrays": kept}
        write_checkpoint(place / f"{name}.span", state)

    def _arrays_place(self, key: str) -> Path:
        return self.folder / "arrays" / hashlib.sha256(key.encode()).hexdigest()[:24]

    def _open(self, spec: Spec) -> Path:
        return _opened(self.place(spec), "spec.json", spec_text(spec))


def _opened(place: Path, name: str, text: str) -> Path:
    """The folder, with a file that says what it holds."""
    if not (place / name).exists():
        place.mkdir(parents=True, exist_ok=True)
        replace_file(place / name, text.encode(), "study")
    return place


def _stacked(notes: Sequence[Notes]) -> dict[str, Any]:
    arrays = {field: np.stack([np.asarray(getattr(note, field), dtype=float) for note in notes]) for field in _ARRAYS}
    return {**arrays, "reason": [str(note.reason) for note in notes]}


def _read_span(path: Path, spec: Spec) -> Replicates:
    """What a span file holds of this study; nothing if it is damaged or belongs to another one."""
    try:
        state = read_checkpoint(path)
        validate(state, SPAN_SCHEMA)
    except InputError:
        return {}
    named = f"{state['first']:08d}-{state['first'] + state['count'] - 1:08d}-"
    if state["key"] != spec_text(spec) or not path.name.startswith(named):
        return {}
    checkpoints = len(spec.checkpoints)
    found: Replicates = {}
    for name in spec.methods:
        notes = state["methods"].get(name)
        if notes is None or notes["refused"].shape[1] != checkpoints:
            continue
        found[name] = {
            state["first"] + i: Notes(**{field: notes[field][i] for field in _ARRAYS}, reason=notes["reason"][i])
            for i in range(state["count"])
        }
    return found
