"""One file that holds a nested state exactly.

| bytes        | content                                                                  |
|--------------|--------------------------------------------------------------------------|
| 12           | the magic `halfwidth-ck`                                                 |
| 4            | the version of this layout, little endian                                |
| 8            | the size of the file, little endian                                      |
| 32           | SHA-256 of everything that follows                                       |
| 8            | length of the header, little endian                                      |
| header       | UTF-8 JSON: the state, and dtype, shape of each array                    |
| the rest     | the arrays, C order, little endian, one after the other                  |

It is written atomically (`halfwidth.state.atomic`) and packed without pickle (`halfwidth.state.packing`). What a state
must hold is the business of its schema (`halfwidth.state.schema`).
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from halfwidth.errors import BrokenCheckpoint, CannotWrite, InputError
from halfwidth.state.atomic import PREVIOUS, check_place, real_place, replace_file
from halfwidth.state.packing import Unreadable, pack, unpack

State = dict[str, Any]

VERSION = 2
_MAGIC = b"halfwidth-ck"
_PREFIX = struct.Struct("<12sIQ32s")
_FIRST_VERSION = 1


def write_checkpoint(path: str | os.PathLike[str], state: Mapping[str, Any], *, keep_previous: bool = False) -> None:
    """Replace `path` by a checkpoint of `state`, atomically.

    Parameters
    ----------
    path : path
        Where to; a file there must be a checkpoint.
    state : mapping
        Nested dict (with str keys), list, tuple, str, int, float, bool, None, NumPy scalars and arrays.
    keep_previous : bool
        Whether the checkpoint before stays as `NAME.previous`.

    Raises
    ------
    CannotWrite
        The disk is full or read-only, the folder is gone, the place is no regular file. What was there stays.
    """
    _refuse_other_files(path)
    body = pack(state)
    prefix = _PREFIX.pack(_MAGIC, VERSION, _PREFIX.size + len(body), hashlib.sha256(body).digest())
    replace_file(path, prefix + body, "checkpoint", keep_previous=keep_previous)


def checkpoint_mark(path: str | os.PathLike[str]) -> bytes:
    """What tells the checkpoint at a place from any other, its size and checksum; empty if there is none."""
    try:
        with open(path, "rb", opener=_regular) as file:
            return file.read(_PREFIX.size)
    except (OSError, ValueError):
        return b""


def check_checkpoint_place(path: str | os.PathLike[str]) -> None:
    """Raise before a run what its first checkpoint would raise."""
    _refuse_other_files(path)
    check_place(path, "checkpoint")


def _refuse_other_files(path: str | os.PathLike[str]) -> None:
    """Refuse to overwrite a file that is not a checkpoint."""
    target = real_place(path, "checkpoint")
    try:
        with open(target, "rb") as file:
            start = file.read(len(_MAGIC))
    except OSError:
        return
    if start and start != _MAGIC:
        raise CannotWrite(f"checkpoint {str(path)!r} exists and is not a checkpoint; choose another place")


def read_checkpoint(path: str | os.PathLike[str]) -> State:
    """The state that `write_checkpoint` stored, bit for bit.

    Raises
    ------
    BrokenCheckpoint
        The file is cut short, altered, or of another version; the message says whether the one before it is whole.
    """
    try:
        return _read(path)
    except BrokenCheckpoint as error:
        previous = Path(f"{os.fspath(path)}{PREVIOUS}")
        try:
            _read(previous)
        except InputError:
            raise error from None
        raise BrokenCheckpoint(
            f"{error}. The checkpoint before it, {str(previous)!r}, is whole: rename it to {str(path)!r} to go on there"
        ) from error


def _read(path: str | os.PathLike[str]) -> State:
    try:
        with open(path, "rb", opener=_regular) as file:
            prefix = file.read(_PREFIX.size)
            size = os.fstat(file.fileno()).st_size
            _check_prefix(prefix, size, str(path))
            content = file.read(size - len(prefix) + 1)
    except FileNotFoundError:
        raise InputError(f"there is no file {str(path)!r}") from None
    except (OSError, ValueError) as error:
        if isinstance(error, BrokenCheckpoint):
            raise
        raise InputError(f"{str(path)!r} could not be read as a model or checkpoint: {error}") from error
    return _unpack(prefix, content, str(path))


def _regular(path: str, flags: int) -> int:
    """Open a regular file; a pipe without a writer is not waited for."""
    handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError("it is no regular file")
    return handle


def _check_prefix(prefix: bytes, size: int, name: str) -> None:
    """What can be said of a file before the rest of it is read."""
    advice = "use an older copy, or start again"
    if len(prefix) < _PREFIX.size or not prefix.startswith(_MAGIC):
        raise BrokenCheckpoint(f"{name!r} is not a halfwidth checkpoint, or it is cut short; {advice}")
    _, version, stated, _ = _PREFIX.unpack(prefix)
    if version == _FIRST_VERSION:
        raise BrokenCheckpoint(
            f"checkpoint {name!r} was written by halfwidth 0.1, whose files this release does not read: finish the run "
            "with halfwidth 0.1, or start it again"
        )
    if version != VERSION:
        raise BrokenCheckpoint(
            f"checkpoint {name!r} has layout version {version}, this release reads {VERSION}; "
            "read it with the release that wrote it"
        )
    if stated != size:
        found = f"{size} bytes instead of {stated}"
        raise BrokenCheckpoint(f"checkpoint {name!r} has {found}: it was cut short or added to; {advice}")


def _unpack(prefix: bytes, body: bytes, name: str) -> State:
    digest = _PREFIX.unpack(prefix)[3]
    if hashlib.sha256(body).digest() != digest:
        raise BrokenCheckpoint(
            f"checkpoint {name!r} was altered: its checksum is wrong; use an older copy, or start again"
        )
    try:
        return unpack(memoryview(body))
    except Unreadable as error:
        raise BrokenCheckpoint(f"checkpoint {name!r} cannot be read: {error}") from error
