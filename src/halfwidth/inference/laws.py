"""Limit laws: the distribution that the estimate, divided by its estimated standard error, converges to.

Every interval is estimate +- quantile * standard error, and the quantile comes from one of these laws. This package
is the only place of critical values: each law is computed from its definition, or tabulated with its source.

| law            | limit of (estimate - truth) / standard error                     | module           |
|----------------|------------------------------------------------------------------|------------------|
| `NormalLaw`    | Z: the covariance is taken as known                              | `laws`           |
| `StudentLaw`   | Student's t                                                      | `student_law`    |
| `BrownianLaw`  | Z / sqrt(D), D a quadratic functional of a Brownian bridge       | `brownian_law`   |
| `FunctionalLaw`| Z / norm of a Brownian bridge, tabulated                         | `scaling_laws`   |
| `MixtureLaw`   | the normal-mixture boundary, valid at all times together         | `normal_mixture` |
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.checks import check_level
from halfwidth.docstrings import share_arguments
from halfwidth.errors import InputError


@share_arguments("""
    level : float
        The confidence level, strictly between 0 and 1.
    q : int
        The number of directions.
""")
class LimitLaw(ABC):
    """The law of the studentised estimate T, in one direction and jointly in several.

    A subclass states its name and computes quantiles and tails; intervals, tests and p-values follow from these.
    """

    name: ClassVar[str]

    @property
    @abstractmethod
    def degrees_of_freedom(self) -> float:
        """Effective degrees of freedom of the variance estimate; infinite when it is taken as exact."""

    @abstractmethod
    def quantile(self, level: float) -> float:
        """Return the two-sided critical value.

        Returns
        -------
        float
            The x with P(|T| <= x) = level.
        """

    @abstractmethod
    def two_sided_tail(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the two-sided tail probability, which is the p-value of an observed T.

        Parameters
        ----------
        x : array_like
            Observed values of T; the sign does not matter.

        Returns
        -------
        ndarray
            P(|T| > |x|), elementwise.
        """

    @abstractmethod
    def joint_quantile(self, level: float, q: int) -> float:
        """Return the critical value of a joint statement about several directions.

        Returns
        -------
        float
            The x with P(T'T <= x) = level.
        """

    @abstractmethod
    def joint_tail(self, x: float, q: int) -> float:
        """Return the p-value of a Wald statistic.

        Parameters
        ----------
        x : float
            The observed statistic.

        Returns
        -------
        float
            P(T'T > x).
        """


class ExactVariance(LimitLaw):
    """A law that takes the covariance estimate as exact."""

    @property
    def degrees_of_freedom(self) -> float:
        return math.inf


@dataclass(frozen=True)
class NormalLaw(ExactVariance):
    """The standard normal law: the covariance estimate is taken as exact.

    Examples
    --------
    >>> round(NormalLaw().quantile(0.95), 4)
    1.96
    """

    name = "normal"

    def quantile(self, level: float) -> float:
        from scipy.special import ndtri

        return float(-ndtri(0.5 * (1.0 - check_level(level))))

    def two_sided_tail(self, x: ArrayLike) -> NDArray[np.float64]:
        from scipy.special import erfc

        return np.asarray(erfc(np.abs(x) / math.sqrt(2.0)), dtype=np.float64)

    def joint_quantile(self, level: float, q: int) -> float:
        from scipy.special import gammainccinv

        return float(2.0 * gammainccinv(0.5 * q, 1.0 - check_level(level)))

    def joint_tail(self, x: float, q: int) -> float:
        from scipy.special import gammaincc

        return float(gammaincc(0.5 * q, 0.5 * x))


class SingleDirectionLaw(LimitLaw):
    """A law that is known in one direction only: joint statements about several are refused."""

    def joint_quantile(self, level: float, q: int) -> float:
        self._check_single(q)
        return self.quantile(level) ** 2

    def joint_tail(self, x: float, q: int) -> float:
        self._check_single(q)
        return float(self.two_sided_tail(math.sqrt(max(x, 0.0))))

    def _check_single(self, q: int) -> None:
        if q != 1:
            raise InputError(f"the {self.name} law covers one direction at a time; {q} were asked for jointly")
