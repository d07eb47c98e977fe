"""The one-step centre, with batch means of pseudo-values.

Beside the steps of capped SGD every row is expanded at the running mean of the iterates before it, with gradient g_k
and Hessian H_k at theta_bar_{k-1}:

    A = sum H_k,   B = sum H_k theta_bar_{k-1} - g_k,   centre c = A^-1 B.

Steps move the linearisation points only, so the bias of the average, of the order of the steps, is gone from c to first
order; for squared loss c is least squares, exactly. With the batch's own sums A_j, B_j the influence of a batch, which
is what deleting it does to c, and the covariance are

    r_j = B_j - A_j c,   u_j = (A - A_j)^-1 r_j,   Sigma = n sum_j u_j u_j',

and every direction is t with its own degrees of freedom (`halfwidth.equation.jackknife`), about K - 1 for a column that
is much the same in all of the K batches.

The length of the batches is chosen from the data. Residuals mix as fast as the rows do, unless data are
state-dependent: then they contain the feedback J (theta_{k-1} - theta*), as slow as the deployed steps. So it begins
with the shortest batches that are kept, between 128 and 256, of 50 rows at first. If S_2b or S_4b exceeds S_b by one
standard deviation (`halfwidth.inference.batch_result`) in the median coordinate, the longer ones are taken: batches are
doubled to at least five correlation times of the last steps, 5 tau = 5 / (eta_n lambda) with the smallest eigenvalue
lambda of A / n, and further while S_2b or S_4b exceed S_b; there are never fewer than 8. Directions for which two or
four times the length give more by three standard deviations are widened on their own.

With state-dependent data this c has the limit of the average, but -A^-1 J times the bias of the average is left in it,
and lambda does not contain J: where J nearly cancels A, batches of 5 tau are too short.

L. Le Cam, *On the asymptotic theory of estimation and testing hypotheses* (1956), for one-step estimation;
linearisation at the running mean, the batches and the choice of their length are halfwidth's.

| formula         | here                                       |
|-----------------|--------------------------------------------|
| theta_bar_{k-1} | `mean`                                     |
| A_j, B_j        | `_batches`, with theta relative to theta_0 |
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from halfwidth.equation import BatchStore, Equation, restored_store
from halfwidth.equation.result import EquationResult, Jackknifed
from halfwidth.inference.batch_result import in_pairs, inflations, too_short
from halfwidth.inference.trail import Trail, influence_trail
from halfwidth.kernels.arrays import Function, Indices, Vector
from halfwidth.kernels.rows import Path, RowData
from halfwidth.kernels.steps import capped_step
from halfwidth.learners.learner_state import State, batches_hold_iterates
from halfwidth.learners.newton.expansion import stream_batches
from halfwidth.learners.sgd.row_expansions import ExpandingLearner, RowExpansions
from halfwidth.state.containers import Nested
from halfwidth.state.fields import Array, Fields
from halfwidth.state.schema import Relation

FIRST_LENGTH = 50
FEWEST_BATCHES = 8
CORRELATION_TIMES = 5.0
DOUBT = 1.0
"""So many standard deviations make batches longer. Without feedback this costs 2% of the width in five dimensions and
8% in one; three of them miss most feedback at 5,000 rows (performative mean: 0.81 covered, not 0.90)."""


def gather(sample: Function, gradient: Function, curvature: Function, hessian: Function) -> Function:
    """The loop of capped SGD that expands each row at the running mean."""

    def one_step_steps(rng: np.random.Generator | None, data: RowData, path: Path, work: RowExpansions) -> None:
        theta, params, mean, grad = path.theta, data.params, work.mean, work.grad
        dim = theta.shape[0]
        for i in range(data.rows.shape[0]):
            row, u = data.rows[i], work.directions[i]
            sample(rng, theta, data.state, params, row)
            w, c = hessian(mean, row, params, u)
            work.weights[i], work.shifts[i] = w, c
            gradient(mean, row, params, grad)
            along = 0.0
            for j in range(dim):
                along += u[j] * (mean[j] - path.origin[j])
            for j in range(dim):
                work.vectors[i, j] = w * along * u[j] + c * (mean[j] - path.origin[j]) - grad[j]
            gradient(theta, row, params, grad)
            step = capped_step(path.steps[i], curvature(theta, row, params))
            for j in range(dim):
                theta[j] -= step * grad[j]
                path.thetas[i, j] = theta[j]
                mean[j] += (theta[j] - mean[j]) / (path.first + i + 1)

    return one_step_steps


@dataclass(frozen=True)
class OneStepResult(EquationResult):
    """A result with the influences (K, d) of its batches; longer ones are taken wherever they give more."""

    influences: Vector = field(default_factory=lambda: np.empty((0, 0)))

    @property
    def bse(self) -> Vector:
        """Standard errors of the coefficients; NaN for those without an interval."""
        factors = inflations(self.influences, self.degrees_of_freedom(np.eye(self.params.size)))
        return np.asarray(np.sqrt(np.diag(self.covariance) / self.n) * factors)

    def _trail(self) -> Trail:
        return influence_trail(self.params, self.influences, self.n)

    def _variances(self, rows: Vector) -> Vector:
        factors = inflations(self.influences @ rows.T, self.degrees_of_freedom(rows))
        return np.asarray(super()._variances(rows) * factors**2)


class OneStep(ExpandingLearner):
    """Capped SGD with a one-step centre and batch means of its residuals.

    Notes
    -----
    Every row is expanded at the running mean of the iterates; the centre is the root of the sum of the expansions, so
    that the bias of the average, of the order of the steps, is gone to first order. The length of the batches is chosen
    from the data; the flag `short-batches` says when even the longest are correlated. Where data are state-dependent
    prefer `Auto`, which estimates the feedback.

    References
    ----------
    L. Le Cam, *On the asymptotic theory of estimation and testing hypotheses* (1956), for one-step estimation.

    Examples
    --------
    >>> import halfwidth as hw
    >>> world = hw.problem("ar-linear", dim=2)
    >>> result = hw.OneStep(world, seed=0).run(5_000).result()
    >>> bool(result.interval([1.0, 0.0]).covers(world.theta_star[0]))
    True
    """

    name = "one-step"
    kept: ClassVar[Fields] = {"mean": Array(("d",), doc="running mean of the iterates")}
    parts: ClassVar[Fields] = {"batches": Nested(BatchStore.SCHEMA, doc="the linearised equation in batches")}
    relations = (Relation("have every iterate that counts in `parts.batches`", batches_hold_iterates),)

    def _prepare(self) -> None:
        self._set_expanding_loop(gather, "the one-step centre", "'auto-gradient'")
        self._batches = stream_batches(self.problem.dim, FIRST_LENGTH)

    def _forget(self) -> None:
        self._batches.clear()

    def _rows_needed(self) -> int:
        return FEWEST_BATCHES * FIRST_LENGTH

    def _walk(self, draw: bool, rows: Vector, thetas: Vector, k: Indices) -> None:
        part, work = self._noted(len(rows))
        self._run_loop(draw, rows, thetas, self.step(k), self._averaged(k), work)
        part.enter(self._batches)

    def _parts(self) -> State:
        return {"batches": self._batches.to_state()}

    def _restore_parts(self, state: State) -> None:
        self._batches = restored_store(self._batches, state["batches"])

    def _own_result(self) -> OneStepResult:
        n, shortest = self.n_iterates, self._batches.length
        equation = Equation.of(self._batches)
        centre, influences = equation.solve()
        floor = CORRELATION_TIMES * self._correlation_time(equation.A.sum(axis=0) / n)
        chosen, length = long_enough(influences, shortest, floor)
        while len(equation.rows) > len(chosen):
            equation = equation.in_pairs()
        K = len(chosen)
        notes = f"batches: {K} of {length:,} rows"
        if length > shortest:
            notes += f"; those of {shortest:,} rows were still correlated, and steps forget over {floor / 5:,.0f}"
        flags: tuple[tuple[str, str], ...] = ()
        if too_short(chosen) or shortest < length < floor:
            text = (
                f"batches of {length:,} rows are still correlated, the interval is likely too short; feed more rows, "
                "or take larger steps"
            )
            flags = (("short-batches", text),)
        found = Jackknifed.of(equation, equation.residuals(centre), independent=True)
        return OneStepResult(
            self._theta_0 + centre, n * found.covariance, n, found.law, self.name, found.diagnostics(flags, (notes,)),
            errors=found.errors, basis=np.eye(len(centre)), df=found.df, influences=found.along.deleted.influences,
        )  # fmt: skip

    def _correlation_time(self, hessian: Vector) -> float:
        """1 / (eta_n lambda), in rows; infinite where the mean Hessian is not positive."""
        smallest = float(np.linalg.eigvalsh(hessian)[0])
        last = float(self.step(np.array([self.n_seen - self.warm_start]))[0])
        return 1.0 / (last * smallest) if smallest > 0.0 else math.inf


def long_enough(influences: Vector, length: int, floor: float) -> tuple[Vector, int]:
    """Influences of batches as long as the rule above says, and their length."""
    if not too_short(influences, DOUBT):
        return influences, length
    while len(influences) >= 2 * FEWEST_BATCHES and (length < floor or too_short(influences, DOUBT)):
        influences, length = in_pairs(influences), 2 * length
    return influences, length
