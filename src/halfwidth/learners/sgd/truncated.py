"""Truncated SGD: Algorithm 1 of Roy and Balasubramanian.

    theta' = theta_k - eta_{k+1} g(theta_k, x_{k+1})

If |theta' - theta_k| >= d_k or theta' lies outside K_q, both theta and the chain go back to their start and q grows by
one; otherwise theta_{k+1} = theta'. The count k runs on, so the steps keep shrinking. d_0 is infinite.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Unpack

import numpy as np

from halfwidth.kernels.arrays import Function, Indices, Vector
from halfwidth.kernels.rows import Path, RowData
from halfwidth.kernels.steps import note
from halfwidth.learners.base import Learner, LearnerOptions
from halfwidth.learners.learner_state import State
from halfwidth.learners.schedule_state import schedule_field
from halfwidth.problems import Problem
from halfwidth.schedules import Threshold, TruncationSets
from halfwidth.state.containers import ListOf
from halfwidth.state.fields import Fields, Whole
from halfwidth.state.schema import Relation

LOCATIONS_KEPT = 1_000


class Truncation(NamedTuple):
    """What decides whether a step is truncated, and what happens then."""

    state_0: Vector
    """Where the problem's chain starts again."""
    limits: Vector
    """d_{k-1} for every row of the chunk: the longest move that passes."""
    radii: Vector
    """Radius of K_q after 0, 1, ... truncations in this chunk."""
    hits: Indices
    """Takes the place in the chunk of every truncation."""
    grad: Vector
    """Scratch space for a gradient."""


def descend_truncated(sample: Function, gradient: Function) -> Function:
    """The loop of truncated SGD around a problem's functions."""

    def truncated_steps(rng: np.random.Generator | None, data: RowData, path: Path, rule: Truncation) -> int:
        theta, state, grad = path.theta, data.state, rule.grad
        truncations = 0
        for i in range(data.rows.shape[0]):
            row = data.rows[i]
            sample(rng, theta, state, data.params, row)
            gradient(theta, row, data.params, grad)
            step = path.steps[i]
            move2 = 0.0
            norm2 = 0.0
            for j in range(theta.shape[0]):
                move = step * grad[j]
                move2 += move * move
                norm2 += (theta[j] - move) ** 2
            # Written so that a nan counts as having left the set.
            if move2 < rule.limits[i] ** 2 and norm2 <= rule.radii[truncations] ** 2:
                for j in range(theta.shape[0]):
                    theta[j] -= step * grad[j]
            else:
                note(path.origin, theta)
                note(rule.state_0, state)
                rule.hits[truncations] = i
                truncations += 1
            note(theta, path.thetas[i])
        return truncations

    return truncated_steps


def _hits_fit(state: State) -> bool:
    rows, count = state["parts"]["truncated_at"], state["parts"]["truncations"]
    in_order = all(one < other for one, other in pairwise([0, *rows, state["n_seen"] + 1]))
    return len(rows) == min(count, LOCATIONS_KEPT) and count <= state["n_seen"] and in_order


class TruncatedSGD(Learner):
    """Truncated SGD, the algorithm of Roy and Balasubramanian.

    Parameters
    ----------
    threshold : Threshold, optional
        The longest move d_k = D k^-b that passes.
    sets : TruncationSets, optional
        The balls K_q that iterates must stay in after q truncations.

    Attributes
    ----------
    truncations : int
        How often theta and the chain went back to their start.
    truncated_at : list of int
        The rows of the first 1,000 truncations.

    References
    ----------
    A. Roy and K. Balasubramanian, *Online covariance estimation for stochastic gradient descent under Markovian
    sampling*.

    Examples
    --------
    >>> import halfwidth as hw
    >>> learner = hw.TruncatedSGD(hw.problem("seed-linear", dim=2), seed=0).run(2_000)
    >>> learner.truncations == len(learner.truncated_at)
    True
    """

    name = "truncated"
    settings: ClassVar[Fields] = {
        "threshold": schedule_field("Threshold", doc="the longest move that passes"),
        "sets": schedule_field("TruncationSets", doc="where iterates must stay"),
    }
    kept: ClassVar[Fields] = {}
    parts: ClassVar[Fields] = {
        "truncations": Whole(doc="how often theta went back to its start"),
        "truncated_at": ListOf(Whole(1), most=LOCATIONS_KEPT, doc="the rows of the first truncations"),
    }
    relations = (Relation("have in `parts.truncated_at` the rows of its truncations, in order", _hits_fit),)

    def __init__(
        self, problem: Problem, *, threshold: Threshold | None = None, sets: TruncationSets | None = None,
        **options: Unpack[LearnerOptions],
    ) -> None:  # fmt: skip
        self.threshold = Threshold() if threshold is None else threshold
        self.sets = TruncationSets() if sets is None else sets
        self.truncations = 0
        self.truncated_at: list[int] = []
        super().__init__(problem, **options)

    def _prepare(self) -> None:
        self._set_loops(descend_truncated, self.problem.gradient)
        self._hits = np.empty(len(self._rows), dtype=np.int64)

    def _walk(self, draw: bool, rows: Vector, thetas: Vector, k: Indices) -> None:
        radii = self.sets(self.truncations + np.arange(len(rows) + 1))
        rule = Truncation(np.asarray(self.problem.state_0), self.threshold(k - 1), radii, self._hits, self._grad)
        new = int(self._run_loop(draw, rows, thetas, self.step(k), 0, rule))
        self.truncations += new
        left = LOCATIONS_KEPT - len(self.truncated_at)
        self.truncated_at += k[self._hits[: min(new, left)]].tolist()

    def _facts(self) -> dict[str, Any]:
        return {"truncations": self.truncations, "truncated_at": tuple(self.truncated_at)}

    def _parts(self) -> State:
        return {"truncations": self.truncations, "truncated_at": list(self.truncated_at)}

    def _restore_parts(self, state: State) -> None:
        self.truncations = int(state["truncations"])
        self.truncated_at = [int(row) for row in state["truncated_at"]]
