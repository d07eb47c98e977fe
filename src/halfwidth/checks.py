"""Checks of arguments that several packages share."""

from __future__ import annotations

import math
from reprlib import repr as shortened

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.errors import InputError


def check_unmasked(name: str, values: object) -> None:
    """Raise an `InputError` where values of a masked array, or of a list of them, are masked: NumPy drops the mask."""
    parts = values if isinstance(values, (list, tuple)) else (values,)
    masked = sum([np.count_nonzero(part.mask) for part in parts if isinstance(part, np.ma.MaskedArray)])
    if masked:
        raise InputError(f"{name} must have no masked values: drop or fill them first; got {masked:,} of them")


_NOT_REAL = (np.complexfloating, np.datetime64, np.timedelta64)
"""Elements of an array of objects that NumPy would turn into real numbers."""


def check_real(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return real numbers as float64, not copied where they are; everything else raises an `InputError`.

    No number may get lost on the way: not a mask, not an imaginary part, and no date becomes a count of days.
    """
    check_unmasked(name, values)
    try:
        array = np.asarray(values)
        losing = array.dtype == object and any(isinstance(one, _NOT_REAL) for one in array.flat)
        if array.dtype.kind not in "cmM" and not losing:
            return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:  # of arrays of other packages too
        raise InputError(f"{name} must be an array of real numbers ({error}); got {shortened(values)}") from error
    raise InputError(f"{name} must be an array of real numbers; got {shortened(values)} of type {array.dtype}")


def check_seed(seed: int | np.random.SeedSequence | np.random.Generator) -> np.random.Generator:
    """Return the generator of a seed; raise an `InputError` where NumPy takes it for none."""
    rule = "be an integer of at least 0, a SeedSequence or a Generator"
    if isinstance(seed, np.random.RandomState):  # NumPy makes a generator of it, from which no others can be drawn
        raise InputError.of("seed", rule, seed)
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise InputError.of("seed", rule, seed) from error


def check_count(name: str, value: int, at_least: int = 1) -> int:
    """Return an integer that is at least `at_least`; raise an `InputError` that names the argument otherwise."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < at_least:
        raise InputError.of(name, f"be an integer of at least {at_least}", value)
    return int(value)


def check_bool(name: str, value: object) -> bool:
    """Return a truth value; raise an `InputError` that names the argument where it is another one."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError.of(name, "be True or False", value)
    return bool(value)


def check_positive(name: str, value: float) -> float:
    """Return a finite number above zero; raise an `InputError` that names the argument otherwise."""
    if not (math.isfinite(value) and value > 0):
        raise InputError.of(name, "be positive and finite", value)
    return float(value)


def check_vector(name: str, values: ArrayLike, size: int) -> NDArray[np.float64]:
    """Return a copy of `size` finite numbers; raise an `InputError` that names the argument otherwise."""
    vector = check_real(name, values).copy()
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
