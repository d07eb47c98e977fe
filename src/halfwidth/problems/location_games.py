"""Prices and games in which the mean of the data is linear in the deployed parameter: `pricing`, `multi-player-game`.

    m_{k+1} = (1 - rho) m_k + rho (mu + M theta_k),   x_k = m_k + s N(0, I),   field kappa theta - x.

While theta is fixed, x has mean mu + M theta, so the mean field is (kappa I - M) theta - mu: the performatively stable
point is theta* = (kappa I - M)^-1 mu, the Jacobian kappa I - M, and Sigma = s^2 (kappa I - M)^-1 (kappa I - M)^-T.

- `pricing`: theta are the prices of several products, x their demands, which follow prices with inertia; B = -M holds
  the sensitivities, the own ones on the diagonal. The seller maximises theta'x - kappa |theta|^2 / 2 as if demand did
  not respond. Whoever knows the response charges (kappa I + B + B')^-1 mu, the performative optimum.
- `multi-player-game` (A. Narang, E. Faulkner, D. Drusvyatskiy, M. Fazel and L. Ratliff, JMLR 24, 2023): player i
  chooses theta_i and minimises theta_i^2 / 2 - theta_i x_i; M couples the players. Players who know their own
  response play the Nash equilibrium (I - M - diag M)^-1 mu, kept as the optimum.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.checks import check_count, check_positive
from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.compile import jitable
from halfwidth.problems.base import Problem, Truth


@jitable
def sample_location(rng: np.random.Generator, theta: Vector, state: Vector, params: Vector, row: Vector) -> None:
    """`params` is (kappa, rho, s), mu and M by rows; the state is m."""
    dim = theta.shape[0]
    for i in range(dim):
        mean = params[3 + i]
        for j in range(dim):
            mean += params[3 + dim + i * dim + j] * theta[j]
        state[i] += params[1] * (mean - state[i])
        row[i] = state[i] + params[2] * rng.standard_normal()


@jitable
def location_field(theta: Vector, row: Vector, params: Vector, grad: Vector) -> None:
    """Kappa theta - x."""
    for j in range(theta.shape[0]):
        grad[j] = params[0] * theta[j] - row[j]


@jitable
def location_curvature(theta: Vector, row: Vector, params: Vector) -> float:
    """Kappa."""
    return float(params[0])


@jitable
def location_hessian(theta: Vector, row: Vector, params: Vector, direction: Vector) -> tuple[float, float]:
    """Kappa I."""
    direction[:] = 0.0
    return 0.0, params[0]


def _location_problem(
    name: str, kappa: float, rho: float, noise: float, mu: Vector, M: Vector, own: Vector, settings: dict[str, object]
) -> Problem:
    """The problem with the map mu + M theta; `own` is what knowing the response takes from the Jacobian."""
    if not 0.0 < rho <= 1.0:
        raise InputError.of("rho", "satisfy 0 < rho <= 1", rho)
    check_positive("noise", noise)
    dim = mu.size
    jacobian = kappa * np.eye(dim) - M
    if not (np.linalg.eigvals(jacobian).real > 1e-10).all():
        raise InputError(
            f"the mean field of {name!r} is not stable: an eigenvalue of its Jacobian has no positive real part"
        )
    inverse = np.linalg.inv(jacobian)
    optimum = np.asarray(np.linalg.solve(jacobian - own, mu), dtype=np.float64)
    return Problem(
        dim,
        location_field,
        sample_location,
        location_curvature,
        location_hessian,
        row_size=dim,
        params=np.concatenate([[kappa, rho, noise], mu, M.ravel()]),
        state_0=np.zeros(dim),
        name=name,
        settings={"dim": dim, **settings},
        solve=partial(Truth, inverse @ mu, noise**2 * inverse @ inverse.T, optimum),
    )


def pricing(
    dim: int = 3, *, cost: float = 1.0, sensitivity: float = 1.5, cross: float = 0.3, rho: float = 0.1,
    noise: float = 1.0,
) -> Problem:  # fmt: skip
    """Prices of several products whose demands respond, with inertia (rho), to all of them."""
    check_count("dim", dim)
    for name, value in (("cost", cost), ("sensitivity", sensitivity)):
        check_positive(name, value)
    B = np.full((dim, dim), -cross / max(dim - 1, 1))
    B[np.diag_indices(dim)] = sensitivity
    mu = np.linspace(4.0, 6.0, dim)
    settings: dict[str, object] = {"cost": cost, "sensitivity": sensitivity, "cross": cross, "rho": rho, "noise": noise}
    return _location_problem("pricing", cost, rho, noise, mu, -B, -B.T, settings)


def multi_player_game(
    dim: int = 4, *, own: float = 0.3, coupling: float = 0.8, rho: float = 1.0, noise: float = 1.0,
    maps: ArrayLike | None = None,
) -> Problem:  # fmt: skip
    """Players whose data respond to their own choice (own) and to their neighbours' (coupling), or by given `maps`."""
    check_count("dim", dim, at_least=2)
    if maps is None:
        M = own * np.eye(dim)
        for i in range(dim):
            M[i, (i + 1) % dim] += coupling
            M[i, (i - 1) % dim] -= 0.5 * coupling
    else:
        M = np.array(maps, dtype=np.float64)
        if M.shape != (dim, dim) or not np.isfinite(M).all():
            raise InputError.of("maps", f"be finite, of shape ({dim}, {dim})", M.shape)
    mu = np.linspace(1.0, 2.0, dim)
    settings: dict[str, object] = {"own": own, "coupling": coupling, "rho": rho, "noise": noise}
    return _location_problem("multi-player-game", 1.0, rho, noise, mu, M, np.diag(np.diag(M)), settings)
