"""A problem: a source of rows, a field (the gradient of a loss, or any other), and the truth where it is known.

The functions share one convention: they write arrays into their last arguments and return numbers. Only the field is
always needed; `gradient` is its name, whether or not there is a loss.

    sample(rng, theta, state, params, row)     draw the next row while theta is deployed; move `state` along
    gradient(theta, row, params, grad)         the stochastic gradient of the loss, or the field, at theta
    curvature(theta, row, params) -> float     an upper bound of the row's curvature, for capped steps
    hessian(theta, row, params, direction)     writes u and returns (w, c): the row's Hessian is w u u' + c I
    loss(theta, row, params) -> float          the loss itself, for learners without gradients

A field that is not the gradient of a loss (temporal differences, a game) has a Jacobian at fixed data that is not
symmetric. It takes the place of the Hessian, in one of two forms:

    jacobian(theta, row, params, left, right)  writes u and v and returns (w, c): the row's Jacobian is w u v' + c I
    jacobian_matrix(theta, row, params, out)   writes the row's Jacobian (d, d), out[i, j] = d field_i / d theta_j

`numba.njit` functions run at full speed; plain Python functions work too, a hundred times slower.

    doubts(result) -> ((name, advice), ...)    what speaks against a result in this world, such as a kink there
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.checks import check_count, check_real, check_vector
from halfwidth.errors import InputError
from halfwidth.inference import Result
from halfwidth.kernels.arrays import Vector

Sampler = Callable[[np.random.Generator, Vector, Vector, Vector, Vector], None]
"""sample(rng, theta, state, params, row)"""
Gradient = Callable[[Vector, Vector, Vector, Vector], None]
"""gradient(theta, row, params, grad)"""
Curvature = Callable[[Vector, Vector, Vector], float]
"""curvature(theta, row, params)"""
Hessian = Callable[[Vector, Vector, Vector, Vector], tuple[float, float]]
"""hessian(theta, row, params, direction)"""
Jacobian = Callable[[Vector, Vector, Vector, Vector, Vector], tuple[float, float]]
"""jacobian(theta, row, params, left, right)"""
JacobianMatrix = Callable[[Vector, Vector, Vector, Vector], None]
"""jacobian_matrix(theta, row, params, out)"""
Loss = Callable[[Vector, Vector, Vector], float]
"""loss(theta, row, params)"""
Doubts = Callable[[Result], Sequence[tuple[str, str]]]
"""doubts(result)"""
Derivative = Literal["hessian", "jacobian", "jacobian_matrix"]
DERIVATIVES: tuple[Derivative, ...] = ("hessian", "jacobian", "jacobian_matrix")
"""Of the field, at fixed data: a problem has one of them, or none."""


def _frozen(values: ArrayLike) -> Vector:
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array


@dataclass(frozen=True)
class Truth:
    """The exact truth of a problem.

    Parameters
    ----------
    theta_star : array_like of shape (d,)
        The point theta* that learners converge to.
    sigma : array_like of shape (d, d)
        The limit covariance Sigma of sqrt(n) (theta_bar - theta*).
    optimum : array_like of shape (d,), optional
        Where it is known, the point that is best for somebody who knows how the data respond to theta.
    """

    theta_star: Vector
    sigma: Vector
    optimum: Vector | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "theta_star", _frozen(self.theta_star))
        object.__setattr__(self, "sigma", _frozen(self.sigma))
        if self.optimum is not None:
            object.__setattr__(self, "optimum", _frozen(self.optimum))


def scaled_truth(theta_star: Vector, variance: float) -> Truth:
    """The truth of coefficients that are independent and equally uncertain; a variance of nan is not known."""
    return Truth(theta_star, variance * np.eye(len(theta_star)))


@dataclass(frozen=True, eq=False)
class Problem:
    """A source of rows and a field, such as the gradient of a loss: what a learner learns from.

    Built-in problems come from `halfwidth.problem`. The functions write arrays into their last arguments and return
    numbers; ``numba.njit`` functions run at full speed, plain Python functions work too, about a hundred times slower.

    Parameters
    ----------
    dim : int
        The number of coefficients d.
    gradient : callable
        ``gradient(theta, row, params, grad)`` writes the stochastic gradient at theta into `grad`; where there is no
        loss, the field whose mean is to vanish.
    sample : callable, optional
        ``sample(rng, theta, state, params, row)`` draws the next row while theta is deployed. It may read theta, which
        makes the data state-dependent, and keep its own memory in `state`. Without it, give rows to `consume`.
    curvature : callable, optional
        ``curvature(theta, row, params)`` returns an upper bound of the row's curvature, for capped steps.
    hessian : callable, optional
        ``hessian(theta, row, params, direction)`` writes u into `direction` and returns (w, c): the row's Hessian is
        w u u' + c I.
    loss : callable, optional
        ``loss(theta, row, params)`` returns the loss, for learners without gradients.
    row_size : int, default 0
        The length of a row; must be given.
    params : array_like, default ()
        A vector that is handed to every function.
    theta_0 : array_like of shape (d,), optional
        Where learners start; zero otherwise.
    state_0 : array_like, default ()
        The initial memory of the sampler.
    name : str, default "custom"
        The name of the problem. A saved state is taken by a problem of the same name only, so give each its own.
    settings : mapping, optional
        What tables show as the parameters of the problem.
    solve : callable, optional
        ``solve()`` returns the `Truth`; it is called when the truth is first asked for.
    jacobian : callable, optional
        ``jacobian(theta, row, params, left, right)`` writes u into `left` and v into `right` and returns (w, c): the
        row's Jacobian at fixed data is w u v' + c I. For fields that are not the gradient of a loss, in place of
        `hessian`.
    jacobian_matrix : callable, optional
        ``jacobian_matrix(theta, row, params, out)`` writes the row's Jacobian, (d, d), where it has no such form.
    doubts : callable, optional
        ``doubts(result)`` returns what speaks against a result, each a name and a text with advice: where the mean
        field has a kink, say, and no normal limit. Learners put them among the result's warnings.

    Notes
    -----
    With theta fixed, let the rows have the stationary law pi_theta and g be the gradient. Learners converge to the
    root theta* of F(theta) = E_{pi_theta} g(theta, x). The average of the iterates satisfies

        sqrt(n) (theta_bar - theta*) -> N(0, Sigma),   Sigma = A^-1 S A^-T,

    with A the derivative of F, which includes the response of pi_theta to theta, and S the long-run covariance of the
    gradients at theta*.

    Examples
    --------
    >>> import halfwidth as hw
    >>> def sample(rng, theta, state, params, row):
    ...     row[0] = params[0] + 0.5 * theta[0] + rng.standard_normal()
    >>> def gradient(theta, row, params, grad):
    ...     grad[0] = theta[0] - row[0]
    >>> prices = hw.Problem(1, gradient, sample, row_size=1, params=[3.0])
    >>> learner = hw.SGD(prices, watchers=[hw.FixedBatchMeans(1)], seed=0).run(5_000)
    >>> learner.result().interval().covers([6.0])
    array([ True])
    """

    dim: int
    gradient: Gradient
    sample: Sampler | None = None
    curvature: Curvature | None = None
    hessian: Hessian | None = None
    loss: Loss | None = None
    row_size: int = 0
    params: ArrayLike = ()
    theta_0: ArrayLike | None = None
    state_0: ArrayLike = ()
    name: str = "custom"
    settings: Mapping[str, Any] = field(default_factory=dict)
    solve: Callable[[], Truth] | None = None
    jacobian: Jacobian | None = None
    jacobian_matrix: JacobianMatrix | None = None
    doubts: Doubts | None = None

    def __post_init__(self) -> None:
        check_count("dim", self.dim)
        check_count("row_size", self.row_size)
        for role in ("sample", "gradient", "curvature", "loss", "doubts", *DERIVATIVES):
            function = getattr(self, role)
            if not callable(function) and (function is not None or role == "gradient"):
                raise InputError.of(role, "be a function", function)
        given = [role for role in DERIVATIVES if getattr(self, role) is not None]
        if len(given) > 1:
            raise InputError(f"a problem has one derivative of its field: give {' or '.join(given)}, not both")
        start = np.zeros(self.dim) if self.theta_0 is None else self.theta_0
        object.__setattr__(self, "theta_0", _frozen(check_vector("theta_0", start, self.dim)))
        for name in ("params", "state_0"):
            value = check_real(name, getattr(self, name))
            object.__setattr__(self, name, _frozen(check_vector(name, value, value.size)))

    @property
    def derivative(self) -> Derivative | None:
        """Which of `hessian`, `jacobian` and `jacobian_matrix` the problem has."""
        return next((role for role in DERIVATIVES if getattr(self, role) is not None), None)

    @cached_property
    def truth(self) -> Truth:
        """The exact truth, computed when first asked for."""
        if self.solve is None:
            raise InputError(f"the truth of problem {self.name!r} is not known; give Problem(..., solve=...)")
        return self.solve()

    @property
    def theta_star(self) -> Vector:
        """The point theta* that learners converge to."""
        return self.truth.theta_star

    @property
    def sigma(self) -> Vector:
        """The limit covariance of sqrt(n) times the error of the average.

        It is what the `covariance` of a watcher estimates.
        """
        return self.truth.sigma
