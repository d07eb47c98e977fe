"""Zeroth-order SGD: gradients from differences of the loss.

    g_j = (d/m) (F(theta + h_k e_j, x_k) - F(theta - h_k e_j, x_k)) / (2 h_k)   for m of the d coordinates, 0 elsewhere

(J. Kiefer and J. Wolfowitz 1952; inference: X. Chen, Z. Lai, H. Li and Y. Zhang, JASA 119, 2024). The coordinates are
drawn without replacement for each row. Both evaluations see the same row, so h_k may shrink quickly, and the bias
h_k^2 is negligible. With all coordinates (the default, 2d evaluations per row) the limit covariance is that of SGD with
gradients; with m < d the gradient noise is larger, up to d/m times, and the watchers see it.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Unpack

import numpy as np

from halfwidth.checks import check_count
from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Function, Indices, Vector
from halfwidth.kernels.rows import Path, RowData
from halfwidth.kernels.steps import capped_step, no_cap, note
from halfwidth.learners.base import Learner, LearnerOptions
from halfwidth.learners.learner_state import State
from halfwidth.learners.schedule_state import schedule_field
from halfwidth.problems import Problem
from halfwidth.schedules import PowerStep, Schedule
from halfwidth.state.fields import Array, Fields, Whole
from halfwidth.state.schema import Relation


class Probes(NamedTuple):
    """Where the loss is evaluated."""

    spacings: Vector
    """h_k for every row of the chunk."""
    order: Indices
    """The coordinates, those of the current row first."""
    moves: Vector
    """Scratch space: the move of each probed coordinate."""


def probe(sample: Function, loss: Function, curvature: Function) -> Function:
    """The loop of SGD with differences along coordinates; capped so that no probed move passes the row's minimum."""

    def zeroth_steps(
        rng: np.random.Generator | None, data: RowData, path: Path, pick_rng: np.random.Generator, probes: Probes
    ) -> None:
        theta, params, order, moves = path.theta, data.params, probes.order, probes.moves
        dim, count = theta.shape[0], moves.shape[0]
        for i in range(data.rows.shape[0]):
            row = data.rows[i]
            sample(rng, theta, data.state, params, row)
            if count < dim:
                for p in range(count):
                    q = p + int(pick_rng.random() * (dim - p))
                    order[p], order[q] = order[q], order[p]
            step = capped_step(path.steps[i] * dim / count, curvature(theta, row, params))
            h = probes.spacings[i]
            for p in range(count):
                j = order[p]
                here = theta[j]
                theta[j] = here + h
                above = loss(theta, row, params)
                theta[j] = here - h
                below = loss(theta, row, params)
                theta[j] = here
                moves[p] = step * (above - below) / (2.0 * h)
            for p in range(count):
                theta[order[p]] -= moves[p]
            note(theta, path.thetas[i])

    return zeroth_steps


def _is_permutation(state: State) -> bool:
    order = state["kept"]["order"]
    return np.array_equal(np.sort(order), np.arange(len(order)))


class ZerothOrderSGD(Learner):
    """SGD that evaluates the loss only, never a gradient.

    Parameters
    ----------
    problem : Problem
        Must have a `loss`.
    probes : int, optional
        Number m of coordinates that are probed per row; all by default.
    spacing : schedule, optional
        Distance h_k of the two evaluations from theta.

    Raises
    ------
    InputError
        The problem has no `loss`, or `probes` exceeds its dimension.

    Examples
    --------
    >>> import halfwidth as hw
    >>> learner = hw.ZerothOrderSGD(hw.problem("iid-linear", dim=3), probes=2, seed=0).run(500)
    >>> learner.n_seen
    500
    """

    name = "zeroth-order"
    settings: ClassVar[Fields] = {
        "probes": Whole(1, doc="coordinates probed per row"),
        "spacing": schedule_field("PowerStep", "ConstantStep", doc="distance of the evaluations from theta"),
    }
    kept: ClassVar[Fields] = {
        "order": Array(("d",), "i", doc="the coordinates, in the order in which they were last drawn")
    }
    relations = (Relation("have in `kept.order` every coordinate once", _is_permutation),)
    generators = ("rng", "_pick_rng")

    def __init__(
        self,
        problem: Problem,
        *,
        probes: int | None = None,
        spacing: Schedule | None = None,
        **options: Unpack[LearnerOptions],
    ) -> None:
        self.probes = problem.dim if probes is None else check_count("probes", probes)
        if self.probes > problem.dim:
            raise InputError.of("probes", f"be at most the dimension {problem.dim}", probes)
        self.spacing: Schedule = PowerStep(0.1, 0.505) if spacing is None else spacing
        super().__init__(problem, **options)

    def _prepare(self) -> None:
        problem = self.problem
        if problem.loss is None:
            raise InputError(
                f"zeroth-order SGD needs the loss, and problem {problem.name!r} has none; "
                "give Problem(..., loss=...) or use SGD with gradients"
            )
        self._pick_rng = self.rng.spawn(1)[0]  # of its own, so that the rows are those of every other learner
        self._order = np.arange(problem.dim)
        self._moves = np.empty(self.probes)
        self._set_loops(probe, problem.loss, problem.curvature or no_cap)

    def _walk(self, draw: bool, rows: Vector, thetas: Vector, k: Indices) -> None:
        probes = Probes(self.spacing(k), self._order, self._moves)
        self._run_loop(draw, rows, thetas, self.step(k), 0, self._pick_rng, probes)
