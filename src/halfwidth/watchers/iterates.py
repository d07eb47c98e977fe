"""The check of iterates that a watcher is given."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.rows import finite_rows


def checked_iterates(dim: int, thetas: ArrayLike) -> Vector:
    """Return iterates (m, dim) as an array of finite numbers, or say which one is not."""
    array = np.ascontiguousarray(thetas, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != dim:
        raise InputError.of("thetas", f"have shape (m, {dim})", np.shape(thetas))
    row = finite_rows(array)
    if row < len(array):
        column = int(np.argmin(np.isfinite(array[row])))
        raise InputError(
            f"thetas must be finite; row {row} of this call has {array[row, column]} in coordinate {column}. "
            "The watcher stays as it was"
        )
    return array
