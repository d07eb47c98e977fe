"""A nested state as bytes, and back: a JSON header and the raw bytes of the arrays, no pickle.

Every JSON object in the header has exactly one key, which says what it is (`dict`, `tuple`, `array`, `scalar`,
`float`), so no key of the user's can be mistaken for a mark of ours. Reading believes no number before it has been
held against the bytes that are there: an array's size comes from its shape, and must lie within the file.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.errors import InputError

_KINDS = "biufcUS"
_DTYPE = re.compile(r"[<|][biufcUS]\d{1,6}")
_MOST_AXES = 8
_LONGEST_AXIS = 1 << 40
_DEEPEST = 64


class Unreadable(ValueError):
    """Bytes that hold no state; the message says why."""


def pack(state: Mapping[str, Any]) -> bytes:
    """The length of the header, the header, and the arrays one after the other, C order, little endian."""
    arrays: list[NDArray[Any]] = []
    tree = _encode(state, "state", arrays)
    described = [{"dtype": array.dtype.str, "shape": list(array.shape)} for array in arrays]
    header = json.dumps({"tree": tree, "arrays": described}, allow_nan=False).encode()
    return b"".join([struct.pack("<Q", len(header)), header, *(array.tobytes() for array in arrays)])


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


def unpack(content: memoryview) -> dict[str, Any]:
    """The state that `pack` gave these bytes; `Unreadable` if they hold none."""
    if len(content) < 8:
        raise Unreadable("the header is cut short")
    (length,) = struct.unpack_from("<Q", content)
    if length > len(content) - 8:
        raise Unreadable("the header is longer than the file")
    try:
        header = json.loads(bytes(content[8 : 8 + length]))
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"the header is no JSON: {error}") from error
    if not isinstance(header, dict) or set(header) != {"tree", "arrays"} or not isinstance(header["arrays"], list):
        raise Unreadable("the header has no tree and arrays")
    arrays, start = [], 8 + length
    for described in header["arrays"]:
        array, start = _array(described, content, start)
        arrays.append(array)
    if start != len(content):
        raise Unreadable("there are bytes that belong to no array")
    state = _decode(header["tree"], arrays, _DEEPEST)
    if not isinstance(state, dict):
        raise Unreadable("the tree is no dict")
    return state


def _array(described: Any, content: memoryview, start: int) -> tuple[NDArray[Any], int]:
    if not isinstance(described, dict) or set(described) != {"dtype", "shape"}:
        raise Unreadable("an array has no dtype and shape")
    name, shape = described["dtype"], described["shape"]
    if not isinstance(name, str) or not _DTYPE.fullmatch(name):
        raise Unreadable(f"an array has dtype {str(name)[:40]!r}")
    sides = isinstance(shape, list) and len(shape) <= _MOST_AXES
    if not sides or not all(type(n) is int and 0 <= n <= _LONGEST_AXIS for n in shape):
        raise Unreadable(f"an array has shape {str(shape)[:80]}")
    try:
        dtype = np.dtype(name)
    except TypeError as error:
        raise Unreadable(f"an array has dtype {name!r}") from error
    count = math.prod(shape)
    end = start + count * dtype.itemsize
    if end > len(content):
        raise Unreadable("an array is longer than the file")
    if count == 0:
        if math.prod(max(n, 1) for n in shape) > _LONGEST_AXIS:
            raise Unreadable(f"an array has shape {shape}")
        return np.empty(shape, dtype.newbyteorder("=")), end
    try:
        flat = np.frombuffer(content, dtype=dtype, count=count, offset=start)
        return flat.reshape(shape).astype(dtype.newbyteorder("="), copy=True), end
    except ValueError as error:  # an itemsize of zero, a bool that is neither 0 nor 1
        raise Unreadable(f"an array of {name} and shape {shape} cannot be read: {error}") from error


def _decode(value: Any, arrays: list[NDArray[Any]], depth: int) -> Any:
    if depth == 0:
        raise Unreadable("the tree is too deep")
    if isinstance(value, list):
        return [_decode(item, arrays, depth - 1) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) != 1:
        raise Unreadable("an object of the tree has more than one mark")
    ((mark, content),) = value.items()
    if mark == "dict" and isinstance(content, dict):
        return {key: _decode(item, arrays, depth - 1) for key, item in content.items()}
    if mark == "tuple" and isinstance(content, list):
        return tuple(_decode(item, arrays, depth - 1) for item in content)
    if mark == "float" and isinstance(content, str) and re.fullmatch(r"[0-9a-f]{16}", content):
        return struct.unpack("<d", bytes.fromhex(content))[0]
    known = type(content) is int and 0 <= content < len(arrays)
    if mark == "array" and known:
        return arrays[content]
    if mark == "scalar" and known and arrays[content].ndim == 0:
        return arrays[content][()]
    raise Unreadable(f"the tree has an object marked {mark!r} that cannot be read")
