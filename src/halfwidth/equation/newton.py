"""Damped Newton steps on a convex function of which the gradient and the Hessian are known.

    s = H(theta)^-1 g(theta),   theta <- theta - t s,

with t halved from 1 on until s'g(theta - t s) >= -s'g(theta) / 2, that is until the step does not go far past the
minimum along s; a gradient that is not finite counts as far past. Needs no value of the function, so that anyone's
gradients will do. It stops when the squared decrement s'g has fallen to the tolerance.

A field g without a loss has no minimum and no decrement. Its root is approached by the same steps, with t halved until
they shrink what is left, |H(theta)^-1 g(theta - t s)| <= (1 - t/2) |s| in a metric that is given: the natural
monotonicity test (P. Deuflhard, *Newton methods for nonlinear problems*, 2004).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from halfwidth.equation.linear_algebra import solve_spd
from halfwidth.kernels.arrays import Vector

MOST_STEPS = 50
_MOST_HALVINGS = 60


class Minimum(NamedTuple):
    """Where the steps ended, the Hessian there, the last decrement, and whether it fell to the tolerance."""

    theta: Vector
    hessian: Vector
    decrement: float
    converged: bool


def damped_newton(
    gradient: Callable[[Vector], Vector],
    hessian: Callable[[Vector], Vector],
    start: Vector,
    tolerance: float,
    *,
    relative: bool = False,
    most_steps: int = MOST_STEPS,
) -> Minimum:
    """Minimise from `start` on.

    Parameters
    ----------
    gradient, hessian : callable
        Of theta. The Hessian is asked for at the last theta of which the gradient was.
    start : ndarray
        Where to begin.
    tolerance : float
        Largest squared decrement at the end; a share of the largest one seen, if `relative`.
    most_steps : int
        After so many steps it gives up.
    """
    theta, largest = start, 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        g, H = gradient(theta), hessian(theta)
        for _ in range(most_steps):
            step = solve_spd(H, g)
            decrement = float(g @ step)
            largest = max(largest, decrement)
            if not decrement > (tolerance * largest if relative else tolerance):
                return Minimum(theta, H, decrement, bool(np.isfinite(decrement)))
            t = 1.0
            for _ in range(_MOST_HALVINGS):
                trial = theta - t * step
                new = gradient(trial)
                if np.isfinite(new).all() and step @ new >= -0.5 * decrement:
                    break
                t *= 0.5
            if np.array_equal(trial, theta):  # rounding ends the search before the tolerance does
                return Minimum(theta, H, decrement, True)
            theta, g = trial, new
            del H  # a large one is not kept while the next is made
            H = hessian(theta)
    return Minimum(theta, H, decrement, False)


def newton_root(
    field: Callable[[Vector], Vector],
    jacobian: Callable[[Vector], Vector],
    start: Vector,
    tolerance: float,
    metric: Vector,
) -> Vector:
    """A root of any field near `start`, as far as damped Newton steps come.

    Parameters
    ----------
    field, jacobian : callable
        Of theta; the Jacobian need not be symmetric.
    start : ndarray
        Where to begin.
    tolerance : float
        Largest squared step at the end, as a share of the largest one seen.
    metric : ndarray of shape (d,)
        Positive weights of the coordinates in the length of a step.

    Returns
    -------
    ndarray
        Where the steps ended.
    """
    theta, largest = start, 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        g = field(theta)
        for _ in range(MOST_STEPS):
            H = jacobian(theta)
            step = np.linalg.lstsq(H, g, rcond=None)[0]
            size = float(metric @ np.square(step))
            largest = max(largest, size)
            if not size > tolerance * largest:
                break
            t, shrinks = 1.0, False
            while t > 1e-6 and not shrinks:
                new = field(theta - t * step)
                left = np.linalg.lstsq(H, new, rcond=None)[0] if np.isfinite(new).all() else np.full_like(step, np.inf)
                shrinks = bool(metric @ np.square(left) <= (1.0 - 0.5 * t) ** 2 * size)
                t = t if shrinks else 0.5 * t
            if not shrinks:
                break
            theta, g = theta - t * step, new
    return theta
