"""Whether two states are the same, to the bit; and where they first differ."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def first_difference(one: Any, other: Any, where: str = "state") -> str | None:
    """The first place at which two nested states differ, or None."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        arrays = isinstance(one, np.ndarray) and isinstance(other, np.ndarray)
        same = arrays and (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
        return None if same else where
    if isinstance(one, dict) and isinstance(other, dict):
        if one.keys() != other.keys():
            return where
        found = (first_difference(one[key], other[key], f"{where}.{key}") for key in one)
        return next((place for place in found if place is not None), None)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        if len(one) != len(other):
            return where
        found = (first_difference(a, b, f"{where}[{i}]") for i, (a, b) in enumerate(zip(one, other, strict=True)))
        return next((place for place in found if place is not None), None)
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other):
        return None
    return None if type(one) is type(other) and one == other else where
