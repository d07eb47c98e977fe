"""A problem: a source of rows, a loss gradient, and the truth where it is known.

The functions share one convention: they write vectors into their last argument and return numbers. Only the gradient is
always needed.

    sample(rng, theta, state, params, row)     draw the next row while theta is deployed; move `state` along
    gradient(theta, row, params, grad)         the stochastic gradient of the loss at theta
    curvature(theta, row, params) -> float     an upper bound of the row's curvature, for capped steps
    hessian(theta, row, params, direction)     writes u and returns (w, c): the row's Hessian is w u u' + c I
    loss(theta, row, params) -> float          the loss itself, for learners without gradients

`numba.njit` functions run at full speed; plain Python functions work too, a hundred times slower.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.checks import check_count, check_vector
from halfwidth.errors import InputError

Vector = NDArray[np.float64]
Function = Callable[..., Any]


def _frozen(values: ArrayLike) -> Vector:
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array


@dataclass(frozen=True)
class Truth:
    """The point theta* that the learner tends to and the limit covariance Sigma of sqrt(n) (theta_bar - theta*)."""

    theta_star: Vector
    sigma: Vector

    def __post_init__(self) -> None:
        object.__setattr__(self, "theta_star", _frozen(self.theta_star))
        object.__setattr__(self, "sigma", _frozen(self.sigma))


@dataclass(frozen=True, eq=False)
class Problem:
    """What a learner learns from. Built-in ones come from `halfwidth.problem(name, ...)`.

    `row_size` is the length of a row and `state_0` where the chain starts; `params` is a vector handed to
    every function; `settings` is what a person calls the parameters; `truth` is computed when first asked for.
    """

    dim: int
    gradient: Function
    sample: Function | None = None
    curvature: Function | None = None
    hessian: Function | None = None
    loss: Function | None = None
    row_size: int = 0
    params: ArrayLike = ()
    theta_0: ArrayLike | None = None
    state_0: ArrayLike = ()
    name: str = "custom"
    settings: Mapping[str, Any] = field(default_factory=dict)
    solve: Callable[[], Truth] | None = None

    def __post_init__(self) -> None:
        check_count("dim", self.dim)
        check_count("row_size", self.row_size)
        for role in ("sample", "gradient", "curvature", "hessian", "loss"):
            function = getattr(self, role)
            if not callable(function) and (function is not None or role == "gradient"):
                raise InputError.of(role, "be a function", function)
        start = np.zeros(self.dim) if self.theta_0 is None else self.theta_0
        object.__setattr__(self, "theta_0", _frozen(check_vector("theta_0", start, self.dim)))
        for name in ("params", "state_0"):
            value = getattr(self, name)
            object.__setattr__(self, name, _frozen(check_vector(name, value, np.size(value))))

    @cached_property
    def truth(self) -> Truth:
        if self.solve is None:
            raise InputError(f"the truth of problem {self.name!r} is not known; give Problem(..., solve=...)")
        return self.solve()

    @property
    def theta_star(self) -> Vector:
        return self.truth.theta_star

    @property
    def sigma(self) -> Vector:
        """The limit covariance of sqrt(n) times the error of the average."""
        return self.truth.sigma
