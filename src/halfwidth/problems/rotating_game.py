"""The rotating game: two players, one of whom chases what the other flees.

    x = s (theta_2, -theta_1) + N(0, I_2),   field theta - x.

With R the rotation (theta_1, theta_2) -> (theta_2, -theta_1), the mean field is (I - s R) theta: theta* = 0, the
Jacobian I - s R has eigenvalues 1 +- i s, S = I, and Sigma = (I - s R)^-1 (I - s R)^-T = I / (1 + s^2). The static
Hessian is I, so nothing in it warns that steps above 2 / (1 + s^2) diverge. The start is (1, 1).
"""

from __future__ import annotations

import numpy as np

from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.compile import jitable
from halfwidth.problems.base import Problem
from halfwidth.problems.swap_game import two_player_game


@jitable
def sample_rotating_game(rng: np.random.Generator, theta: Vector, state: Vector, params: Vector, row: Vector) -> None:
    """Draw x around the rotated theta."""
    row[0] = params[0] * theta[1] + rng.standard_normal()
    row[1] = -params[0] * theta[0] + rng.standard_normal()


def rotating_game(*, strength: float = 2.0) -> Problem:
    """Two players whose data rotate with each other's choice (strength)."""
    if not np.isfinite(strength):
        raise InputError.of("strength", "be finite", strength)
    return two_player_game(
        "rotating-game", sample_rotating_game, {"strength": strength}, np.eye(2) / (1.0 + strength**2)
    )
