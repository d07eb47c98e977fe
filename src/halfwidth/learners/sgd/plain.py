"""Plain and capped SGD.

    theta_{k+1} = theta_k - eta_{k+1} g(theta_k, x_{k+1})

Capped SGD takes min(eta_k, 1 / kappa_k) instead of eta_k, with kappa_k a bound of the row's curvature: no row can throw
the iterate further than to its own minimum, so that the first, large steps do not explode.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Function
from halfwidth.kernels.compile import jitable, specialise
from halfwidth.learners.base import Learner, Seed, Vector
from halfwidth.learners.warm_start import no_cap, no_rows
from halfwidth.problems import Problem
from halfwidth.schedules import Schedule
from halfwidth.watchers import Watcher


@jitable
def any_row(row):  # type: ignore[no-untyped-def]
    """Rows that are drawn are taken as they are."""
    return True


@jitable
def finite_row(row):  # type: ignore[no-untyped-def]
    odd = 0.0
    for j in range(row.shape[0]):
        odd += 0.0 * row[j]
    return odd == 0.0


def descend(sample: Function, usable: Function, gradient: Function, curvature: Function) -> Function:
    """The loop of plain and capped SGD around a problem's functions; it leaves off at a row that is not usable."""

    def sgd_steps(rng, theta, state, params, rows, steps, grad, thetas):  # type: ignore[no-untyped-def]
        capped = 0
        for i in range(rows.shape[0]):
            row = rows[i]
            sample(rng, theta, state, params, row)
            if not usable(row):
                return i, capped
            gradient(theta, row, params, grad)
            step = steps[i]
            kappa = curvature(theta, row, params)
            if step * kappa > 1.0:
                step = 1.0 / kappa
                capped += 1
            for j in range(theta.shape[0]):
                theta[j] -= step * grad[j]
            for j in range(theta.shape[0]):
                thetas[i, j] = theta[j]
        return rows.shape[0], capped

    return sgd_steps


class SGD(Learner):
    """Plain averaged SGD."""

    name = "plain"
    checks_rows = True

    def __init__(
        self,
        problem: Problem,
        *,
        step: Schedule | None = None,
        watchers: Sequence[Watcher] = (),
        seed: Seed = 0,
        theta_0: ArrayLike | None = None,
        warm_start: int = 0,
        burn_in: int = 0,
    ) -> None:
        super().__init__(
            problem,
            step=step,
            watchers=watchers,
            seed=seed,
            theta_0=theta_0,
            warm_start=warm_start,
            burn_in=burn_in,
        )
        # A loop of its own for given rows needs no generator, whose hand-over costs as much as hundreds of rows.
        self._drawing = specialise(descend, problem.sample or no_rows, any_row, problem.gradient, self._cap())
        self._given = specialise(descend, no_rows, finite_row, problem.gradient, self._cap())
        self._grad = np.full(problem.dim, np.nan)  # so that a gradient nobody wrote is noticed
        self._capped = 0

    def _cap(self) -> Function:
        return no_cap

    def _walk(self, draw: bool, rows: Vector, thetas: Vector, k: NDArray[np.int64]) -> int:
        learned, capped = (self._drawing if draw else self._given)(
            self.rng if draw else None,
            self._theta,
            self._state,
            self.problem.params,
            rows,
            self.step(k),
            self._grad,
            thetas,
        )
        self._capped += capped
        return int(learned)


class CappedSGD(SGD):
    """SGD whose step never exceeds the inverse of the row's curvature bound."""

    name = "capped"

    def _cap(self) -> Function:
        if self.problem.curvature is None:
            raise InputError(
                f"capped SGD needs a curvature bound, and problem {self.problem.name!r} has none; "
                "give Problem(..., curvature=...) or use plain SGD"
            )
        return self.problem.curvature

    def _facts(self) -> dict[str, Any]:
        return {"capped_share": self._capped / max(self.n_seen - self.warm_start, 1)}
