"""The result of a regression: coefficients, standard errors, tests, predictions and the table.

The vocabulary is that of statsmodels. A result is frozen and holds neither data nor model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.docstrings import ALPHA, share_arguments, share_parameters
from halfwidth.errors import InputError
from halfwidth.families import FAMILIES, Loss
from halfwidth.inference.comparison import Comparison
from halfwidth.inference.pictured import Pictured, chosen_level, picture_of
from halfwidth.inference.summary import coefficient_rows, finite, marked_names, warning_lines
from halfwidth.inference.tables import CoefficientTable, Summary
from halfwidth.kernels.arrays import Vector
from halfwidth.models.at_level import AtLevel
from halfwidth.models.basis import Basis
from halfwidth.models.class_prediction import ClassPrediction
from halfwidth.models.goodness import Goodness, Likelihood
from halfwidth.models.kept_rows import KeptRows
from halfwidth.models.named_coefficients import NamedCoefficients
from halfwidth.models.prediction import Prediction, determined, interval_errors, prediction_rows
from halfwidth.plots.result import ResultTable
from halfwidth.streams.design.specification import Specification

PREDICTORS = """
X : array_like of shape (m, p)
    The rows, without a column for the intercept. A frame is read by the names of its columns, an array by
    their order. After `halfwidth.fit` a frame may have the raw columns; an array has those of the design.
offset : array_like of shape (m,), optional
    Added to the linear predictor.
"""
JSON_SCHEMA = 2
"""Version of what `to_dict` and `halfwidth fit --json` write; 2 added df, status and flags of each coefficient."""


@share_arguments(ALPHA + PREDICTORS)
@dataclass(frozen=True)
class RegressionResult(NamedCoefficients, AtLevel, Goodness, Pictured):
    """The result of a regression; `model.inference()` returns one.

    `params`, `bse`, `tvalues`, `pvalues`, `df`, `conf_int()` and `cov_params()` are pandas objects where the columns
    have names and pandas is installed, arrays otherwise. The intercept comes first and is called ``Intercept``.

    Parameters
    ----------
    family : str
        The family of the regression.
    loss : Loss
        Its loss.
    intercept : bool
        Whether the first coefficient is an intercept.
    basis : Basis
        What the standard errors rest on.
    level : float, default 0.95
        The confidence level of tables and intervals.
    specification : Specification, optional
        How raw columns become columns of the design, after `halfwidth.fit`.
    likelihood : Likelihood, optional
        What goodness of fit rests on, where the family has a likelihood.
    kept : KeptRows, optional
        What pictures show of a sample of rows: fitted and observed values.
    classes : tuple, optional
        The labels of a classifier; the first is the one that others are compared with.

    Examples
    --------
    >>> import halfwidth as hw
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((2_000, 2))
    >>> result = hw.LinearRegression().fit(X, X @ [2.0, 0.0] + rng.standard_normal(2_000)).inference()
    >>> result.status, result.names
    ('ok', ('Intercept', 'x0', 'x1'))
    >>> bool(result.t_test("x0").pvalue[0] < 0.001)
    True
    """

    family: str
    loss: Loss
    intercept: bool
    basis: Basis
    level: float = 0.95
    specification: Specification | None = None
    likelihood: Likelihood | None = None
    kept: KeptRows | None = None
    classes: tuple[Any, ...] = ()

    @property
    def method(self) -> str:
        """The method of the standard errors."""
        return self.basis.method

    def compare(self, other: RegressionResult) -> Comparison:
        """Test that every coefficient is the same in a fit on an independent stream, as in an A/B test.

        Parameters
        ----------
        other : RegressionResult
            The result of the other stream, of the same family and with the same coefficients, reference levels and
            classes.

        Returns
        -------
        Comparison
            The differences and their tests; in `joint` that of all of them at once.
        """
        if other.family != self.family:
            raise InputError.of("other", f"be a {self.family} regression", f"a {other.family} one")
        if other.classes != self.classes:
            raise InputError.of("other", f"have the classes {list(self.classes)}", list(other.classes))
        ours, theirs = self._reference_levels(), other._reference_levels()
        if ours != theirs:
            raise InputError.of("other", f"have the reference levels {ours}: write C(column, reference=...)", theirs)
        return self.core.compare(other.core)

    def _reference_levels(self) -> dict[str, str]:
        return {} if self.specification is None else self.specification.design.reference_levels

    def _terms(self) -> dict[str, list[int]]:
        """The coefficients of each term, in all equations; the intercept is none."""
        first, width = int(self.intercept), len(self.names) // self.loss.equations
        columns = {name: [place] for place, name in enumerate(self._columns())}
        terms = columns if self.specification is None else self.specification.design.terms
        steps = range(0, len(self.names), width)
        return {term: [at + first + place for at in steps for place in places] for term, places in terms.items()}

    def odds_ratios(self, alpha: float = 0.05) -> Any:
        """Return the exponentials of the coefficients: odds ratios, or ratios of rates under a log link.

        Returns
        -------
        DataFrame or ndarray of shape (d, 3)
            The ratios with their lower and upper bounds.
        """
        if not self.loss.ratios:
            known = ", ".join(sorted(name for name, loss in FAMILIES.items() if loss.ratios))
            raise InputError(f"odds ratios exist for {known} regressions; this is a {self.family} one")
        table = np.exp(np.column_stack([self.core.params, self.core.conf_int(alpha)]))
        return self._frame(table, ["ratio", "ci_lower", "ci_upper"])

    def get_prediction(self, X: ArrayLike, offset: ArrayLike | None = None) -> Prediction | ClassPrediction:
        """Predict the mean at the rows of X, with intervals; for several classes the probability of each.

        Returns
        -------
        Prediction or ClassPrediction
            Means and standard errors; its `conf_int` gives the intervals. A row that rests on a coefficient without
            an interval has none, but NaN.
        """
        wanted = self._columns()
        if self.specification is not None:
            X, offset = self.specification.design_rows(X, offset)
        rows = prediction_rows(X, wanted, named=self.named, intercept=self.intercept)
        if self.loss.equations > 1:
            if offset is not None:
                raise InputError("offset must not be given to a multinomial regression: its equations would share it")
            return ClassPrediction.at(rows, self.core, self.classes)
        offset = 0.0 if offset is None else offset
        eta = rows @ self.core.params + np.asarray(offset, dtype=np.float64)
        rows = determined(rows, self.core)
        std_error = interval_errors(rows, self.core)
        noise = self.basis.dispersion if self.family == "linear" else None
        return Prediction(eta, std_error, self.loss, self.core, rows, noise)

    def _columns(self) -> list[str]:
        """The names of the columns of the design; those of classes are the names of the first equation's without it."""
        count = len(self.names) // self.loss.equations
        label = f"{self.classes[1]}:" if self.family == "multinomial" else ""
        return [name.removeprefix(label) for name in self.names[int(self.intercept) : count]]

    def predict(self, X: ArrayLike, offset: ArrayLike | None = None) -> Vector:
        """Return the means, or quantiles, at the rows of X; for several classes the probabilities, a column each.

        Returns
        -------
        ndarray of shape (m,) or (m, K)
            The predictions.
        """
        return self.get_prediction(X, offset).predicted_mean

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: the JSON that ``halfwidth fit --json`` writes.

        Returns
        -------
        dict
            The fields n, family, method, level, status, coefficients and diagnostics.
        """
        return {
            "schema": JSON_SCHEMA,
            "n": self.n,
            "family": self.family,
            "method": self.method,
            "level": self.level,
            "status": self.status,
            "coefficients": coefficient_rows(self.core, self.level),
            "diagnostics": {
                "degrees_of_freedom": finite(self.df_resid),
                **self.basis.to_dict(),
                **self.statistics(),
                "warnings": [*self.diagnostics.warnings, *self.diagnostics.coefficient_advice],
            },
        }

    def summary(self, level: float | None = None, *, alpha: float | None = None) -> Summary:
        """Return what the errors rest on, the table that statsmodels users know, and the warnings.

        Parameters
        ----------
        level, alpha : float, optional
            The confidence level, or one minus it; that of the result otherwise.

        Returns
        -------
        Summary
            Text when printed, HTML in a notebook.
        """
        level = chosen_level(level, alpha, self.level)
        core, basis = self.core, self.basis
        columns = (core.params, core.bse, core.tvalues, core.pvalues, core.conf_int(1.0 - level))
        first = f"{self.family} regression, n = {self.n:,}, engine {basis.engine}, method {basis.method}"
        table = CoefficientTable(marked_names(core), *columns, level)
        return Summary([first, *basis.lines(self.df_resid)], table, warning_lines(core))

    def _picture(self, level: float | None) -> ResultTable:
        table = picture_of(self.core, self.level if level is None else level)
        title = f"{self.family} regression, {table.title}"
        return table._replace(title=title, sample=None if self.kept is None else self.kept.table())

    def __str__(self) -> str:
        return self.summary().as_text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.summary().as_html()


share_parameters(RegressionResult)
