"""What can be said with an estimate, its covariance and its law: tests, joint sets, comparisons, tables.

`Result` inherits these; they need nothing but its `interval`, its covariance and its names.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.checks import check_alpha, check_count, check_level
from halfwidth.docstrings import share_arguments
from halfwidth.errors import InputError, MissingExtra
from halfwidth.inference.comparison import Comparison, compare
from halfwidth.inference.contrasts import ContrastTest, as_hypothesis, t_test
from halfwidth.inference.diagnostics import Diagnostics
from halfwidth.inference.laws import LimitLaw
from halfwidth.inference.normal_mixture import MixtureLaw
from halfwidth.inference.pictured import Pictured, chosen_level, picture_of
from halfwidth.inference.summary import coefficient_rows, result_summary
from halfwidth.inference.tables import Summary
from halfwidth.inference.trail import Trail
from halfwidth.inference.wald import Ellipsoid, WaldTest, ellipsoid, wald_test

if TYPE_CHECKING:
    import pandas as pd

    from halfwidth.inference.result import Result
    from halfwidth.plots.result import ResultTable

FIRST_LOOK = 10_000
"""The row at which a confidence sequence is tightest, unless another is asked for."""


@share_arguments("""
    R : str, sequence of str, or array_like of shape (q, d) or (d,)
        The directions that are tested jointly, or hypotheses such as ``"a = b = 0"``.
    r : array_like, default 0.0
        The value under the hypothesis: a number, or one for each direction.
""")
class Statements(Pictured):
    """Tests, joint sets, comparisons and tables of a result."""

    params: NDArray[np.float64]
    covariance: NDArray[np.float64]
    n: int
    law: LimitLaw
    diagnostics: Diagnostics
    names: tuple[str, ...] | None

    @property
    @abstractmethod
    def bse(self) -> NDArray[np.float64]:
        """Standard errors of the coefficients."""

    @abstractmethod
    def _full_covariance(self, asked: str) -> NDArray[np.float64]: ...

    @property
    def coefficient_names(self) -> tuple[str, ...]:
        """The names of the coefficients; ``theta[0]``, ``theta[1]``, ... where there are none."""
        return self.names or tuple(f"theta[{j}]" for j in range(self.params.size))

    def t_test(self, contrast: ArrayLike | str | Sequence[str], value: ArrayLike = 0.0) -> ContrastTest:
        """Test linear combinations of the coefficients, one at a time.

        Parameters
        ----------
        contrast : str, sequence of str, or array_like of shape (m, d) or (d,)
            Hypotheses such as ``"x = 0.5"`` or ``"x - z"``, or combinations as rows.
        value : array_like, default 0.0
            What each combination is under the hypothesis; added to what a text says.

        Returns
        -------
        ContrastTest
            Estimates, standard errors, p-values, each with the degrees of freedom of its own direction.
        """
        return t_test(self._own(), *as_hypothesis(contrast, value, self.coefficient_names))

    def wald_test(self, R: ArrayLike | str | Sequence[str], r: ArrayLike = 0.0) -> WaldTest:
        """Test the hypothesis R theta = r.

        Returns
        -------
        WaldTest
            The statistic and its p-value under the joint limit law; too few degrees of freedom for so many directions
            raise `NotEnoughData`.
        """
        matrix, right, _ = as_hypothesis(R, r, self.coefficient_names, "r")
        self._own().interval(matrix)  # refuses directions of another length
        gap = matrix @ self.params - right
        return wald_test(gap, matrix @ self._full_covariance("wald_test") @ matrix.T, self.n, self._joint_law(matrix))

    def f_test(self, R: ArrayLike | str | Sequence[str], r: ArrayLike = 0.0) -> WaldTest:
        """Test the hypothesis R theta = r; the same as `wald_test`, for those who look for `fvalue`.

        Returns
        -------
        WaldTest
            With `fvalue`, `df_num` and `df_denom`.
        """
        return self.wald_test(R, r)

    def ellipsoid(self, R: ArrayLike | None = None, level: float = 0.95) -> Ellipsoid:
        """Return the joint confidence set of R theta.

        Parameters
        ----------
        R : array_like of shape (q, d), optional
            The directions; theta itself when none are given.
        level : float, default 0.95
            The joint confidence level.

        Returns
        -------
        Ellipsoid
            The confidence set.
        """
        matrix = np.eye(self.params.size) if R is None else as_hypothesis(R, 0.0, self.coefficient_names)[0]
        covariance = matrix @ self._full_covariance("ellipsoid") @ matrix.T
        return ellipsoid(matrix @ self.params, covariance, self.n, self.law, check_level(level))

    def compare(self, other: Result) -> Comparison:
        """Test that every coefficient is the same as in a result on an independent stream, as in an A/B test.

        Parameters
        ----------
        other : Result
            With the same coefficients, in any order, from rows that are independent of this result's.

        Returns
        -------
        Comparison
            The differences, this result's less the other's, with Welch's degrees of freedom, and in `joint` the test
            that there is none.
        """
        if sorted(other.coefficient_names) != sorted(self.coefficient_names):
            rule = f"have the same coefficients and reference levels, {list(self.coefficient_names)}"
            raise InputError.of("other", rule, list(other.coefficient_names))
        return compare(self._own(), other, self.coefficient_names)

    def conf_seq(self, alpha: float = 0.05, *, tightest: int = FIRST_LOOK) -> NDArray[np.float64]:
        """Return bounds that hold at all rows together: a confidence sequence, safe to look at after every chunk.

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the probability that the truth is inside at every row from the first look on.
        tightest : int, default 10_000
            The row at which the bounds are tightest; to be chosen before the first look.

        Returns
        -------
        ndarray of shape (d, 2)
            Lower and upper bounds of every coefficient by itself.
        """
        check_count("tightest", tightest)
        half = MixtureLaw(self.n, tightest).quantile(1.0 - check_alpha(alpha)) * self.bse
        return np.column_stack([self.params - half, self.params + half])

    def with_names(self, names: Sequence[str]) -> Result:
        """Return the same result with names for its coefficients, for tables and hypotheses.

        Parameters
        ----------
        names : sequence of str
            One for each coefficient.

        Returns
        -------
        Result
            Of the same class.
        """
        told = tuple(str(name) for name in names)
        if len(told) != self.params.size or len(set(told)) < len(told):
            raise InputError.of("names", f"be {self.params.size} different names", list(names))
        return replace(self._own(), names=told)

    def to_frame(self, level: float | None = None, *, alpha: float | None = None) -> pd.DataFrame:
        """Return the coefficients as a pandas frame.

        Parameters
        ----------
        level : float, default 0.95
            The confidence level of the bounds.
        alpha : float, optional
            One minus the level, in its place.

        Returns
        -------
        pandas.DataFrame
            Columns coef, std_err, t, p, ci_lower, ci_upper, df, status and flags, a line for each coefficient.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtra.named("pandas", "streams") from error
        rows = coefficient_rows(self._own(), chosen_level(level, alpha))
        return pd.DataFrame(rows).set_index("name").rename_axis(None)

    def summary(self, level: float | None = None, *, alpha: float | None = None) -> Summary:
        """Return the table of coefficients that statsmodels users know.

        Parameters
        ----------
        level : float, default 0.95
            The confidence level of the intervals in the table.
        alpha : float, optional
            One minus the level, in its place.

        Returns
        -------
        Summary
            What the standard errors rest on, the table, then notes and warnings; text that shows as HTML in a notebook.
        """
        return result_summary(self._own(), chosen_level(level, alpha))

    def _repr_html_(self) -> str:
        return self.summary().as_html()

    def _trail(self) -> Trail | None:
        """How the coefficients settled, where the result knows."""
        return None

    def _picture(self, level: float | None) -> ResultTable:
        return picture_of(self._own(), 0.95 if level is None else level)

    def _joint_law(self, directions: NDArray[np.float64]) -> LimitLaw:
        """The law of a joint test of directions (q, d)."""
        return self.law

    def _own(self) -> Result:
        from halfwidth.inference.result import Result

        assert isinstance(self, Result)
        return self
