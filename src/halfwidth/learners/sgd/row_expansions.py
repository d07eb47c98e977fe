"""What a loop notes about the rows of a chunk: gradients or vectors, and Hessians w u u' + c I."""

from __future__ import annotations

from typing import NamedTuple

from halfwidth.kernels.arrays import Vector


class RowExpansions(NamedTuple):
    """The rows of a chunk, each expanded at the running mean of the iterates before it or at the iterate itself."""

    mean: Vector
    """The running mean of the iterates, updated in place."""
    vectors: Vector
    """Takes the gradients, or b_k = H_k (theta_bar_{k-1} - theta_0) - g_k."""
    directions: Vector
    """Takes u_k."""
    weights: Vector
    """Takes w_k."""
    shifts: Vector
    """Takes c_k; H_k = w_k u_k u_k' + c_k I."""
    grad: Vector
    """Scratch space for a gradient."""
