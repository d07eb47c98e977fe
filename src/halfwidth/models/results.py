"""What a fitted regression can say: coefficients, errors, tests, predictions and the table.

The vocabulary is that of statsmodels. A result is frozen and holds neither data nor model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.errors import InputError
from halfwidth.families import Loss
from halfwidth.inference import Diagnostics, Interval, Result, WaldTest
from halfwidth.inference.contrasts import ContrastTest
from halfwidth.inference.statements import FIRST_LOOK, chosen_level
from halfwidth.inference.summary import coefficient_rows, finite, marked_names, warning_lines
from halfwidth.inference.tables import CoefficientTable, Summary
from halfwidth.models.prediction import Prediction
from halfwidth.streams.design.specification import Specification

Vector = NDArray[np.float64]

EXPONENTIATED = frozenset({"logistic", "poisson"})
"""Families whose link makes the exponential of a coefficient a ratio of odds or of rates."""

JSON_SCHEMA = 2
"""Version of what `to_dict` and `halfwidth fit --json` write; 2 added df, status and flags of each coefficient."""


@dataclass(frozen=True)
class Basis:
    """What the standard errors rest on. Counts are of rows; None where a method has no such number."""

    method: str
    engine: str
    batches: int | None = None
    groups: tuple[int, bool] | None = None
    batch_rows: float | None = None
    bandwidth_rows: float | None = None
    effective_sample_size: float | None = None
    ratio_to_iid: float | None = None
    dispersion: float | None = None
    scale: float | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, those unknown left out."""
        names = ("engine", "batches", "batch_rows", "bandwidth_rows", "effective_sample_size", "ratio_to_iid")
        known = {name: getattr(self, name) for name in (*names, "dispersion", "scale")}
        found = {name: value for name, value in known.items() if value is not None}
        if self.groups is not None:
            found |= {"groups": self.groups[0], "groups_exact": self.groups[1], "buckets": self.batches}
        return found | self.extra


@dataclass(frozen=True)
class RegressionResult:
    """The result of a regression; get one from `model.inference()`.

    `params`, `bse`, `tvalues`, `pvalues`, `conf_int()`, `cov_params()` are pandas objects where the columns have
    names and pandas is there, arrays otherwise. The intercept comes first and is called `Intercept`.
    """

    core: Result
    names: tuple[str, ...]
    named: bool
    family: str
    loss: Loss
    intercept: bool
    basis: Basis
    level: float = 0.95
    specification: Specification | None = None

    @property
    def n(self) -> int:
        return self.core.n

    nobs = n

    @property
    def method(self) -> str:
        return self.basis.method

    @property
    def status(self) -> str:
        return self.core.status

    @property
    def diagnostics(self) -> Diagnostics:
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
        """`ok`, or the first thing that speaks against each coefficient."""
        return self.core.coefficient_status

    @property
    def coefficient_flags(self) -> tuple[tuple[str, ...], ...]:
        """All that speaks against each coefficient."""
        return self.diagnostics.coefficient_flags or ((),) * len(self.names)

    @property
    def params(self) -> Any:
        return self._series(self.core.params)

    @property
    def bse(self) -> Any:
        return self._series(self.core.bse)

    @property
    def tvalues(self) -> Any:
        return self._series(self.core.tvalues)

    @property
    def pvalues(self) -> Any:
        return self._series(self.core.pvalues)

    def conf_int(self, alpha: float = 0.05, *, simultaneous: bool = False) -> Any:
        """Lower and upper bounds, in columns 0 and 1; `simultaneous` ones contain all coefficients at once."""
        return self._bounds(self.core.conf_int(alpha, simultaneous=simultaneous))

    def conf_seq(self, alpha: float = 0.05, *, tightest: int = FIRST_LOOK) -> Any:
        """Bounds that hold at all rows together, safe to look at after every chunk (`Result.conf_seq`)."""
        return self._bounds(self.core.conf_seq(alpha, tightest=tightest))

    def cov_params(self) -> Any:
        """The covariance of the estimate."""
        matrix = self.core.cov_params()
        pandas = self._pandas()
        names = list(self.names)
        return matrix if pandas is None else pandas.DataFrame(matrix, index=names, columns=names)

    def interval(self, direction: ArrayLike | None = None, level: float | None = None) -> Interval:
        """The interval for v'theta, several of them, or every coefficient."""
        return self.core.interval(direction, self.level if level is None else level)

    def t_test(self, contrast: ArrayLike | str | Sequence[str], value: ArrayLike = 0.0) -> ContrastTest:
        """Test combinations one at a time: ``"x = 0.5"``, ``"x - z"``, names of coefficients, or rows of a matrix."""
        return self.core.t_test(contrast, value)

    def wald_test(self, contrast: ArrayLike | str | Sequence[str], value: ArrayLike = 0.0) -> WaldTest:
        """Test combinations jointly: ``"a = b = 0"``, several texts, or rows of a matrix."""
        return self.core.wald_test(contrast, value)

    f_test = wald_test

    def compare(self, other: RegressionResult) -> ContrastTest:
        """Test that every coefficient is the same in a fit on an independent stream, as in an A/B test."""
        if other.family != self.family:
            raise InputError.of("other", f"be a {self.family} regression", f"a {other.family} one")
        return self.core.compare(other.core)

    def odds_ratios(self, alpha: float = 0.05) -> Any:
        """The exponentials of the coefficients with their bounds: odds ratios, or ratios of rates under a log link."""
        if self.family not in EXPONENTIATED:
            known = ", ".join(sorted(EXPONENTIATED))
            raise InputError(f"odds ratios exist for {known} regressions; this is a {self.family} one")
        table = np.exp(np.column_stack([self.core.params, self.core.conf_int(alpha)]))
        pandas = self._pandas()
        if pandas is None:
            return table
        return pandas.DataFrame(table, index=list(self.names), columns=["ratio", "ci_lower", "ci_upper"])

    def get_prediction(self, X: ArrayLike, offset: ArrayLike | None = None) -> Prediction:
        """Means, and intervals, at the rows of X (without a column for the intercept).

        A frame is read by the names of its columns, an array by their order. After `halfwidth.fit` a frame may have the
        raw columns; an array has those of the design, as `params` names them.
        """
        wanted = list(self.names[self.intercept :])
        if self.specification is not None and self.specification.reads(X):
            raw = self.specification.rows(X, with_offset=offset is None)
            X = raw.X
            if raw.offset is not None:
                offset = raw.offset + (0.0 if offset is None else np.asarray(offset, dtype=np.float64))
        offset = 0.0 if offset is None else offset
        if self.named and hasattr(X, "columns"):
            missing = [name for name in wanted if name not in X.columns]
            if missing:
                raise InputError(f"X must have the columns {wanted}; missing: {missing}")
            X = X[wanted]  # type: ignore[index]
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != len(wanted):
            raise InputError.of("X", f"have shape (m, {len(wanted)})", rows.shape)
        if not np.isfinite(rows).all():
            raise InputError("X must be finite; row {} has {} in column {!r}".format(*_first_odd(rows, wanted)))
        if self.intercept:
            rows = np.column_stack([np.ones(len(rows)), rows])
        std_error = np.asarray(self.core.interval(rows).std_error)
        eta = rows @ self.core.params + np.asarray(offset, dtype=np.float64)
        noise = self.basis.dispersion if self.family == "linear" else None
        return Prediction(eta, std_error, self.loss, self.core, rows, noise)

    def to_frame(self, level: float | None = None) -> Any:
        """A pandas frame: coef, std_err, t, p, ci_lower, ci_upper, df, status, flags for every coefficient."""
        return self.core.to_frame(self.level if level is None else level)

    def to_dict(self) -> dict[str, Any]:
        """The JSON that `halfwidth fit --json` writes."""
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
                "warnings": [*self.diagnostics.warnings, *self.diagnostics.coefficient_advice],
            },
        }

    def summary(self, level: float | None = None, *, alpha: float | None = None) -> Summary:
        """What the errors rest on, the table that statsmodels users know, and the warnings."""
        level = chosen_level(level, alpha, self.level)
        core = self.core
        columns = (core.params, core.bse, core.tvalues, core.pvalues, core.conf_int(1.0 - level))
        table = CoefficientTable(marked_names(core), *columns, level)
        return Summary(self._header(), table, warning_lines(core))

    def __str__(self) -> str:
        return self.summary().as_text()

    def _repr_html_(self) -> str:
        return self.summary().as_html()

    def _header(self) -> list[str]:
        b = self.basis
        lines = [f"{self.family} regression, n = {self.n:,}, engine {b.engine}, method {b.method}"]
        facts = []
        if b.groups is not None:
            count, exact = b.groups
            facts.append(f"{'' if exact else 'about '}{count:,} groups in {b.batches:,} buckets")
        elif b.batches is not None:
            of = "" if b.batch_rows is None else f" of {b.batch_rows:,.0f} rows"
            facts.append(f"{b.batches:,} batches{of}")
        if b.bandwidth_rows is not None:
            facts.append(f"bandwidth {b.bandwidth_rows:,.0f} rows")
        df = self.df_resid
        facts.append(f"degrees of freedom {df:,.0f} (median)" if np.isfinite(df) else "degrees of freedom inf")
        lines.append(", ".join(facts))
        if b.effective_sample_size is not None and b.ratio_to_iid is not None:
            lines.append(
                f"effective sample size {b.effective_sample_size:,.0f}, "
                f"standard errors {b.ratio_to_iid:.2f} times the iid ones (median)"
            )
        if b.scale is not None:
            lines.append(f"residual scale {b.scale:.4g}")
        return lines + [f"{key.replace('_', ' ')}: {value}" for key, value in b.extra.items() if value]

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

    def _bounds(self, bounds: Vector) -> Any:
        pandas = self._pandas()
        return bounds if pandas is None else pandas.DataFrame(bounds, index=list(self.names))


def _first_odd(rows: Vector, names: list[str]) -> tuple[int, float, str]:
    """Where the first number that is not finite stands, and what it is."""
    row, column = (int(i) for i in np.argwhere(~np.isfinite(rows))[0])
    return row, float(rows[row, column]), names[column]
