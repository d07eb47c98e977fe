"""What a fitted regression can say: coefficients, errors, tests, predictions and the table.

The vocabulary is that of statsmodels. A result is frozen and holds neither data nor model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.checks import check_alpha
from halfwidth.errors import InputError, UnknownName
from halfwidth.families import Loss
from halfwidth.inference import Diagnostics, Interval, Result, WaldTest
from halfwidth.models.coefficient_table import html_table, text_table
from halfwidth.models.prediction import Prediction
from halfwidth.streams.design.specification import Specification

Vector = NDArray[np.float64]

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
class ContrastTest:
    """t tests of linear combinations, one at a time, each with the degrees of freedom of its own vector."""

    effect: Vector
    sd: Vector
    tvalue: Vector
    pvalue: Vector
    df_denom: Vector
    core: Result
    contrast: Vector
    labels: tuple[str, ...]

    def conf_int(self, alpha: float = 0.05) -> Vector:
        half = self.core.critical_values(self.contrast, 1.0 - check_alpha(alpha)) * self.sd
        return np.column_stack([self.effect - half, self.effect + half])

    def summary(self, alpha: float = 0.05) -> str:
        bounds = self.conf_int(alpha)
        return text_table(self.labels, self.effect, self.sd, self.tvalue, self.pvalue, bounds, 1.0 - alpha)

    def __str__(self) -> str:
        return self.summary()


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

    def conf_int(self, alpha: float = 0.05) -> Any:
        """Lower and upper bounds, in columns 0 and 1."""
        bounds = self.core.conf_int(alpha)
        pandas = self._pandas()
        return bounds if pandas is None else pandas.DataFrame(bounds, index=list(self.names))

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
        """Test each row of `contrast` times theta = `value`; names of coefficients stand for unit rows."""
        R, labels = self._contrast(contrast)
        interval = self.core.interval(R)
        effect, sd = np.asarray(interval.estimate), np.asarray(interval.std_error)
        t = (effect - np.asarray(value, dtype=np.float64)) / sd
        df = self.core.degrees_of_freedom(R)
        return ContrastTest(effect, sd, t, self.core.tails(t, R), df, self.core, R, labels)

    def wald_test(self, contrast: ArrayLike | str | Sequence[str], value: ArrayLike = 0.0) -> WaldTest:
        """Test all rows of `contrast` times theta = `value` at once."""
        return self.core.wald_test(self._contrast(contrast)[0], value)

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

    def to_frame(self) -> Any:
        """A pandas frame: coef, std_err, t, p, ci_lower, ci_upper, df, status, flags for every coefficient."""
        try:
            import pandas as pd
        except ImportError as error:
            from halfwidth.errors import MissingExtra

            raise MissingExtra.named("pandas", "streams") from error
        rows = self.to_dict()["coefficients"]
        return pd.DataFrame(rows).set_index("name").rename_axis(None)

    def to_dict(self) -> dict[str, Any]:
        """The JSON that `halfwidth fit --json` writes."""
        bounds = self.core.conf_int(1.0 - self.level)
        core = self.core
        df = core.degrees_of_freedom(np.eye(len(self.names)))
        columns = zip(
            self.names, core.params, core.bse, core.tvalues, core.pvalues, bounds, df, self.coefficient_status,
            self.coefficient_flags, strict=True,
        )  # fmt: skip
        return {
            "schema": JSON_SCHEMA,
            "n": self.n,
            "family": self.family,
            "method": self.method,
            "level": self.level,
            "status": self.status,
            "coefficients": [
                {
                    "name": name,
                    "coef": _finite(coef),
                    "std_err": _finite(se),
                    "t": _finite(t),
                    "p": _finite(p),
                    "ci_lower": _finite(low),
                    "ci_upper": _finite(high),
                    "df": _finite(nu),
                    "status": status,
                    "flags": list(flags),
                }
                for name, coef, se, t, p, (low, high), nu, status, flags in columns
            ],
            "diagnostics": {
                "degrees_of_freedom": _finite(self.df_resid),
                **self.basis.to_dict(),
                "warnings": [*self.diagnostics.warnings, *self.diagnostics.coefficient_advice],
            },
        }

    def summary(self, level: float | None = None) -> str:
        """What the errors rest on, the table that statsmodels users know, and the warnings."""
        level = self.level if level is None else level
        return "\n".join([*self._header(), self._table(level), *self._warnings()])

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        bounds = self.core.conf_int(1.0 - self.level)
        core = self.core
        return html_table(
            self._header(), self._marked(), core.params, core.bse, core.tvalues, core.pvalues, bounds, self.level,
            self._warnings(),
        )  # fmt: skip

    def _table(self, level: float) -> str:
        core = self.core
        bounds = core.conf_int(1.0 - level)
        return text_table(self._marked(), core.params, core.bse, core.tvalues, core.pvalues, bounds, level)

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

    def _marked(self) -> list[str]:
        """The names, with a mark where something speaks against a coefficient."""
        pairs = zip(self.names, self.coefficient_status, strict=True)
        return [name if status == "ok" else f"{name} ! {status}" for name, status in pairs]

    def _warnings(self) -> list[str]:
        run = [f"warning ({name}): {text}" for name, text in self.diagnostics.flags]
        return run + [f"! {line}" for line in self.diagnostics.coefficient_advice]

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

    def _contrast(self, contrast: ArrayLike | str | Sequence[str]) -> tuple[Vector, tuple[str, ...]]:
        if isinstance(contrast, str):
            contrast = [contrast]
        if isinstance(contrast, (list, tuple)) and contrast and all(isinstance(name, str) for name in contrast):
            for name in contrast:
                if name not in self.names:
                    raise UnknownName.among("coefficient", str(name), self.names)
            R = np.array([[float(name == own) for own in self.names] for name in contrast])
            return R, tuple(str(name) for name in contrast)
        R = np.atleast_2d(np.asarray(contrast, dtype=np.float64))
        return R, tuple(f"c{i}" for i in range(len(R)))


def _finite(value: float) -> float | None:
    """For JSON: None where there is no number."""
    return float(value) if np.isfinite(value) else None


def _first_odd(rows: Vector, names: list[str]) -> tuple[int, float, str]:
    """Where the first number that is not finite stands, and what it is."""
    row, column = (int(i) for i in np.argwhere(~np.isfinite(rows))[0])
    return row, float(rows[row, column]), names[column]
