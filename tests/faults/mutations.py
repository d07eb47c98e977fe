"""Changed states: every field of a nested state, replaced by values that a damaged or hostile file could hold."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

Path = tuple[Any, ...]


def paths(value: Any, at: Path = ()) -> Iterator[Path]:
    """Every place of a nested state, the containers included."""
    if at:
        yield at
    if isinstance(value, dict):
        for key, item in value.items():
            yield from paths(item, (*at, key))
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value[:3]):
            yield from paths(item, (*at, i))


def changed(state: dict[str, Any], at: Path, new: Any) -> dict[str, Any]:
    """A copy of the state with another value at one place."""
    result = copy.deepcopy(state)
    holder: Any = result
    for key in at[:-1]:
        if isinstance(holder[key], tuple):
            holder[key] = list(holder[key])
        holder = holder[key]
    holder[at[-1]] = new
    return result


def at_place(state: Any, at: Path) -> Any:
    for key in at:
        state = state[key]
    return state


_STRANGE = (None, "x", 3.5, -1, True, [], {}, np.zeros(3), np.array(["x"]), 10**30, b"x", float("nan"))


def replacements(value: Any, rng: np.random.Generator) -> list[Any]:
    """Values to put in place of this one: of other types, out of range, and slightly wrong."""
    if isinstance(value, (bool, np.bool_)):
        return [not value, *_STRANGE]
    if isinstance(value, (int, np.integer)):
        near = [-value, value + 1, value - 1, value * 2 + 1, 0, 1]
        return [*near, 2**31, 2**62, 2**63, -(2**63), *_STRANGE]
    if isinstance(value, (float, np.floating)):
        return [-value, value * 1.5, value + 1, 0.0, 1e300, 1e-300, math.inf, -math.inf, *_STRANGE]
    if isinstance(value, str):
        return ["", value + "x", value[:-1], "__import__('os').system('true')", "\0", "y" * 10_000, *_STRANGE]
    if isinstance(value, np.ndarray):
        return _arrays(value, rng)
    if isinstance(value, dict):
        fewer = {key: item for i, (key, item) in enumerate(value.items()) if i}
        return [fewer, {**value, "extra": 1}, {}, *_STRANGE]
    if isinstance(value, (list, tuple)):
        return [list(value[:-1]), [*value, *value[-1:]], list(reversed(value)), [None], *_STRANGE]
    return [0, 1.5, "x", np.zeros(1), [1], {"a": 1}, True]


def _arrays(value: np.ndarray, rng: np.random.Generator) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # casts that lose what they are meant to lose
        return _changed_arrays(value, rng)


def _changed_arrays(value: np.ndarray, rng: np.random.Generator) -> list[Any]:
    shapes = [value[None], value.ravel(), value[..., :0], np.concatenate([value, value]), value.tolist()]
    strange = [value.astype(object), None, "x", 1.5, np.zeros((0, 10**6)), np.array(1.0)]
    if value.dtype.kind == "U":
        return [*shapes, *strange, value.astype("S10"), np.array(["x"] * len(value))]
    types = [value.astype(np.float32), value.astype(np.int32), value.astype(np.complex128), value.astype(np.uint8)]
    values = [value * 0, -value.astype(np.float64), value.astype(np.float64)]
    if value.size:
        for new in (np.nan, np.inf, 1e300, -1.0, 2.0**62):
            spoiled = value.astype(np.float64)
            spoiled.flat[int(rng.integers(value.size))] = new
            values.append(spoiled)
        nudged = value.copy()
        place = int(rng.integers(value.size))
        nudged.flat[place] = not nudged.flat[place] if value.dtype.kind == "b" else nudged.flat[place] + 1
        values += [nudged, value[::-1].copy()]
        if value.dtype.kind == "i":
            values += [np.full_like(value, 2**62), np.full_like(value, -1)]
    return [*shapes, *types, *values, *strange]


def mutants(state: dict[str, Any], how_many: int, seed: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """So many changed states, every field about equally often; two fields at once in one of eight."""
    rng = np.random.default_rng(seed)
    places = list(paths(state))
    for i in range(how_many):
        at = places[i % len(places)] if i < 4 * len(places) else places[int(rng.integers(len(places)))]
        options = replacements(at_place(state, at), rng)
        new = options[int(rng.integers(len(options)))]
        name = ".".join(map(str, at))
        mutant = changed(state, at, new)
        if rng.integers(8) == 0:
            other = places[int(rng.integers(len(places)))]
            if other[: len(at)] != at and at[: len(other)] != other:
                options = replacements(at_place(state, other), rng)
                mutant = changed(mutant, other, options[int(rng.integers(len(options)))])
                name += " and " + ".".join(map(str, other))
        yield name, mutant


def same(one: Any, other: Any) -> bool:
    """Whether two states are the same, to the bit."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        both = isinstance(one, np.ndarray) and isinstance(other, np.ndarray)
        return both and one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return bool(one == other)


def differences(one: Any, other: Any, at: str = "") -> str:
    """Where two states first differ, and how."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for key in one:
            if not same(one[key], other[key]):
                return differences(one[key], other[key], f"{at}.{key}")
    return f"{at}: {str(one)[:60]} for {str(other)[:60]}"
