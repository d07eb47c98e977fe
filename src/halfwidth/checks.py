"""The checks that several rooms make at their border."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.errors import InputError


def check_count(name: str, value: int, at_least: int = 1) -> int:
    """An integer of at least so much."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < at_least:
        raise InputError.of(name, f"be an integer of at least {at_least}", value)
    return int(value)


def check_positive(name: str, value: float) -> float:
    """A finite number above zero."""
    if not (math.isfinite(value) and value > 0):
        raise InputError.of(name, "be positive and finite", value)
    return float(value)


def check_vector(name: str, values: ArrayLike, size: int) -> NDArray[np.float64]:
    """A vector of finite numbers of known length, as a copy."""
    vector = np.array(values, dtype=np.float64)
    if vector.shape != (size,) or not np.isfinite(vector).all():
        raise InputError.of(name, f"be {size} finite numbers", values)
    return vector
