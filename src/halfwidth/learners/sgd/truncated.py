"""Truncated SGD: Algorithm 1 of Roy and Balasubramanian.

    theta' = theta_k - eta_{k+1} g(theta_k, x_{k+1})

If |theta' - theta_k| >= d_k or theta' lies outside K_q, both theta and the chain go back to their start and q grows by
one; otherwise theta_{k+1} = theta'. The count k runs on, so the steps keep shrinking. d_0 is infinite.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.kernels.arrays import Function
from halfwidth.kernels.compile import specialise
from halfwidth.learners.base import Learner, Seed, Vector
from halfwidth.learners.warm_start import no_rows
from halfwidth.problems import Problem
from halfwidth.schedules import Schedule, Threshold, TruncationSets
from halfwidth.watchers import Watcher

LOCATIONS_KEPT = 1_000


def descend_truncated(sample: Function, gradient: Function) -> Function:
    """The loop of truncated SGD around a problem's functions."""

    def truncated_steps(  # type: ignore[no-untyped-def]
        draw,
        rng,
        theta,
        state,
        params,
        rows,
        steps,
        grad,
        thetas,
        origin,
        state_0,
        limits,
        radii,
        hits,
    ):
        truncations = 0
        for i in range(rows.shape[0]):
            row = rows[i]
            if draw:
                sample(rng, theta, state, params, row)
            gradient(theta, row, params, grad)
            move2 = 0.0
            norm2 = 0.0
            for j in range(theta.shape[0]):
                move = steps[i] * grad[j]
                move2 += move * move
                norm2 += (theta[j] - move) ** 2
            # Written so that a nan counts as having left the set.
            if move2 < limits[i] ** 2 and norm2 <= radii[truncations] ** 2:
                for j in range(theta.shape[0]):
                    theta[j] -= steps[i] * grad[j]
            else:
                for j in range(theta.shape[0]):
                    theta[j] = origin[j]
                for j in range(state.shape[0]):
                    state[j] = state_0[j]
                hits[truncations] = i
                truncations += 1
            for j in range(theta.shape[0]):
                thetas[i, j] = theta[j]
        return truncations

    return truncated_steps


class TruncatedSGD(Learner):
    """The paper's algorithm; `truncations` counts the resets and `truncated_at` says where the first ones were."""

    name = "truncated"

    def __init__(
        self,
        problem: Problem,
        *,
        step: Schedule | None = None,
        threshold: Threshold | None = None,
        sets: TruncationSets | None = None,
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
        self.threshold = Threshold() if threshold is None else threshold
        self.sets = TruncationSets() if sets is None else sets
        self.truncations = 0
        self.truncated_at: list[int] = []
        self._kernel = specialise(descend_truncated, problem.sample or no_rows, problem.gradient)
        self._grad = np.full(problem.dim, np.nan)
        self._hits = np.empty(len(self._rows), dtype=np.int64)

    def _walk(self, draw: bool, rows: Vector, thetas: Vector, k: NDArray[np.int64]) -> None:
        new = self._kernel(
            draw,
            self.rng,
            self._theta,
            self._state,
            self.problem.params,
            rows,
            self.step(k),
            self._grad,
            thetas,
            self._theta_0,
            self.problem.state_0,
            self.threshold(k - 1),
            self.sets(self.truncations + np.arange(len(rows) + 1)),
            self._hits,
        )
        self.truncations += new
        room = LOCATIONS_KEPT - len(self.truncated_at)
        self.truncated_at += k[self._hits[: min(new, room)]].tolist()

    def _facts(self) -> dict[str, Any]:
        return {"truncations": self.truncations, "truncated_at": tuple(self.truncated_at)}
