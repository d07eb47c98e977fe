"""Which files a path stands for, in which order, and how each is read.

A path is a file, a folder (all data files below it) or a glob. Several files are read in *natural* order: runs of
digits compare as numbers, so `part-2` comes before `part-10`. Folders named `key=value` (hive partitions) give columns.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from halfwidth.errors import InputError, UnknownName
from halfwidth.streams.sources.byte_stream import Stamp

_SUFFIXES_OF = {
    "csv": (".csv", ".tsv", ".tab"),
    "ndjson": (".ndjson", ".jsonl", ".json"),
    "arrow": (".arrow", ".arrows", ".ipc", ".feather"),
    "parquet": (".parquet", ".pq"),
}
FORMATS = tuple(_SUFFIXES_OF)
_SUFFIXES = {suffix: name for name, suffixes in _SUFFIXES_OF.items() for suffix in suffixes}
_COMPRESSED = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
_MAGIC = re.compile(r"[*?\[]")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class DataFile:
    """A file to read.

    Attributes
    ----------
    name : str
        Its path, as shown to the user.
    format : str
        One of `FORMATS`.
    compression : str or None
        "gzip", "zstd" or "bz2".
    stamp : Stamp or None
        What the file was when it was found; None for a pipe or a device.
    keys : Mapping
        Partition keys from the names of its folders, and their values.
    """

    name: str
    format: str
    compression: str | None = None
    stamp: Stamp | None = None
    keys: Mapping[str, str | None] = field(default_factory=dict)


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """The sort key under which part-2 comes before part-10.

    >>> sorted(["part-10.csv", "part-2.csv"], key=natural_key)
    ['part-2.csv', 'part-10.csv']
    """
    pieces = re.split(r"(\d+)", name)
    return [(0, int(piece), piece) if piece.isdecimal() else (1, 0, piece) for piece in pieces if piece]


def check_format(format: str | None) -> str | None:
    """The format, if it is a known one."""
    if format is not None and format not in FORMATS:
        raise UnknownName.among("format", format, FORMATS)
    return format


def describe(name: str, format: str | None) -> DataFile | None:
    """How to read a file, from its name unless `format` says; None when neither tells."""
    path = Path(name)
    compression = _COMPRESSED.get(path.suffix.lower())
    suffix = path.with_suffix("").suffix if compression else path.suffix
    known = format or _SUFFIXES.get(suffix.lower())
    if known is None:
        return None
    return DataFile(name, known, compression if known in ("csv", "ndjson") else None)


def find_files(source: str | os.PathLike[str], format: str | None = None) -> list[DataFile]:
    """The files that a path, folder or glob stands for, in natural order."""
    name = os.fspath(source)
    root = None
    if os.path.isdir(name):
        root = name
        found = [
            os.path.join(folder, file)
            for folder, _, files in os.walk(name)
            for file in files
            if not file.startswith((".", "_")) and describe(file, None)
        ]
        rule = f"hold at least one data file ({', '.join(sorted(_SUFFIXES))}, text also in .gz, .zst or .bz2)"
    elif os.path.exists(name) or not glob.has_magic(name):
        found = [name]
        rule = "exist"
    else:
        root = os.path.dirname(name[: _MAGIC.search(name).start()]) or "."  # type: ignore[union-attr]  # has_magic
        found = [path for path in glob.glob(name, recursive=True) if os.path.isfile(path)]
        rule = "match at least one file"
    if not found or not os.path.exists(found[0]):
        raise InputError.of("source", rule, name)
    return describe_all(sorted(found, key=natural_key), format, root)


def describe_all(names: Sequence[str], format: str | None, root: str | None = None) -> list[DataFile]:
    """Descriptions of the named files in the given order; one that does not exist or tell its format raises.

    Folders below `root` may name partition keys.
    """
    described = []
    for name in names:
        try:
            status = os.stat(name)
        except (OSError, ValueError) as error:
            raise InputError.of("source", f"exist and be readable ({error})", name) from None
        file = describe(name, format)
        if file is None:
            rule = f"end in {', '.join(sorted(_SUFFIXES))} (text also in .gz, .zst, .bz2), or come with format="
            raise InputError.of("source", rule, name)
        keys = {} if root is None else partition_keys(os.path.relpath(name, root))
        described.append(DataFile(name, file.format, file.compression, Stamp.of(status), keys))
    return described


def partition_keys(name: str) -> dict[str, str | None]:
    """The keys in the names of a file's folders.

    >>> partition_keys("sales/year=2024/shop=a%20b/part-0.parquet")
    {'year': '2024', 'shop': 'a b'}
    """
    keys: dict[str, str | None] = {}
    for folder in Path(name).parts[:-1]:
        key, equals, value = folder.partition("=")
        if key and equals and value:
            keys[unquote(key)] = None if value == _NO_VALUE else unquote(value)
    return keys
