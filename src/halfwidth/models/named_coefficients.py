"""Coefficients by name: estimates, standard errors, tests and bounds, as pandas objects where that is possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.docstrings import ALPHA, share_arguments
from halfwidth.errors import HalfwidthError
from halfwidth.inference import Diagnostics, Result, WaldTest
from halfwidth.inference.contrasts import ContrastTest, as_hypothesis, t_test
from halfwidth.inference.statements import FIRST_LOOK
from halfwidth.kernels.arrays import Vector
from halfwidth.models.term_tests import TermTests


def _by_name(attribute: str, text: str) -> property:
    """A property: an array of the core, as a Series where the names are the user's."""

    def values(self: NamedCoefficients) -> Any:
        return self._series(getattr(self.core, attribute))

    return property(values, doc=text)


@share_arguments(ALPHA)
@dataclass(frozen=True)
class NamedCoefficients:
    """The coefficients of a result with their names.

    Parameters
    ----------
    core : Result
        Estimate, covariance and limit law.
    names : tuple of str
        The names of the coefficients.
    named : bool
        Whether the names are the user's, so that pandas objects carry them.
    """

    core: Result
    names: tuple[str, ...]
    named: bool

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.core.n

    nobs = n

    @property
    def status(self) -> str:
        """``"ok"``, or the name of the first warning about the run.

        `diagnostics` has all of them, and `coefficient_status` those about single coefficients.
        """
        return self.core.status

    @property
    def diagnostics(self) -> Diagnostics:
        """Facts about the run, and its warnings."""
        return self.core.diagnostics

    @property
    def df_resid(self) -> float:
        """Degrees of freedom of the t quantile: the median, where every coefficient has its own."""
        return self.core.law.degrees_of_freedom

    @property
    def df(self) -> Any:
        """Degrees of freedom of every coefficient."""
        return self._series(self.core.degrees_of_freedom(np.eye(len(self.names))))

    @property
    def coefficient_status(self) -> tuple[str, ...]:
        """``"ok"``, or the name of the first warning about each coefficient."""
        return self.core.coefficient_status

    @property
    def coefficient_flags(self) -> tuple[tuple[str, ...], ...]:
        """The names of all warnings about each coefficient."""
        return self.diagnostics.coefficient_flags or ((),) * len(self.names)

    params = _by_name("params", "The coefficients.")
    bse = _by_name("bse", "Their standard errors.")
    tvalues = _by_name("tvalues", "The coefficients over their standard errors.")
    pvalues = _by_name("pvalues", "Two-sided p-values of the hypotheses that a coefficient is zero.")

    def conf_int(self, alpha: float = 0.05, *, simultaneous: bool = False) -> Any:
        """Return the bounds of every coefficient.

        Parameters
        ----------
        simultaneous : bool, default False
            Whether the bounds contain all coefficients at once with that probability, rather than each by itself.

        Returns
        -------
        DataFrame or ndarray of shape (d, 2)
            Lower and upper bounds, in columns 0 and 1.
        """
        return self._frame(self.core.conf_int(alpha, simultaneous=simultaneous), [0, 1])

    def conf_seq(self, alpha: float = 0.05, *, tightest: int = FIRST_LOOK) -> Any:
        """Return bounds that hold at all rows together, safe to look at after every chunk.

        Parameters
        ----------
        tightest : int, default 10_000
            The number of rows at which the bounds are tightest.

        Returns
        -------
        DataFrame or ndarray of shape (d, 2)
            Lower and upper bounds, in columns 0 and 1.
        """
        return self._frame(self.core.conf_seq(alpha, tightest=tightest), [0, 1])

    def cov_params(self) -> Any:
        """Return the covariance matrix of the estimate.

        Returns
        -------
        DataFrame or ndarray of shape (d, d)
            The covariance matrix.
        """
        return self._frame(self.core.cov_params(), list(self.names))

    def t_test(self, contrast: ArrayLike | str | Sequence[str], value: ArrayLike = 0.0) -> ContrastTest:
        """Test linear combinations of the coefficients, one at a time.

        Parameters
        ----------
        contrast : str, sequence of str or array_like of shape (m, d)
            Hypotheses such as ``"x = 0.5"`` or ``"x - z"``, names of coefficients or of a term, which stands for its
            coefficients, or the rows of a matrix.
        value : array_like, default 0.0
            The values under the hypotheses, for the rows of a matrix.

        Returns
        -------
        ContrastTest
            Effects, standard errors, t statistics and p-values.
        """
        return t_test(self.core, *as_hypothesis(contrast, value, self.names, terms=self._terms()))

    def wald_test(self, contrast: ArrayLike | str | Sequence[str], value: ArrayLike = 0.0) -> WaldTest:
        """Test linear combinations of the coefficients jointly.

        Parameters
        ----------
        contrast : str, sequence of str or array_like of shape (q, d)
            Hypotheses such as ``"a = b = 0"``, a term such as ``"carrier"``, which stands for all its coefficients
            being zero, several texts, or the rows of a matrix.
        value : array_like, default 0.0
            The values under the hypotheses, for the rows of a matrix.

        Returns
        -------
        WaldTest
            The statistic and its p-value.
        """
        R, r, _ = as_hypothesis(contrast, value, self.names, terms=self._terms())
        return self.core.wald_test(R, r)

    f_test = wald_test

    def wald_test_terms(self, skip_single: bool = False) -> TermTests:
        """Test every term of the formula: that all its coefficients are zero.

        Parameters
        ----------
        skip_single : bool, default False
            Whether terms with one coefficient are left out.

        Returns
        -------
        TermTests
            Its `table` has a line for each term.
        """
        tests: dict[str, WaldTest | HalfwidthError] = {}
        for term, places in self._terms().items():
            if len(places) > 1 or not skip_single:
                try:
                    tests[term] = self.core.wald_test(np.eye(len(self.names))[places])
                except HalfwidthError as error:
                    tests[term] = error
        return TermTests(tests)

    def _terms(self) -> dict[str, list[int]]:
        """The coefficients of each term."""
        return {name: [place] for place, name in enumerate(self.names)}

    def _pandas(self) -> Any:
        if not self.named:
            return None
        try:
            import pandas
        except ImportError:
            return None
        return pandas

    def _series(self, values: Vector) -> Any:
        pandas = self._pandas()
        return values if pandas is None else pandas.Series(values, index=list(self.names))

    def _frame(self, values: Vector, columns: list[Any]) -> Any:
        pandas = self._pandas()
        return values if pandas is None else pandas.DataFrame(values, index=list(self.names), columns=columns)
