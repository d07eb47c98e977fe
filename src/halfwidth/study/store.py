"""Finished replicates on disk, so that a study that was interrupted goes on where it stopped.

A replicate's numbers depend on the specification, its index and the code, on nothing else: not on the other methods
of the study, nor on how many replicates there are. So they are kept under a key of the specification without
these two, in a folder named after a hash of the package's source, and a larger study finds what a smaller one left.

    studies / <hash of the source> / <hash of the specification> / spec.json
                                                                  / 00000020-00000039-<hash>.npz
                                                                  / times.json

A span file holds some methods over consecutive replicates, as plain arrays. Files appear whole or not at all; one
that cannot be read counts as not there.

Runs that are no studies are kept as named arrays under a text that says what they depend on, code included:

    studies / arrays / <hash of the text> / key.txt
                                          / <name>.npz
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

import halfwidth
from halfwidth.streams.datasets.fetch import cache_folder
from halfwidth.study.replicate import Notes
from halfwidth.study.spec import Spec

_NO_PART_IN_STUDIES = ("adapters", "cli", "models", "paper", "plots")
_ARRAYS = tuple(field.name for field in fields(Notes) if field.name != "reason")
_UNREADABLE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile)

Replicates = dict[str, dict[int, Notes]]


@lru_cache(maxsize=1)
def code_version() -> str:
    """A hash of the package's source, without the packages that a study never uses."""
    root = Path(halfwidth.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root)
        if name.parts[0] not in _NO_PART_IN_STUDIES:
            digest.update(f"{name.as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


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
        for path in sorted(self.place(spec).glob("*.npz")):
            for name, notes in _read_span(path, int(path.name.split("-")[0]), spec.methods).items():
                found[name].update(notes)
        return found

    def save(self, spec: Spec, first: int, span: Sequence[dict[str, Notes]]) -> None:
        """Keep consecutive replicates from index `first` on."""
        methods = sorted(span[0])
        arrays: dict[str, Any] = {}
        for name in methods:
            for field in _ARRAYS:
                arrays[f"{name}/{field}"] = np.stack([getattr(notes[name], field) for notes in span])
            arrays[f"{name}/reason"] = np.array([notes[name].reason for notes in span])
        mark = hashlib.sha256(",".join(methods).encode()).hexdigest()[:8]
        place = self._open(spec)
        _write(place / f"{first:08d}-{first + len(span) - 1:08d}-{mark}.npz", lambda file: np.savez(file, **arrays))

    def load_times(self, spec: Spec) -> dict[str, float]:
        """Microseconds per row, by method, as measured when the study was first run."""
        try:
            return dict(json.loads((self.place(spec) / "times.json").read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return {}

    def save_times(self, spec: Spec, times: dict[str, float]) -> None:
        text = json.dumps(self.load_times(spec) | times, indent=1)
        _write(self._open(spec) / "times.json", lambda file: file.write(text.encode()))

    def load_arrays(self, key: str, name: str) -> dict[str, NDArray[Any]] | None:
        """The arrays kept under this key and name, or None."""
        try:
            path = self._arrays_place(key) / f"{name}.npz"
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                return dict(arrays)
        except _UNREADABLE:
            return None

    def save_arrays(self, key: str, name: str, arrays: Mapping[str, Any]) -> None:
        """Keep arrays under a key and a name."""
        place = _opened(self._arrays_place(key), "key.txt", key)
        _write(place / f"{name}.npz", lambda file: np.savez(file, **dict(arrays)))

    def _arrays_place(self, key: str) -> Path:
        return self.folder / "arrays" / hashlib.sha256(key.encode()).hexdigest()[:24]

    def _open(self, spec: Spec) -> Path:
        return _opened(self.place(spec), "spec.json", spec_text(spec))


def _opened(place: Path, name: str, text: str) -> Path:
    """The folder, with a file that says what it holds."""
    if not (place / name).exists():
        place.mkdir(parents=True, exist_ok=True)
        _write(place / name, lambda file: file.write(text.encode()))
    return place


def _read_span(path: Path, first: int, methods: Sequence[str]) -> Replicates:
    found: Replicates = {}
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            for name in methods:
                if f"{name}/reason" in arrays:
                    columns = {field: arrays[f"{name}/{field}"] for field in _ARRAYS}
                    found[name] = {
                        first + i: Notes(**{field: column[i] for field, column in columns.items()}, reason=str(reason))
                        for i, reason in enumerate(arrays[f"{name}/reason"])
                    }
    except _UNREADABLE:
        return {}
    return found


def _write(path: Path, write: Callable[[BinaryIO], Any]) -> None:
    """Write a file that appears whole or not at all."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    try:
        with os.fdopen(descriptor, "wb") as file:
            write(file)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
