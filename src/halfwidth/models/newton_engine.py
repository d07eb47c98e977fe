"""The default engine: renewable Newton, read as a regression result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.equation.result import EquationResult
from halfwidth.errors import InputError
from halfwidth.inference import Diagnostics
from halfwidth.inference.student_law import StudentLaw
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.newton.pooling import pooled
from halfwidth.learners.newton.renewable import RenewableNewton
from halfwidth.learners.newton.snapshot import NewtonSnapshot
from halfwidth.models.basis import Basis
from halfwidth.models.far_rows import far_flags
from halfwidth.models.goodness import Likelihood
from halfwidth.models.identification import Flag, Verdict, judge, most_degrees_of_freedom, refused, run_failure
from halfwidth.models.kept_rows import KeptRows, kept_rows
from halfwidth.models.run_status import run_flags
from halfwidth.models.separation import ColumnExtremes, slack_for
from halfwidth.models.suspicion import Suspicion
from halfwidth.state.containers import Nested, Optional, Row
from halfwidth.state.fields import Real, State, Text
from halfwidth.state.schema import Relation, Schema

METHOD = "score-batches"


def _range_of_rows(state: State) -> bool:
    low, high = state["y_range"]
    return bool(low <= high or state["learner"]["n_seen"] == 0)


def _extremes_of_columns(state: State) -> bool:
    extremes, learner = state["extremes"], state["learner"]
    return bool(len(extremes["active"]) == learner["dim"] and extremes["family"] == learner["loss"])


def _suspicion_of_coefficients(state: State) -> bool:
    suspicion, learner = state.get("suspicion"), state["learner"]
    if suspicion is None:
        return True
    shape = suspicion["X"].shape[1]
    return bool(len(suspicion["direction"]) == learner["dim"] + learner["intercept"] and shape in (0, learner["dim"]))


class NewtonEngine:
    """Learns with `RenewableNewton`; standard errors from the batch jackknife of the equation it feeds."""

    name = "newton"
    SCHEMA = Schema(
        None,
        None,
        {
            "engine": Text(("newton",), doc="which engine"),
            "learner": Nested(RenewableNewton.SCHEMA, doc="what it learned"),
            "y_range": Row((Real(finite=False), Real(finite=False)), doc="smallest and largest target"),
            "extremes": Nested(ColumnExtremes.SCHEMA, doc="extremes of the columns, for separation"),
            "suspicion": Optional(Nested(Suspicion.SCHEMA), doc="a separation that this pass looks at"),
        },
        relations=(
            Relation("have a `y_range` that fits its rows", _range_of_rows),
            Relation("have extremes of its own columns", _extremes_of_columns),
            Relation("have a suspicion of its own coefficients", _suspicion_of_coefficients),
        ),
        title="state of engine 'newton'",
        optional=("suspicion",),
    )

    def __init__(
        self,
        learner: RenewableNewton,
        y_range: tuple[float, float] = (np.inf, -np.inf),
        extremes: ColumnExtremes | None = None,
        suspicion: Suspicion | None = None,
    ) -> None:
        self.learner = learner
        self.loss, self.intercept, self.ridge = learner.loss, learner.intercept, learner.ridge
        self.y_range = y_range
        self.extremes = extremes or ColumnExtremes(learner.dim, learner.loss.name)
        self.suspicion = suspicion
        self._outcome: tuple[NewtonSnapshot, EquationResult, Verdict] | None = None

    @property
    def grouped(self) -> bool:
        """Whether rows come in groups."""
        return bool(self.learner.grouped)

    @property
    def n_seen(self) -> int:
        return self.learner.n_seen

    def consume(
        self, X: Vector, y: Vector, weight: Vector | None, offset: Vector | None, group: NDArray[Any] | None
    ) -> None:
        self.learner.consume(X, y, weight, offset, group)
        if weight is not None and not weight.all():
            X, y = X[weight > 0.0], y[weight > 0.0]
        if len(y):
            self.y_range = (min(self.y_range[0], float(y.min())), max(self.y_range[1], float(y.max())))
            self.extremes.add(X, y)
            if self.suspicion is not None:
                self.suspicion.look(X, y)

    def add_columns(self, scales: Vector) -> None:
        """Go on with more columns, zero in all rows so far; see `RenewableNewton.add_columns`."""
        if self.loss.equations > 1:
            raise InputError(
                "a level that the first rows lack cannot be added to a multinomial regression; put rows with it first, "
                "or skip such rows: unknown_level='error', bad_rows='skip'"
            )
        self.learner.add_columns(scales)
        self.extremes.add_columns(len(scales), self.y_range)
        self._outcome = None

    def pooled(self, other: NewtonEngine) -> NewtonEngine:
        """One engine for the rows of both; a suspicion of an earlier pass is looked into afresh."""
        low, high = min(self.y_range[0], other.y_range[0]), max(self.y_range[1], other.y_range[1])
        extremes = ColumnExtremes.from_state(self.extremes.to_state())
        extremes.add_other(other.extremes)
        return NewtonEngine(pooled(self.learner, other.learner), (low, high), extremes)

    def params(self) -> Vector:
        return self.learner.fit().params

    def early_failure(self) -> Flag | None:
        """Why nothing can be said of any coefficient, if nothing can."""
        if self.learner.n_seen == 0:
            return "no-weight", "no row carries any weight; check sample_weight"
        return run_failure(self.learner.fit(), self.y_range)

    def failure(self, names: Sequence[str]) -> Flag | None:
        """Why there is no interval for any coefficient, if there is none."""
        flag = self.early_failure()
        if flag is not None:
            return flag
        result, _ = self.outcome(tuple(names))
        if result.refusal is None:
            return None
        return result.refusal, "; ".join(result.diagnostics.coefficient_advice)

    def outcome(self, names: tuple[str, ...]) -> tuple[EquationResult, Basis]:
        """The result and what it rests on; ask `failure` first."""
        fit, result, verdict = self._current()
        advice, far = verdict.advice(names), far_flags(verdict.far, names)
        diagnostics = result.diagnostics.with_facts(*far, coefficient_advice=advice)
        named = EquationResult(
            result.params, result.covariance, result.n, result.law, METHOD, diagnostics, names, errors=result.errors,
            basis=result.basis, df=result.df, most_df=result.most_df, trail=fit.trail,
        )  # fmt: skip
        return named, self._basis(fit, named)

    def _current(self) -> tuple[NewtonSnapshot, EquationResult, Verdict]:
        fit = self.learner.fit()
        if self._outcome is None or self._outcome[0] is not fit:
            self._outcome = (fit, *self._judged(fit))
        return self._outcome

    def _judged(self, fit: NewtonSnapshot) -> tuple[EquationResult, Verdict]:
        T = fit.basis
        covariance = fit.covariance()
        most_df = most_degrees_of_freedom(fit)
        df = np.minimum(fit.errors.degrees_of_freedom(T), most_df)
        verdict = judge(fit, df, np.diag(covariance), self.extremes, self.suspicion)
        out = np.array([refused(flags, nu) for flags, nu in zip(verdict.flags, df, strict=True)])
        covariance[out] = np.nan
        covariance[:, out] = np.nan
        nu = float(np.median(df[~out])) if not out.all() else 0.0
        separated = self.suspicion is not None and self.suspicion.confirmed
        flags = run_flags(fit, np.sqrt(np.diag(covariance)), separated=separated)
        diagnostics, law = Diagnostics(nu, flags=flags, coefficient_flags=verdict.flags), StudentLaw(max(nu, 1.0))
        covariance *= fit.n
        result = EquationResult(
            fit.params, covariance, fit.n, law, METHOD, diagnostics, errors=fit.errors, basis=T, df=df,
            most_df=most_df,
        )  # fmt: skip
        return result, verdict

    def _basis(self, fit: NewtonSnapshot, result: EquationResult) -> Basis:
        variances, naive = np.diag(result.covariance) / fit.n, fit.naive_variances
        known = ~result.refused & (naive > 0.0)
        ratio2 = float(np.median(variances[known] / naive[known])) if known.any() else float("nan")
        errors = fit.errors
        return Basis(
            METHOD,
            self.name,
            batches=errors.batches,
            batch_rows=None if fit.grouped else float(fit.batch_rows * errors.merged),
            bandwidth_rows=None if fit.grouped else errors.bandwidth * fit.batch_rows * errors.merged,
            groups=fit.groups,
            effective_sample_size=fit.n / ratio2 if ratio2 > 0.0 else None,
            ratio_to_iid=float(np.sqrt(ratio2)) if ratio2 > 0.0 else None,
            dispersion=fit.dispersion,
            scale=fit.loss.scale if self.loss.uses_scale else None,
            family_facts=fit.loss.facts(fit.dispersion),
        )

    def kept(self) -> KeptRows | None:
        """The sampled rows with their fitted values."""
        fit = self.learner.fit()
        rows = fit.sample
        return None if rows is None else kept_rows(fit.loss, rows, fit.centre, whole=len(rows) == fit.n)

    def likelihood(self) -> Likelihood | None:
        """What goodness of fit rests on, where the family has a likelihood."""
        fit = self.learner.fit()
        if fit.goodness is None:
            return None
        k = fit.size + fit.loss.extra_parameters
        return Likelihood(fit.goodness, fit.loss, fit.n, k, self.intercept, fit.dispersion)

    @property
    def suspects(self) -> bool:
        """Whether a separation is suspected that one more pass may confirm or clear."""
        return self.early_failure() is None and self._current()[2].suspected is not None

    def second_pass(self) -> NewtonEngine:
        suspicion = None
        if self.suspects:
            fit, _, verdict = self._current()
            assert verdict.suspected is not None
            assert fit.sample is not None
            slack = slack_for(float(np.abs(fit.sample.along(verdict.suspected)).max()))
            direction = fit.basis @ verdict.suspected
            suspicion = Suspicion(self.loss.name, direction, slack, self.n_seen, self.suspicion)
        extremes = ColumnExtremes.from_state(self.extremes.to_state())
        return NewtonEngine(self.learner.second_pass(), self.y_range, extremes, suspicion)

    def to_state(self) -> dict[str, Any]:
        return {
            "engine": self.name,
            "learner": self.learner.to_state(),
            "y_range": list(self.y_range),
            "extremes": self.extremes.to_state(),
            "suspicion": None if self.suspicion is None else self.suspicion.to_state(),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> NewtonEngine:
        low, high = state["y_range"]
        extremes = ColumnExtremes.from_state(state["extremes"])
        known = state.get("suspicion")
        suspicion = None if known is None else Suspicion.from_state(known)
        return cls(RenewableNewton.from_state(state["learner"]), (low, high), extremes, suspicion)
