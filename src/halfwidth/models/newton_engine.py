"""The default engine: renewable Newton, read as a regression result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.families import Loss
from halfwidth.inference import Diagnostics, Result
from halfwidth.inference.longrun import FEW_DEGREES_OF_FREEDOM, LongRun, long_run_flags
from halfwidth.inference.student_law import StudentLaw
from halfwidth.learners.newton.renewable import RenewableNewton
from halfwidth.learners.newton.snapshot import Fit
from halfwidth.models.identification import Flag, failure
from halfwidth.models.results import Basis
from halfwidth.state.containers import Nested, Row
from halfwidth.state.fields import Real, State, Text
from halfwidth.state.schema import Relation, Schema

Vector = NDArray[np.float64]

METHOD = "score-batches"


def _range_of_rows(state: State) -> bool:
    low, high = state["y_range"]
    return bool((low <= high) == (state["learner"]["n_seen"] > 0))


class NewtonEngine:
    """Learns with `RenewableNewton`; standard errors from the long-run covariance of its score batches."""

    name = "newton"
    SCHEMA = Schema(
        None,
        None,
        {
            "engine": Text(("newton",), doc="which engine"),
            "learner": Nested(RenewableNewton.SCHEMA, doc="what it learned"),
            "y_range": Row((Real(finite=False), Real(finite=False)), doc="smallest and largest target"),
        },
        relations=(Relation("have a `y_range` that fits its rows", _range_of_rows),),
        title="state of engine 'newton'",
    )

    def __init__(self, learner: RenewableNewton, y_range: tuple[float, float] = (np.inf, -np.inf)) -> None:
        self.learner = learner
        self.y_range = y_range

    @property
    def loss(self) -> Loss:
        return self.learner.loss

    @property
    def intercept(self) -> bool:
        return self.learner.intercept

    @property
    def n_seen(self) -> int:
        return self.learner.n_seen

    def consume(
        self, X: Vector, y: Vector, weight: Vector | None, offset: Vector | None, group: NDArray[Any] | None
    ) -> None:
        self.learner.consume(X, y, weight, offset, group)
        if len(y):
            self.y_range = (min(self.y_range[0], float(y.min())), max(self.y_range[1], float(y.max())))

    def params(self) -> Vector:
        return self.learner.fit().params

    def failure(self, names: Sequence[str]) -> Flag | None:
        return failure(self.learner.fit(), self.loss, names, self.y_range)

    def outcome(self, names: tuple[str, ...]) -> tuple[Result, Basis]:
        """The result and what it rests on; ask `failure` first."""
        fit = self.learner.fit()
        long_run = fit.long_run()
        covariance = fit.covariance(long_run)
        variances, naive = np.diag(covariance), np.diag(fit.naive_covariance())
        ratio2 = float(np.median(variances / np.maximum(naive, 1e-300)))
        batches = fit.batches.count + (fit.batches.open_rows > 0)
        basis = Basis(
            METHOD,
            self.name,
            batches=int(batches),
            batch_rows=fit.n / batches if fit.grouped else float(fit.batches.length),
            bandwidth_rows=None if fit.grouped else long_run.bandwidth * fit.batches.length,
            effective_sample_size=fit.n / ratio2 if ratio2 > 0.0 else float(fit.n),
            ratio_to_iid=float(np.sqrt(ratio2)),
            dispersion=fit.dispersion,
            scale=self.loss.scale if self.loss.uses_scale else None,
        )
        nu = long_run.degrees_of_freedom
        diagnostics = Diagnostics(nu, flags=_flags(fit, long_run, int(batches)))
        result = Result(fit.params, covariance * fit.n, fit.n, StudentLaw(nu), METHOD, diagnostics, names)
        return result, basis

    def second_pass(self) -> NewtonEngine:
        return NewtonEngine(self.learner.second_pass())

    def to_state(self) -> dict[str, Any]:
        return {"engine": self.name, "learner": self.learner.to_state(), "y_range": list(self.y_range)}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> NewtonEngine:
        low, high = state["y_range"]
        return cls(RenewableNewton.from_state(state["learner"]), (low, high))


def _flags(fit: Fit, long_run: LongRun, batches: int) -> tuple[Flag, ...]:
    nu = long_run.degrees_of_freedom
    if fit.grouped and nu < FEW_DEGREES_OF_FREEDOM:
        return (
            (
                "few-groups",
                f"the standard errors rest on about {nu:.0f} independent batches of whole groups; with so few they "
                "are rough. Feed more groups",
            ),
        )
    return long_run_flags(long_run, batches, fit.n)
