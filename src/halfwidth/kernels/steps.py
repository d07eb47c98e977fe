"""Pieces of the steps that several loops take.

    theta_{k+1} = theta_k - min(eta_{k+1}, 1 / kappa_{k+1}) g(theta_k, x_{k+1})

with kappa an upper bound of the row's curvature: a capped step never passes the row's own minimum.
"""

from __future__ import annotations

from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.compile import jitable


@jitable
def no_cap(theta: Vector, row: Vector, params: Vector) -> float:
    """The curvature bound of a problem without one: no step is capped."""
    return 0.0


@jitable
def capped_step(step: float, kappa: float) -> float:
    """min(step, 1 / kappa)."""
    return 1.0 / kappa if step * kappa > 1.0 else step


@jitable
def note(theta: Vector, noted: Vector) -> None:
    """Copy theta; as a loop, since the compiler takes long over the checks of an assignment."""
    for j in range(theta.shape[0]):
        noted[j] = theta[j]
