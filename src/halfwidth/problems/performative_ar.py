"""The performative mean under autocorrelated noise, with a response of its own memory.

    m_{k+1} = (1 - 1/M) m_k + (1/M) (1 + epsilon theta_k),   x_k = m_k + e_k,   field theta - x,

where e is AR(psi) with unit variance. The response m forgets over about M rows (`memory`), the noise over about 1 / (1
- psi) rows. While theta is fixed x has mean 1 + epsilon theta, so theta* = 1 / (1 - epsilon) in every coordinate, the
Jacobian is (1 - epsilon) I, the long-run variance of e is (1 + psi) / (1 - psi), and

    Sigma = (1 + psi) / (1 - psi) / (1 - epsilon)^2 I.

With epsilon = 0 nothing responds, and noise that stays correlated for long looks most like feedback.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from halfwidth.checks import check_count
from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.compile import jitable
from halfwidth.problems.base import Problem, scaled_truth
from halfwidth.problems.row_losses import MEAN


@jitable
def sample_performative_ar(rng: np.random.Generator, theta: Vector, state: Vector, params: Vector, row: Vector) -> None:
    """The state holds m, then e."""
    dim = theta.shape[0]
    share, epsilon, psi = params[0], params[1], params[2]
    fresh = np.sqrt(1.0 - psi * psi)
    for j in range(dim):
        state[j] += share * (1.0 + epsilon * theta[j] - state[j])
        state[dim + j] = psi * state[dim + j] + fresh * rng.standard_normal()
        row[j] = state[j] + state[dim + j]


def performative_ar(dim: int = 2, *, epsilon: float = 0.5, psi: float = 0.98, memory: float = 1.0) -> Problem:
    """A mean that responds to the published estimate (epsilon, memory) under AR(psi) noise."""
    check_count("dim", dim)
    if not (np.isfinite(epsilon) and epsilon < 1.0):
        raise InputError.of("epsilon", "be below 1, or there is no stable point", epsilon)
    if not -1.0 < psi < 1.0:
        raise InputError.of("psi", "lie strictly between -1 and 1", psi)
    if not (np.isfinite(memory) and memory >= 1.0):
        raise InputError.of("memory", "be at least 1 row and finite", memory)
    gain = 1.0 / (1.0 - epsilon)
    return Problem(
        dim,
        **MEAN._asdict(),
        sample=sample_performative_ar,
        row_size=dim,
        params=np.array([1.0 / memory, epsilon, psi]),
        state_0=np.zeros(2 * dim),
        name="performative-ar",
        settings={"dim": dim, "epsilon": epsilon, "psi": psi, "memory": memory},
        solve=partial(scaled_truth, np.full(dim, gain), gain**2 * (1.0 + psi) / (1.0 - psi)),
    )
