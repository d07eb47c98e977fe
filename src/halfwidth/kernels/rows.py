"""The rows of a chunk inside a kernel: where they come from, and whether they are finite.

A loop asks `sample` for every row. For rows that the problem draws this is the problem's sampler; for rows that are
given it is `no_rows`, which leaves the row as it stands. Given rows are finite when a loop gets them (`non_finite`), or
the loop itself looks at each before it is learned (`with_row`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.checks import check_real
from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.compile import jitable, kernel

LARGEST = float(np.finfo(np.float64).max)
"""The largest number that is finite."""


class RowData(NamedTuple):
    """What a loop reads its rows from."""

    rows: Vector
    """The rows of the chunk, (m, row_size): given, or to be filled by the sampler."""
    state: Vector
    """The state of the problem's chain, which the sampler moves along."""
    params: Vector
    """The problem's parameters, handed to each of its functions."""


class Path(NamedTuple):
    """The part of the trajectory that a loop walks along one chunk."""

    theta: Vector
    """The current iterate, (dim,); updated in place."""
    steps: Vector
    """The step size for every row of the chunk, (m,)."""
    thetas: Vector
    """Takes the iterate after every row, (m, dim)."""
    origin: Vector
    """theta_0: totals are kept relative to it, so that a parameter near 1e8 loses no digits."""
    first: int
    """How many rows the trajectory, or the average that the loop keeps, has seen before the chunk."""


@jitable
def no_rows(rng: np.random.Generator | None, theta: Vector, state: Vector, params: Vector, row: Vector) -> None:
    """The sampler of rows that are given."""


@jitable
def finite_row(row: Vector) -> bool:
    """Whether every number of the row is finite."""
    good = True
    for j in range(row.shape[0]):
        good &= abs(row[j]) <= LARGEST  # a sum of 0 * row[j] is taken for 0 by older compilers
    return good


@jitable
def with_row(total: float, row: Vector) -> float:
    """The total plus the numbers of a row: not finite if one of them is not, or if they overflow."""
    for j in range(row.shape[0]):
        total += row[j]
    return total


@jitable
def without_row(total: float, row: Vector) -> float:
    """In the place of `with_row`, where rows need not be looked at."""
    return total


@kernel
def finite_rows(rows: Vector) -> int:
    """How many rows there are before the first that is not finite."""
    if abs(with_row(0.0, rows.reshape(rows.size))) <= LARGEST:  # the fastest way to look at all of them
        return len(rows)
    for i in range(rows.shape[0]):
        if not finite_row(rows[i]):
            return i
    return len(rows)


def shaped_rows(name: str, rows: ArrayLike, size: int) -> Vector:
    """Rows as a contiguous array of shape (m, size)."""
    array = np.ascontiguousarray(check_real(name, rows))
    if array.ndim != 2 or array.shape[1] != size:
        raise InputError.of(name, f"have shape (m, {size})", array.shape)
    return array


def non_finite(name: str, array: Vector, column_word: str, outcome: str) -> InputError | None:
    """The error that names the first row that is not finite, if there is one, and the outcome."""
    row = finite_rows(array)
    if row == len(array):
        return None
    column = int(np.argmin(np.isfinite(array[row])))
    where = f"row {row} of this call has {array[row, column]} in {column_word} {column}"
    return InputError(f"{name} must be finite; {where}. {outcome}")
