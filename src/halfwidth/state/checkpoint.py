"""One file that holds a nested state exactly: a JSON header and the raw bytes of its arrays, no pickle.

| bytes        | content                                                                  |
|--------------|--------------------------------------------------------------------------|
| 12           | the magic `halfwidth-ck`                                                 |
| 4            | the version of this layout, little endian                                |
| 32           | SHA-256 of everything that follows                                       |
| 8            | length of the header, little endian                                      |
| header       | UTF-8 JSON: the state, and dtype, shape of each array                    |
| the rest     | the arrays, C order, little endian, one after the other                  |

The file is written next to its final place, flushed to disk and then renamed, so a reader sees the old state or
the new one and never half of either. Every JSON object in the header has exactly one key, which says what it is
(`dict`, `tuple`, `array`, `scalar`, `float`), so no key of the user's can be mistaken for a mark of ours.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.errors import BrokenCheckpoint, InputError

State = dict[str, Any]

VERSION = 1
_MAGIC = b"halfwidth-ck"
_PREFIX = struct.Struct("<12sI32sQ")
_UNHASHED = 12 + 4 + 32
_KINDS = "biufcUS"


def write_checkpoint(path: str | os.PathLike[str], state: Mapping[str, Any]) -> None:
    """Replace `path` by a checkpoint of `state`, atomically.

    `state` nests dict (with str keys), list, tuple, str, int, float, bool, None, NumPy scalars and arrays.
    """
    target = Path(path)
    _refuse_other_files(target)
    content = _pack(state)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise InputError(f"checkpoint {str(path)!r} could not be written: {error}; choose another place") from error
    _sync_folder(target.parent)


def _refuse_other_files(target: Path) -> None:
    """A checkpoint replaces checkpoints only; a slip of the hand must not cost a data file."""
    if not target.is_file():
        return
    with open(target, "rb") as file:
        start = file.read(len(_MAGIC))
    if start and start != _MAGIC:
        raise InputError(f"checkpoint {str(target)!r} exists and is not a checkpoint; choose another place")


def read_checkpoint(path: str | os.PathLike[str]) -> State:
    """The state that `write_checkpoint` stored, bit for bit."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(
            f"checkpoint {str(path)!r} could not be read: {error}; start without resuming to make one"
        ) from error
    return _unpack(content, str(path))


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":  # folders cannot be opened there; the rename is all one can do
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _pack(state: Mapping[str, Any]) -> bytes:
    arrays: list[NDArray[Any]] = []
    tree = _encode(state, "state", arrays)
    described = [{"dtype": array.dtype.str, "shape": list(array.shape)} for array in arrays]
    header = json.dumps({"tree": tree, "arrays": described}, allow_nan=False).encode()
    body = b"".join([struct.pack("<Q", len(header)), header, *(array.tobytes() for array in arrays)])
    return _MAGIC + struct.pack("<I", VERSION) + hashlib.sha256(body).digest() + body


def _encode(value: Any, where: str, arrays: list[NDArray[Any]]) -> Any:
    """The JSON form of a value; arrays and NumPy scalars go to `arrays`."""
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        if array.dtype.kind not in _KINDS:
            raise InputError.of(where, "be an array of numbers, booleans or strings", array.dtype)
        # A plain little-endian layout, so that a checkpoint moves between machines.
        arrays.append(array.astype(array.dtype.newbyteorder("<"), order="C", copy=False))
        return {"array" if isinstance(value, np.ndarray) else "scalar": len(arrays) - 1}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": struct.pack("<d", value).hex()}
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise InputError.of(where, "have strings as keys", list(value))
        return {"dict": {key: _encode(item, f"{where}[{key!r}]", arrays) for key, item in value.items()}}
    if isinstance(value, (list, tuple)):
        items = [_encode(item, f"{where}[{i}]", arrays) for i, item in enumerate(value)]
        return items if isinstance(value, list) else {"tuple": items}
    raise InputError.of(where, "be plain data (numbers, text, lists, dicts, arrays)", type(value).__name__)


def _unpack(content: bytes, name: str) -> State:
    advice = "use an older copy, or start again without resuming"
    if len(content) < _PREFIX.size or not content.startswith(_MAGIC):
        raise BrokenCheckpoint(f"{name!r} is not a halfwidth checkpoint, or it is cut short; {advice}")
    _, version, digest, length = _PREFIX.unpack_from(content)
    if version != VERSION:
        raise BrokenCheckpoint(
            f"checkpoint {name!r} has layout version {version}, this release reads {VERSION}; "
            "read it with the release that wrote it"
        )
    if hashlib.sha256(memoryview(content)[_UNHASHED:]).digest() != digest:
        raise BrokenCheckpoint(f"checkpoint {name!r} was cut short or altered: its checksum is wrong; {advice}")
    start = _PREFIX.size + length
    header = json.loads(content[_PREFIX.size : start])
    arrays: list[NDArray[Any]] = []
    for described in header["arrays"]:
        dtype = np.dtype(described["dtype"])
        count = math.prod(described["shape"])
        flat = np.frombuffer(content, dtype=dtype, count=count, offset=start)
        arrays.append(flat.reshape(described["shape"]).astype(dtype.newbyteorder("="), copy=True))
        start += count * dtype.itemsize
    state: State = _decode(header["tree"], arrays)
    return state


def _decode(value: Any, arrays: list[NDArray[Any]]) -> Any:
    if isinstance(value, list):
        return [_decode(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    ((mark, content),) = value.items()
    if mark == "dict":
        return {key: _decode(item, arrays) for key, item in content.items()}
    if mark == "tuple":
        return tuple(_decode(item, arrays) for item in content)
    if mark == "float":
        return struct.unpack("<d", bytes.fromhex(content))[0]
    return arrays[content] if mark == "array" else arrays[content][()]
