"""Renewable Newton on a problem's own stream: chunks of rows, no step size.

Rows come while theta_{j-1} is deployed, in chunks of m = max(256, 8 d). When chunk j is full, theta moves to

    theta_j = argmin loss_j(theta) + (theta - c_{j-1})' A_{j-1} (theta - c_{j-1}) / 2,

by damped Newton steps, and the chunk is expanded there:

    U_j = -grad loss_j(theta_j),   H_j = hess loss_j(theta_j),   A_j = A_{j-1} + H_j,
    c_j solves sum_i U_i + H_i (theta_i - c) = 0.

For squared loss c is least squares, exactly. A prior of one row's weight around theta_0 tames first chunks that do not
identify theta_j; it moves theta_j only, where the loss is expanded, and never enters the equation for c. Rows of a
chunk that is not full yet are expanded when a result is asked for. A burn-in moves theta_j and is then left out of c.

The covariance of c comes from deleting batches, between 128 and 256 of them, of 8 rows at first, under a kernel that
sees what is correlated across them; every coefficient has its own degrees of freedom (`halfwidth.equation.errors`).

Steps are damped by the gradient alone, so that no loss has to be given (`halfwidth.equation.newton`).

It is wrong when the data answer to theta, with J = d/dtheta' E_{pi_theta'} grad F(theta) other than zero. As c_j weighs
all rows so far alike, it is then a stochastic approximation with steps 1/k and Jacobian I + H^-1 J: where an eigenvalue
of that is below 1/2 the start is forgotten slower than 1/sqrt(n), and the interval never covers.

L. Luo and P. X.-K. Song, *Renewable estimation and incremental inference in generalized linear models with streaming
data sets*, JRSS B 82 (2020); the batches of scores are halfwidth's. Regressions, with scaled columns, groups of rows
and a correction for what the expansions leave out: `halfwidth.learners.newton.renewable`.

| formula                    | here                                          |
|----------------------------|-----------------------------------------------|
| theta_j                    | `theta`, and `theta_0` before the first chunk |
| A_j                        | `_curvature`                                  |
| sum U + H (theta - theta_0)| `_score`                                      |
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from halfwidth.equation import BatchStore, Equation, restored_store, solve_spd
from halfwidth.equation.newton import damped_newton
from halfwidth.equation.result import EquationResult, Jackknifed
from halfwidth.inference.longrun import FEW_DEGREES_OF_FREEDOM, long_dependence
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.learner_state import State, batches_hold_iterates
from halfwidth.learners.newton.expansion import Expansion, expand_at, stream_batches
from halfwidth.learners.own_result import OwnResult, needed_hessian
from halfwidth.learners.warm_start import collect_rows
from halfwidth.state.containers import Nested
from halfwidth.state.fields import Array, Fields, Whole
from halfwidth.state.schema import Relation

CHUNK_ROWS = 256
ROWS_PER_COEFFICIENT = 8
FIRST_LENGTH = 8
FEWEST_BATCHES = 8
_SETTLED = 1e-8


def _rows_fit(state: State) -> bool:
    kept = state["kept"]
    waiting = kept["filled"] - kept["forgotten"]
    return waiting >= 0 and kept["filled"] < len(kept["chunk"]) and batches_hold_iterates(state, waiting)


class ChunkedNewton(OwnResult):
    """Renewable Newton on a problem's own stream, with its gradient and Hessian; no step size is needed.

    Notes
    -----
    Chunks of rows are linearised at the estimate so far; the result is the root of the sum of the linearised equations,
    with errors from deleting batches under a kernel, and degrees of freedom of every coefficient. Not valid for
    state-dependent data. A `step` given to it serves a warm start only.

    References
    ----------
    L. Luo and P. X.-K. Song, *Renewable estimation and incremental inference in generalized linear models with
    streaming data sets*, JRSS B 82 (2020).

    Examples
    --------
    >>> import halfwidth as hw
    >>> learner = hw.ChunkedNewton(hw.problem("iid-linear", dim=2), seed=0).run(2_000)
    >>> learner.result().covariance.shape
    (2, 2)
    """

    name = "renewable-newton"
    kept: ClassVar[Fields] = {
        "chunk": Array(("chunk_rows", "row_size"), doc="rows of the open chunk, and old ones after them"),
        "filled": Whole(doc="how many of them are in the open chunk"),
        "forgotten": Whole(doc="how many of those belong to the burn-in"),
        "prior": Array(("d", "d"), doc="a prior of one row's weight"),
        "score": Array(("d",), doc="sum of U + H (theta - theta_0)"),
        "curvature": Array(("d", "d"), doc="sum of H"),
    }
    parts: ClassVar[Fields] = {"batches": Nested(BatchStore.SCHEMA, doc="the linearised equation in batches")}
    relations = (Relation("have every iterate that counts in `parts.batches` or in the open chunk", _rows_fit),)

    def _prepare(self) -> None:
        needed_hessian(self.problem, "renewable Newton", "'auto-gradient'")
        dim = self.problem.dim
        self._chunk = np.zeros((max(CHUNK_ROWS, ROWS_PER_COEFFICIENT * dim), self.problem.row_size))
        self._filled = 0
        self._forgotten = 0  # rows of the open chunk that belong to the burn-in
        self._prior, self._score, self._curvature = np.zeros((dim, dim)), np.zeros(dim), np.zeros((dim, dim))
        self._batches = stream_batches(dim, FIRST_LENGTH)

    def _forget(self) -> None:
        self._batches.clear()
        self._forgotten = self._filled

    def _parts(self) -> State:
        return {"batches": self._batches.to_state()}

    def _restore_parts(self, state: State) -> None:
        self._batches = restored_store(self._batches, state["batches"])

    def _rows_needed(self) -> int:
        return max(FEWEST_BATCHES * FIRST_LENGTH, 2 * self.problem.dim)

    def _walk(self, draw: bool, rows: Vector, thetas: Vector, k: NDArray[np.int64]) -> None:
        at = 0
        while at < len(rows):
            new = rows[at : at + len(self._chunk) - self._filled]
            if draw:
                collect_rows(self.problem, self.rng, self._theta, self._state, new)
            self._chunk[self._filled : self._filled + len(new)] = new
            self._filled += len(new)
            thetas[at : at + len(new)] = self._theta
            at += len(new)
            if self._filled == len(self._chunk):
                self._renew()
                thetas[at - 1] = self._theta

    def _renew(self) -> None:
        """Expand the full chunk, add it up, and deploy the point of expansion."""
        if not self._prior.any():
            hessian = expand_at(self.problem, self._theta_0, self._chunk).hessian()
            self._prior[:] = np.diag(np.diag(hessian)) / len(self._chunk)
        self._theta[:], expansion, hessian = self._expanded(self._chunk)
        self._score += expansion.vectors.sum(axis=0)
        self._curvature += hessian
        expansion[self._forgotten :].enter(self._batches)
        self._filled = self._forgotten = 0

    def _expanded(self, rows: Vector) -> tuple[Vector, Expansion, Vector]:
        """theta_j, the rows expanded there relative to theta_0, and the sum of their Hessians."""
        Q = self._curvature + self._prior
        centre = self._theta_0 + solve_spd(Q, self._score)
        expansion = expand_at(self.problem, centre, rows)

        def gradient(theta: Vector) -> Vector:
            nonlocal expansion
            expansion = expand_at(self.problem, theta, rows)
            return np.asarray(expansion.vectors.sum(axis=0) + Q @ (theta - centre))

        found = damped_newton(gradient, lambda _: expansion.hessian() + Q, centre, _SETTLED, relative=True)
        theta, hessian = found.theta, found.hessian - Q
        return theta, expansion.relative_to(theta - self._theta_0), hessian

    def _own_result(self) -> EquationResult:
        n, batches = self.n_iterates, self._batches
        if self._filled > self._forgotten:
            batches = batches.copy()
            self._expanded(self._chunk[: self._filled])[1][self._forgotten :].enter(batches)
        equation = Equation.of(batches)
        centre, _ = equation.solve()
        found = Jackknifed.of(equation, equation.residuals(centre))
        K, bandwidth, length = found.errors.batches, found.errors.bandwidth, batches.length * found.errors.merged
        notes = (f"batches: {K} of {length:,} rows, covariances over about {bandwidth * length:,.0f} rows",)
        flag = long_dependence(n, K, bandwidth, FEW_DEGREES_OF_FREEDOM)
        diagnostics = found.diagnostics(() if flag is None else (flag,), notes)
        return EquationResult(
            self._theta_0 + centre, n * found.covariance, n, found.law, self.name, diagnostics, errors=found.errors,
            basis=np.eye(len(centre)), df=found.df,
        )  # fmt: skip
