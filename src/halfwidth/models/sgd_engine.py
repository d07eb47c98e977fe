"""The engine for many columns: averaged SGD on scaled rows, watched by a method of the table.

The first rows give the scale of the columns, of the residuals, and a start (a fit with a weak prior); the steps begin
after them. They are put aside until there are enough, so that the size of the pieces in which rows arrive never
matters. Only ratios of weights matter: they are divided by the mean of those of the first rows. A kept sample of rows
says what the average cannot know (`halfwidth.models.sgd_checks`).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.errors import InputError, NotEnoughData
from halfwidth.families import Loss, make_loss
from halfwidth.inference import Result
from halfwidth.kernels.arrays import Vector
from halfwidth.learners import CappedSGD
from halfwidth.learners.newton.column_scaling import Scaling
from halfwidth.learners.newton.kept_sample import RowSample
from halfwidth.learners.newton.newton_solver import Rows, first_fit, prior_weights
from halfwidth.methods import METHODS, Setting, method
from halfwidth.models.basis import Basis
from halfwidth.models.identification import ROWS_BEYOND_COEFFICIENTS, Flag
from halfwidth.models.kept_rows import KeptRows, average_rows
from halfwidth.models.separation import ColumnExtremes
from halfwidth.models.sgd_checks import FIRST_ROWS, check_average, family_facts
from halfwidth.models.sgd_state import SGD_SCHEMA, learner_parts
from halfwidth.problems.given_rows import EXTRA_COLUMNS, regression_problem

_LOCATION = ("linear", "quantile", "huber")


class SGDEngine:
    """Capped SGD with the watcher of `method_name`, which must be a method that watches."""

    name = "sgd"
    grouped = False
    SCHEMA = SGD_SCHEMA

    def __init__(self, dim: int, loss: Loss, *, intercept: bool, ridge: float, method_name: str) -> None:
        row = method(method_name)
        if row.watch is None:
            fitting = [name for name, known in METHODS.items() if known.watch is not None]
            raise InputError.of("method", f"be one that watches a trajectory ({', '.join(fitting)})", method_name)
        self.dim, self.loss, self.intercept, self.ridge = dim, loss, intercept, float(ridge)
        self.method_name = method_name
        self.size = dim + intercept
        self._first: list[Vector] = []
        self._scaling: Scaling | None = None
        self._y_centre, self._y_scale = 0.0, 1.0
        self._learner: CappedSGD | None = None
        self._unit = 1.0
        self._sample = RowSample(self.size)
        self._extremes = ColumnExtremes(dim, loss.name)

    @property
    def n_seen(self) -> int:
        return sum(map(len, self._first)) + (0 if self._learner is None else FIRST_ROWS + self._learner.n_seen)

    def consume(
        self, X: Vector, y: Vector, weight: Vector | None, offset: Vector | None, group: NDArray[Any] | None
    ) -> None:
        if group is not None:
            raise InputError("groups are for engine='newton': SGD has no batches that keep groups whole")
        rows = np.empty((len(X), self.dim + EXTRA_COLUMNS))
        rows[:, : self.dim] = X
        rows[:, -3] = y
        rows[:, -2] = 1.0 if weight is None else weight
        rows[:, -1] = 0.0 if offset is None else offset
        rows = rows[rows[:, -2] > 0.0]
        self._extremes.add(rows[:, : self.dim], rows[:, -3])
        if self._learner is None:
            self._first.append(rows)
            if self.n_seen < FIRST_ROWS:
                return
            collected = np.concatenate(self._first)
            self._first = []
            self._learner = self._begin(collected[:FIRST_ROWS])
            self._keep(self._internal(collected[:FIRST_ROWS]), 0)
            rows = collected[FIRST_ROWS:]
        inside = self._internal(rows)
        self._keep(inside, FIRST_ROWS + self._learner.n_seen)
        self._learner.consume(inside)

    def _keep(self, inside: Vector, first: int) -> None:
        """Let the sample choose among internal rows, numbered from `first`."""
        rows = Rows(inside[:, : self.size], inside[:, -3], inside[:, -2], inside[:, -1])
        self._sample.add(rows, np.zeros(len(rows)), self.loss, None, first)

    def _begin(self, rows: Vector) -> CappedSGD:
        theta_0 = self._warm(rows)
        assert self._scaling is not None
        ridge = np.zeros(self.size)
        ridge[int(self.intercept) :] = self.ridge / self._scaling.scale**2
        return self._make_learner(theta_0, ridge)

    def _make_learner(self, theta_0: Vector, ridge: Vector) -> CappedSGD:
        setting = Setting()
        row = method(self.method_name)
        assert row.watch is not None
        watcher = row.watch(self.size, setting)
        problem = regression_problem(self.loss, ridge, theta_0)
        return CappedSGD(problem, step=setting.step(), watchers=[watcher])

    def _warm(self, rows: Vector) -> Vector:
        """Fix the scales on these rows; the fit to them, on the internal scale."""
        self._unit = float(rows[:, -2].mean())
        weight = rows[:, -2] / self._unit
        self._scaling = Scaling.of(rows[:, : self.dim], weight, self.intercept)
        Z = np.ascontiguousarray(self._scaling.apply(rows[:, : self.dim]))
        inside = Rows(Z, rows[:, -3], weight, rows[:, -1])
        start = np.zeros(self.size)
        if self.intercept and inside.total_weight > 0.0:
            start[0] = self.loss.start(float(weight @ inside.y) / inside.total_weight)
        theta = first_fit(inside, self.loss, start, np.zeros(self.size), prior_weights(inside), 1e-8)
        if self.loss.name in _LOCATION:
            residual = inside.y - inside.eta(theta)
            self._y_centre = float(theta[0]) if self.intercept else 0.0
            self._y_scale = self.loss.scale if self.loss.uses_scale else float(residual.std()) or 1.0
            theta = theta / self._y_scale
            theta[: int(self.intercept)] = 0.0
        return theta

    def _internal(self, rows: Vector) -> Vector:
        assert self._scaling is not None
        inside = np.empty((len(rows), self.size + EXTRA_COLUMNS))
        inside[:, : self.size] = self._scaling.apply(rows[:, : self.dim])
        inside[:, -3] = (rows[:, -3] - self._y_centre) / self._y_scale
        inside[:, -2] = rows[:, -2] / self._unit
        inside[:, -1] = rows[:, -1] / self._y_scale
        return inside

    def _map(self) -> tuple[Vector, Vector]:
        """params = shift + T theta."""
        assert self._scaling is not None
        shift = np.zeros(self.size)
        shift[: int(self.intercept)] = self._y_centre
        return shift, self._y_scale * self._scaling.matrix

    def params(self) -> Vector:
        if self._learner is None:
            if not self._first:
                raise NotEnoughData.rows("an estimate", 0, 1)
            reader = SGDEngine.from_state(self.to_state())
            theta = reader._warm(np.concatenate(self._first))
            shift, T = reader._map()
            return shift + T @ theta
        shift, T = self._map()
        iterates = self._learner.n_seen > 0
        return shift + T @ (self._learner.theta_bar if iterates else self._learner.theta)

    def failure(self, names: Sequence[str]) -> Flag | None:
        return self.early_failure()

    def early_failure(self) -> Flag | None:
        needed = FIRST_ROWS + max(self.size + ROWS_BEYOND_COEFFICIENTS, 100)
        if self.n_seen < needed:
            text = (
                f"{self.n_seen} rows are too few: engine='sgd' spends the first {FIRST_ROWS} on scales and start, and "
                f"needs {needed}. Feed more rows, or use engine='newton'"
            )
            return "too-few-rows", text
        return None

    def kept(self) -> KeptRows | None:
        return average_rows(self._learner, self._sample, self.loss, self._y_centre, self._y_scale)

    def likelihood(self) -> None:
        """Not kept by this engine."""
        return

    def outcome(self, names: tuple[str, ...]) -> tuple[Result, Basis]:
        """The result and what it rests on; ask `failure` first."""
        assert self._learner is not None
        assert self._scaling is not None
        row = method(self.method_name)
        inside = self._learner.result(critical=row.critical)
        shift, T = self._map()
        covariance = inside.covariance
        full = np.diag(covariance) if covariance.ndim == 1 else covariance
        params, sigma = shift + T @ inside.params, T @ full @ T.T
        loss = copy(self.loss)
        loss.scale = 1.0 if loss.uses_scale else loss.scale  # rows are in units of it
        penalty = np.zeros(self.size)
        penalty[int(self.intercept) :] = self.ridge / self._scaling.scale**2
        kept, errors = self._sample.rows(), np.sqrt(np.diag(full) / inside.n)
        checked = check_average(kept, loss, inside.params, errors, self._scaling, self._extremes, penalty)
        refused = np.array([bool(flags) for flags in checked.verdict.flags])
        sigma[refused] = np.nan
        sigma[:, refused] = np.nan
        diagnostics = inside.diagnostics.with_facts(
            *checked.run, coefficient_flags=checked.verdict.flags, coefficient_advice=checked.verdict.advice(names)
        )
        result = Result(params, sigma, inside.n, inside.law, self.method_name, diagnostics, names)
        blocks = round(inside.diagnostics.effective_blocks)
        scale = self._y_scale if self.loss.uses_scale else None
        noise = self._y_scale**2 if self.loss.name == "linear" else None
        facts = family_facts(kept, loss, inside.params)
        return result, Basis(self.method_name, self.name, blocks, dispersion=noise, scale=scale, family_facts=facts)

    def second_pass(self) -> SGDEngine:
        raise InputError("passes must be 1 with engine='sgd': the second pass is a Newton step; use engine='newton'")

    def to_state(self) -> dict[str, Any]:
        state: dict[str, Any] = {
            "engine": self.name,
            "dim": self.dim,
            "loss": self.loss.name,
            "options": self.loss.options(),
            "scale": self.loss.scale,
            "intercept": self.intercept,
            "ridge": self.ridge,
            "method": self.method_name,
            "first": np.concatenate(self._first) if self._first else None,
            "y_centre": self._y_centre,
            "y_scale": self._y_scale,
            "unit": self._unit,
            "extremes": self._extremes.to_state(),
            "started": self._learner is not None,
        }
        if self._learner is not None and self._scaling is not None:
            state |= learner_parts(self._learner, self._scaling) | {"sample": self._sample.to_state()}
        return state

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> SGDEngine:
        loss = make_loss(state["loss"], **state["options"])
        loss.scale = float(state["scale"])
        engine = cls(
            int(state["dim"]), loss, intercept=state["intercept"], ridge=state["ridge"], method_name=state["method"]
        )
        engine._unit, engine._extremes = float(state["unit"]), ColumnExtremes.from_state(state["extremes"])
        engine._y_centre, engine._y_scale = float(state["y_centre"]), float(state["y_scale"])
        if state["first"] is not None:
            engine._first = [np.array(state["first"])]
        if state["started"]:
            centre, scale = np.array(state["column_centre"]), np.array(state["column_scale"])
            engine._scaling = Scaling(centre, scale, engine.intercept)
            learner = engine._make_learner(np.array(state["theta_0"]), np.array(state["ridges"]))
            learner._theta[:], learner._total[:] = state["theta"], state["total"]
            learner.n_seen, learner._capped = int(state["n_seen"]), int(state["capped"])
            learner.watchers = (type(learner.watchers[0]).from_state(state["watcher"]),)
            engine._learner = learner
            engine._sample = RowSample.from_state(state["sample"])
        return engine
