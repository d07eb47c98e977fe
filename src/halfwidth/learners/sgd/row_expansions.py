"""What a loop notes about the rows of a chunk: gradients or vectors, and Hessians w u u' + c I."""

from __future__ import annotations

from typing import NamedTuple

from halfwidth.kernels.arrays import Function, Vector
from halfwidth.kernels.steps import no_cap
from halfwidth.learners.newton.expansion import Expansion
from halfwidth.learners.own_result import OwnResult, needed_hessian


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


class ExpandingLearner(OwnResult):
    """A learner whose loop notes what every row says about the equation, and keeps the running mean of the iterates."""

    _mean: Vector
    _expansion: Expansion

    def _set_expanding_loop(self, loop: Function, what: str, instead: str) -> None:
        """Prepare the loop, or refuse a problem without a Hessian."""
        problem = self.problem
        hessian = needed_hessian(problem, what, instead)
        self._mean = self._theta.copy()
        self._expansion = Expansion.empty(len(self._thetas), problem.dim)
        self._set_loops(loop, problem.gradient, problem.curvature or no_cap, hessian)

    def _start_at(self, theta: Vector) -> None:
        super()._start_at(theta)
        self._mean[:] = theta

    def _noted(self, rows: int) -> tuple[Expansion, RowExpansions]:
        """Where the loop notes so many rows: as an expansion, and as the kernel takes it."""
        part = self._expansion[:rows]
        work = RowExpansions(self._mean, part.vectors, part.directions, part.weights, part.shifts, self._grad)
        return part, work
