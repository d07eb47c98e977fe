"""Types of the arguments of kernels and of the functions that kernels call.

Numba compiles for the types it is called with and ignores annotations; they are for people and for mypy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
"""A vector, or any other array of floats; its shape is said where it is used."""
Indices = NDArray[np.int64]
Function = Callable[..., Any]
"""A sampler, gradient, curvature, Hessian or loss, as `halfwidth.problems.Problem` describes them."""
