"""Step sizes and truncation thresholds: plain callables.

| paper            | here                                     |
|------------------|------------------------------------------|
| eta_k = eta k^-a | `PowerStep(eta, exponent)`               |
| d_k = D k^-b     | `Threshold(scale, exponent)`             |
| K_q, a ball      | `TruncationSets(radius, growth, kind)`   |

A. Roy and K. Balasubramanian, *Online covariance estimation for SGD under Markovian sampling*, ask for 1/2 < a < 1 and
b < 3/8. Their Assumption 4 as printed would also need a + b > 1, that is b > 1/2 at a near 1/2, which contradicts
b < 3/8 and their own choice a = 0.5005, b = 0.3; the conditions of their remarks are the ones enforced here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from halfwidth.checks import check_positive
from halfwidth.errors import InputError

Schedule = Callable[[NDArray[np.int64]], NDArray[np.float64]]


def check_step_exponent(exponent: float) -> float:
    """Check the exponent of a step.

    Parameters
    ----------
    exponent : float
        Exponent a.

    Returns
    -------
    float
        The exponent, strictly between 1/2 and 1.

    Raises
    ------
    InputError
        It is not between them.
    """
    if not 0.5 < exponent < 1.0:
        raise InputError.of("step exponent a", "satisfy 1/2 < a < 1", exponent)
    return float(exponent)


@dataclass(frozen=True)
class PowerStep:
    """The step eta (k + offset)^-a at row k = 1, 2, ...

    Parameters
    ----------
    eta : float
        Size of the first step, about the inverse of a typical curvature.
    exponent : float
        Exponent a, strictly between 1/2 and 1.
    offset : float
        Rows by which the decay is delayed.

    Examples
    --------
    >>> PowerStep(2.0, 0.505)(np.array([1, 100])).round(4).tolist()
    [2.0, 0.1954]
    """

    eta: float = 0.5
    exponent: float = 0.505
    offset: float = 0.0
    within_theory: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_positive("eta", self.eta)
        check_step_exponent(self.exponent)
        if not (math.isfinite(self.offset) and self.offset >= 0):
            raise InputError.of("offset k0", "be at least 0 and finite", self.offset)

    def __call__(self, k: NDArray[np.int64]) -> NDArray[np.float64]:
        # exp and log are vectorised in NumPy, a real power is not: several times faster at equal precision.
        return np.asarray(self.eta * np.exp(-self.exponent * np.log(k + self.offset)), dtype=np.float64)


@dataclass(frozen=True)
class ConstantStep:
    """The same step at every row: for comparisons only, since its average does not converge to theta*.

    Parameters
    ----------
    eta : float
        The step.

    Examples
    --------
    >>> ConstantStep(0.1)(np.array([1, 100])).tolist()
    [0.1, 0.1]
    """

    eta: float
    within_theory: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_positive("eta", self.eta)

    def __call__(self, k: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.full(np.shape(k), self.eta)


@dataclass(frozen=True)
class Threshold:
    """The largest move D k^-b that truncated SGD lets pass at row k; before the first row it is infinite.

    Parameters
    ----------
    scale, exponent : float
        The constant D, and the exponent b, strictly between 0 and 3/8.

    Examples
    --------
    >>> Threshold()(np.array([0, 1, 100])).round(2).tolist()
    [inf, 10.0, 2.51]
    """

    scale: float = 10.0
    exponent: float = 0.3

    def __post_init__(self) -> None:
        check_positive("threshold scale D", self.scale)
        if not 0.0 < self.exponent < 0.375:
            raise InputError.of("threshold exponent b", "satisfy 0 < b < 3/8", self.exponent)

    def __call__(self, k: NDArray[np.int64]) -> NDArray[np.float64]:
        k = np.asarray(k, dtype=np.float64)
        with np.errstate(divide="ignore"):
            return np.asarray(np.where(k > 0, self.scale * k**-self.exponent, np.inf))


@dataclass(frozen=True)
class TruncationSets:
    """The balls K_q that truncated SGD must stay in after q truncations.

    Parameters
    ----------
    radius : float
        Radius of K_0.
    growth : float
        What the radius grows by at every truncation.
    kind : {"linear", "geometric"}
        Whether `growth` is added or multiplied. The paper leaves this open, and it matters: geometric growth lets later
        excursions become enormous.

    Examples
    --------
    >>> TruncationSets()(np.array([0, 1, 2])).tolist()
    [10.0, 11.0, 12.0]
    """

    radius: float = 10.0
    growth: float = 1.0
    kind: Literal["linear", "geometric"] = "linear"

    def __post_init__(self) -> None:
        check_positive("radius", self.radius)
        check_positive("growth", self.growth)
        if self.kind not in ("linear", "geometric"):
            raise InputError.of("kind", "be 'linear' or 'geometric'", self.kind)
        if self.kind == "geometric" and self.growth <= 1.0:
            raise InputError.of("growth", "exceed 1 when kind='geometric', so that the sets grow", self.growth)

    def __call__(self, q: NDArray[np.int64]) -> NDArray[np.float64]:
        if self.kind == "linear":
            return np.asarray(self.radius + self.growth * q, dtype=np.float64)
        with np.errstate(over="ignore"):
            return np.asarray(self.radius * self.growth ** np.asarray(q, dtype=np.float64))
