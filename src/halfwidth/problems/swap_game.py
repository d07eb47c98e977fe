"""The swap game: two players whose data respond to each other's choice.

    x = rho (theta_2, theta_1) + N(0, I_2),   gradient theta - x.

With P the swap, the mean field is (I - rho P) theta: theta* = 0, the Jacobian is I - rho P, S = I, and Sigma = (I -
rho P)^-1 (I - rho P)^-T. The static Hessian is I. Near rho = 1 the direction (1, 1) is pulled back only with strength
1 - rho. The start is (1, 1), not the truth. After J. Cutler, M. Diaz and D. Drusvyatskiy, *Stochastic approximation
with decision-dependent distributions: asymptotic normality and optimality* (JMLR 2024).
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.random import Generator

from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.compile import jitable
from halfwidth.problems.base import Problem, Sampler, Truth
from halfwidth.problems.row_losses import MEAN


@jitable
def sample_swap_game(rng: Generator, theta: Vector, state: Vector, params: Vector, row: Vector) -> None:
    """Draw x around rho times the swapped theta."""
    row[0] = params[0] * theta[1] + rng.standard_normal()
    row[1] = params[0] * theta[0] + rng.standard_normal()


def swap_game(*, rho: float = 0.5) -> Problem:
    """Two players whose data respond to each other's choice (rho)."""
    if not -1.0 < rho < 1.0:
        raise InputError.of("rho", "lie strictly between -1 and 1, or the game has no stable point", rho)
    inverse = np.linalg.inv(np.array([[1.0, -rho], [-rho, 1.0]]))
    return two_player_game("swap-game", sample_swap_game, {"rho": rho}, inverse @ inverse.T)


def two_player_game(name: str, sample: Sampler, settings: dict[str, float], sigma: Vector) -> Problem:
    """A game of two players with the gradient theta - x, equilibrium 0 and start (1, 1); the sampler reads settings."""
    return Problem(
        2,
        **MEAN._asdict(),
        sample=sample,
        row_size=2,
        params=list(settings.values()),
        theta_0=np.ones(2),
        name=name,
        settings=settings,
        solve=partial(Truth, np.zeros(2), sigma),
    )
