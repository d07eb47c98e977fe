"""Trajectory regression: the curvature from regressing gradients on the iterates they were taken at.

    g_k = A (theta_{k-1} - theta*) + noise,  A_hat = C_{g theta} C_{theta theta}^-1,  S_hat = C_{gg} - A_hat C_{theta g}

with C the centred second moments along the run; Sigma_hat = A_hat^-1 S_hat A_hat^-T (Y. Ni and X. Huo, 2026,
arXiv:2604.10814, who regress the increments -eta_k g_k). No Hessian is needed, and the rate n^-(1-a)/2 is the best
without one.

The noise must not depend on the past: where rows depend on each other theta_{k-1} carries part of the noise of row k,
the slope is biased, and S_hat has no covariances between rows. The result carries the flag `iid-only`.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from halfwidth.inference import Diagnostics, NormalLaw, Result
from halfwidth.kernels.arrays import Function, Indices, Vector
from halfwidth.kernels.rows import Path, RowData
from halfwidth.kernels.steps import capped_step, no_cap
from halfwidth.learners.learner_state import State
from halfwidth.learners.own_result import OwnResult, sandwich
from halfwidth.state.fields import Array, Fields
from halfwidth.state.schema import Relation


def record(sample: Function, gradient: Function, curvature: Function) -> Function:
    """The loop of capped SGD that notes every (theta_{k-1} - theta_0, g_k)."""

    def recorded_steps(rng: np.random.Generator | None, data: RowData, path: Path, grad: Vector, notes: Vector) -> None:
        theta, origin = path.theta, path.origin
        dim = theta.shape[0]
        for i in range(data.rows.shape[0]):
            row = data.rows[i]
            sample(rng, theta, data.state, data.params, row)
            gradient(theta, row, data.params, grad)
            step = capped_step(path.steps[i], curvature(theta, row, data.params))
            for j in range(dim):
                notes[i, j] = theta[j] - origin[j]
                notes[i, dim + j] = grad[j]
                theta[j] -= step * grad[j]
                path.thetas[i, j] = theta[j]

    return recorded_steps


def _two_each(state: State) -> bool:
    return bool(len(state["kept"]["sums"]) == 2 * state["problem"]["dim"])


class TrajectoryRegression(OwnResult):
    """Capped SGD with a covariance from its own gradients and iterates; independent rows only.

    Notes
    -----
    The slope of the gradients on the iterates estimates the mean Hessian, the residuals their noise. The result is
    flagged `iid-only`: with dependent or state-dependent rows its standard errors are wrong.

    References
    ----------
    Y. Ni and X. Huo, arXiv:2604.10814 (2026).

    Examples
    --------
    >>> import halfwidth as hw
    >>> result = hw.learners.TrajectoryRegression(hw.problem("iid-linear", dim=2), seed=0).run(5_000).result()
    >>> result.law.name
    'normal'
    """

    name = "trajectory-regression"
    kept: ClassVar[Fields] = {
        "sums": Array(("pair",), doc="sum of (theta - theta_0, g)"),
        "products": Array(("pair", "pair"), doc="sum of its products"),
    }
    relations = (Relation("have a `kept.sums` of two numbers per coefficient", _two_each),)

    def _prepare(self) -> None:
        size = 2 * self.problem.dim
        self._notes = np.empty((len(self._thetas), size))
        self._sums = np.zeros(size)
        self._products = np.zeros((size, size))
        self._set_loops(record, self.problem.gradient, self.problem.curvature or no_cap)

    def _forget(self) -> None:
        self._sums[:] = 0.0
        self._products[:] = 0.0

    def _rows_needed(self) -> int:
        return 2 * self.problem.dim + 2

    def _walk(self, draw: bool, rows: Vector, thetas: Vector, k: Indices) -> None:
        notes = self._notes[: len(rows)]
        self._run_loop(draw, rows, thetas, self.step(k), 0, self._grad, notes)
        self._sums += notes.sum(axis=0)
        self._products += notes.T @ notes

    def _own_result(self) -> Result:
        n, dim = self.n_iterates, self.problem.dim
        mean = self._sums / n
        moments = self._products / n - np.outer(mean, mean)
        places, cross = moments[:dim, :dim], moments[:dim, dim:]
        A: Vector = np.linalg.lstsq(places, cross, rcond=None)[0].T.astype(np.float64)
        covariance = sandwich(A, moments[dim:, dim:] - A @ cross)
        flag = (
            "iid-only",
            "trajectory regression is valid for independent rows only: with rows that depend on each other or on "
            "theta its standard errors are wrong; use 'obm' there",
        )
        diagnostics = Diagnostics(float(n), flags=(flag,))
        return Result(self.theta_bar, covariance, n, NormalLaw(), self.name, diagnostics)
