"""Where the growing blocks of overlapping batch means start: a_1 = 1, a_m = floor(c m^beta).

A. Roy and K. Balasubramanian, *Online covariance estimation for SGD under Markovian sampling*, ask for
beta > 1/(1 - a) where steps fall as k^-a.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfwidth.checks import check_positive
from halfwidth.docstrings import share_arguments
from halfwidth.errors import InputError
from halfwidth.schedules.steps import check_step_exponent


@share_arguments("""
    m : int
        Number of the block, from 1.
    n : int
        Number of rows seen so far.
""")
@dataclass(frozen=True)
class BlockPlan:
    """Where the growing blocks of overlapping batch means start: a_1 = 1, then floor(c m^beta).

    Parameters
    ----------
    constant, exponent : float
        The constant c, and the exponent beta, above 1.

    Examples
    --------
    >>> BlockPlan.for_step(0.505).starts_up_to(600).tolist()
    [1, 32, 169, 541]
    """

    constant: float
    exponent: float

    def __post_init__(self) -> None:
        check_positive("block constant c", self.constant)
        check_positive("block exponent beta", self.exponent)
        if self.exponent <= 1.0:
            raise InputError.of("block exponent beta", "exceed 1, so that blocks grow", self.exponent)
        # c (m+1)^beta - c m^beta grows with m, so the first gaps decide for all of them.
        decisive = math.exp(min(-math.log(self.constant) / (self.exponent - 1.0), 7.0))
        try:
            self._check_increasing(2 + math.ceil(decisive))
        except OverflowError:
            raise InputError(
                f"block exponent beta must leave the first block starts finite; got {self.exponent!r} with constant "
                f"c={self.constant!r}: choose a smaller step exponent or block exponent"
            ) from None

    def _check_increasing(self, how_many: int) -> None:
        previous = 1
        for m in range(2, min(how_many, 1000) + 2):
            start = self.start(m)
            if start <= previous:
                raise InputError(
                    f"block starts must strictly increase; with constant c={self.constant!r} and exponent "
                    f"beta={self.exponent!r}, a_{m} = {start} comes after a_{m - 1} = {previous}: "
                    "choose a larger c"
                )
            previous = start

    @classmethod
    def for_step(cls, step_exponent: float, constant: float = 2.0, exponent: float | None = None) -> BlockPlan:
        """Plan for a step exponent a.

        Parameters
        ----------
        step_exponent : float
            Exponent a, strictly between 1/2 and 1.
        constant : float
            The constant c.
        exponent : float, optional
            Exponent beta, above 1/(1-a); 2/(1-a) by default.

        Returns
        -------
        BlockPlan
            The plan.
        """
        a = check_step_exponent(step_exponent)
        if exponent is None:
            exponent = 2.0 / (1.0 - a)
        elif not exponent > 1.0 / (1.0 - a):
            raise InputError.of(
                "block_exponent beta",
                f"exceed 1/(1-a) = {1.0 / (1.0 - a):.4g} for step exponent a={a}",
                exponent,
            )
        return cls(float(constant), float(exponent))

    def start(self, m: int) -> int:
        """First row of block m.

        Returns
        -------
        int
            Its first row.
        """
        return 1 if m == 1 else math.floor(self.constant * m**self.exponent)

    def blocks_up_to(self, n: int) -> int:
        """Number of blocks that have begun by row n.

        Returns
        -------
        int
            At least 1: the first block begins with the first row.
        """
        guess = max(1, int((max(n, 1) / self.constant) ** (1.0 / self.exponent)))
        while self.start(guess + 1) <= n:
            guess += 1
        while guess > 1 and self.start(guess) > n:
            guess -= 1
        return guess

    def starts_up_to(self, n: int) -> NDArray[np.int64]:
        """First rows of all blocks that have begun by row n.

        Returns
        -------
        ndarray of int
            Their first rows, in order.
        """
        return np.array([self.start(m) for m in range(1, self.blocks_up_to(n) + 1)], dtype=np.int64)
