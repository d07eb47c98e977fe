"""Parts of the states of watchers: arrays, and the states of other watchers inside a flat one."""

from __future__ import annotations

from typing import Any

import numpy as np

from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector

State = dict[str, Any]


def check_array(state: State, name: str, shape: tuple[int, ...]) -> Vector:
    """A copy of an array of a state, which must have the shape that its watcher expects."""
    value = np.array(state.get(name), dtype=np.float64)
    if value.shape != shape:
        raise InputError.of(f"state[{name!r}]", f"have shape {shape}", value.shape)
    return value


def folded(state: State, *parts: str) -> State:
    """A flat state with its parts as states of their own, as their schemas have them."""
    starts = tuple(f"{part}." for part in parts)
    own = {key: value for key, value in state.items() if not str(key).startswith(starts)}
    return own | {part: unnested(part, state) for part in parts}


def nested(name: str, state: State) -> State:
    """A watcher's state as part of another's, which stays flat."""
    return {f"{name}.{key}": value for key, value in state.items()}


def unnested(name: str, state: State) -> State:
    """The part that `nested` put there."""
    start = f"{name}."
    return {str(key).removeprefix(start): value for key, value in state.items() if str(key).startswith(start)}
