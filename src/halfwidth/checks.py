"""Checks of arguments that several packages share."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.errors import InputError


def check_count(name: str, value: int, at_least: int = 1) -> int:
    """Return an integer that is at least `at_least`; raise an `InputError` that names the argument otherwise."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < at_least:
        raise InputError.of(name, f"be an integer of at least {at_least}", value)
    return int(value)


def check_positive(name: str, value: float) -> float:
    """Return a finite number above zero; raise an `InputError` that names the argument otherwise."""
    if not (math.isfinite(value) and value > 0):
        raise InputError.of(name, "be positive and finite", value)
    return float(value)


def check_vector(name: str, values: ArrayLike, size: int) -> NDArray[np.float64]:
    """Return a copy of `size` finite numbers; raise an `InputError` that names the argument otherwise."""
    vector = np.array(values, dtype=np.float64)
    if vector.shape != (size,) or not np.isfinite(vector).all():
        raise InputError.of(name, f"be {size} finite numbers", values)
    return vector


def check_level(level: float) -> float:
    """Return a confidence level that lies strictly between 0 and 1."""
    return _check_fraction("level", level, "0.95")


def check_alpha(alpha: float) -> float:
    """Return one minus a confidence level, as statsmodels asks for it."""
    return _check_fraction("alpha", alpha, "0.05")


def _check_fraction(name: str, value: float, example: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.floating)) or not 0.0 < value < 1.0:
        raise InputError.of(name, f"lie strictly between 0 and 1, like {example}", value)
    return float(value)
