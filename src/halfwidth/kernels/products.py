"""Sums of products of many rows, from inside kernels: total += left' right, where that is symmetric.

`np.dot` inside a kernel computes both triangles into a matrix of its own. Here BLAS's `dgemm`, found through SciPy,
adds to the total in place, 32 columns at a time and no further down than the diagonal, which takes three quarters of
the time of the whole matrix for hundreds of columns; where left and right are the same rows, `dsyrk` takes three
quarters of that again. Only the upper triangle of the total is right afterwards.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.kernels.arrays import Function, Vector

_WIDTH = 32


def add_symmetric(left: Vector, right: Vector, total: Vector) -> None:
    """Add left' right, a symmetric matrix, to a column-major total; its lower triangle is not kept up."""
    total += left.T @ right


def add_square(rows: Vector, sign: float, total: Vector) -> None:
    """Add sign rows' rows to a column-major total; its lower triangle is not kept up."""
    total += sign * (rows.T @ rows)


def mirrored(total: Vector) -> Vector:
    """The full symmetric matrices of which the upper triangles are given."""
    return np.where(_upper(total.shape[-1]), total, np.swapaxes(total, -1, -2))


@lru_cache(maxsize=8)
def _upper(size: int) -> NDArray[np.bool_]:
    return np.tri(size, dtype=np.bool_).T


def _add_panels(left: Vector, right: Vector, total: Vector) -> None:
    """What `add_symmetric` is in compiled code."""
    rows, size = left.shape
    letters = np.array([78, 84], dtype=np.uint8)  # N, T
    one = np.ones(1)
    # 64 bits serve a BLAS with integers of 32 bits as well: the low half comes first.
    sizes = np.array([0, 0, rows, size], dtype=np.int64)
    for first in range(0, size, _WIDTH):
        end = min(first + _WIDTH, size)
        sizes[0], sizes[1] = end, end - first
        _dgemm(
            letters.ctypes,
            letters[1:].ctypes,
            sizes.ctypes,
            sizes[1:].ctypes,
            sizes[2:].ctypes,
            one.ctypes,
            left.ctypes,
            sizes[3:].ctypes,
            right[0, first:].ctypes,
            sizes[3:].ctypes,
            one.ctypes,
            total[:, first].ctypes,
            sizes[3:].ctypes,
        )


def _add_square(rows: Vector, sign: float, total: Vector) -> None:
    """What `add_square` is in compiled code."""
    letters = np.array([85, 78], dtype=np.uint8)  # U, N
    sizes = np.array([rows.shape[1], rows.shape[0]], dtype=np.int64)
    factors = np.array([sign, 1.0])
    _dsyrk(
        letters.ctypes,
        letters[1:].ctypes,
        sizes.ctypes,
        sizes[1:].ctypes,
        factors.ctypes,
        rows.ctypes,
        sizes.ctypes,
        factors[1:].ctypes,
        total.ctypes,
        sizes.ctypes,
    )


OVERLOADS: dict[Function, Function] = {add_symmetric: _add_panels, add_square: _add_square}
"""Functions that Numba replaces by another implementation."""

_dgemm: Any = None  # BLAS's functions, once `link` has found them
_dsyrk: Any = None


@lru_cache(maxsize=1)
def link() -> None:
    """Let compiled code call BLAS for the functions above; to be done before any such code is compiled or loaded."""
    global _dgemm, _dsyrk
    from numba.extending import overload

    _dgemm, _dsyrk = _blas("dgemm", 13), _blas("dsyrk", 10)

    @overload(add_symmetric, jit_options={"nogil": True})
    def implementation(left: Vector, right: Vector, total: Vector) -> Function:
        return _add_panels

    @overload(add_square, jit_options={"nogil": True})
    def square_implementation(rows: Vector, sign: float, total: Vector) -> Function:
        return _add_square


def _blas(name: str, arguments: int) -> Any:
    """By its name, unlike by its address, a function can be called from machine code that is kept on disk."""
    from llvmlite.binding import add_symbol
    from numba import types
    from numba.extending import get_cython_function_address

    add_symbol(f"halfwidth_{name}", get_cython_function_address("scipy.linalg.cython_blas", name))
    return types.ExternalFunction(f"halfwidth_{name}", types.void(*[types.voidptr] * arguments))
