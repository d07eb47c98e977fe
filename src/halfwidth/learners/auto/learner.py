"""`auto`: an interval that chooses its own steps, centre and batches.

It looks at past rows, the gradient and, if there is one, the Hessian at fixed data; at nothing else. Rows are gathered
into chunks of m (64, or 128 above 24 dimensions); theta is deployed for a whole chunk and moves at its end. Rows that
do not fill a chunk yet wait: they count in `n_seen`, and enter the answer with their chunk.

| rows                | what happens                                                                              |
|---------------------|-------------------------------------------------------------------------------------------|
| to N0               | theta_0 is deployed, then a damped Newton over these rows (`start`)                       |
| to 2 N0             | preconditioned steps from there (`chunks`)                                                |
| to 4 N0             | the deployed thetas are averaged: the average is the first linearisation point            |
| from 4 N0 on        | batches of the linearised equation (`batches`), regression of the response (`response`)   |
| every 20% more rows | a refresh: mean Hessian H, response J, preconditioner P = (H + J)^-1, linearisation point |

N0 is the first multiple of m from max(512, 10 d) on. Steps are min(k^-0.505, 0.35 / (m + d + 1)) for the chunk's
gradient sum, and at most k^-2/3 once an answer of the data was seen over 32 renewals of theta times its gain
(`response`): an answer that is curved in theta shifts the centre by a multiple of the variance of the deployed theta,
which is of the order of the step, and with k^-0.505 that stays the same number of standard errors at every n. Any
earlier, theta would not move enough to show what the answer is. At a refresh the linearisation point moves to

    (sum A' + n_0 (H + J))^-1 (sum B' + n_0 (H + J) point_0),

with the point where estimation began as a prior worth n_0 rows, half of those before it: without it the moves are not
nearly uncorrelated with the rows, and the correction Q overshoots. A move along which the gradient is not linear
enough (`bent` above 0.3 on the chunk at hand) is shortened and estimation begins anew from there.

Without a Hessian, differences of gradients make one on every fourth chunk, forwards and backwards in turn, and on each
of the first chunks of estimation; the chunks between take over the last one. The spacing is 1/20 of what one row moves
a Newton step by.

Equations: `halfwidth.learners.auto.dyadic_batches`; page: docs/auto.md. The centre is after one-step estimation (L. Le
Cam 1956), the batches after Singh, Shukla and Vats (2023); response, rebasing and their combination are halfwidth's.

| text                     | here                                      |
|--------------------------|-------------------------------------------|
| point, point_0, previous | `_point`, `_origin`, `_previous`          |
| H, J, P                  | `_mean_hessian`, `_J`, `_P`               |
| the last H_c made        | `_H`                                      |
| Q, D                     | `_Q`, `_D`                                |
| n_0                      | `_prior_rows`                             |
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.errors import Diverged
from halfwidth.inference import Diagnostics
from halfwidth.inference.batch_result import BatchesResult
from halfwidth.inference.student_law import StudentLaw
from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.compile import specialise
from halfwidth.kernels.rows import any_row, finite_row, finite_rows, no_rows
from halfwidth.learners.auto import status
from halfwidth.learners.auto.chunks import with_differences, with_hessian
from halfwidth.learners.auto.dyadic_batches import FIRST_CHUNKS, Batches
from halfwidth.learners.auto.feedback import Response, ResponseNotes, regress
from halfwidth.learners.auto.field import DifferencedField, Field, StaticField
from halfwidth.learners.auto.newton_start import inverse, solution, warm_newton
from halfwidth.learners.own_result import OwnResult
from halfwidth.learners.trajectory import Seed
from halfwidth.learners.warm_start import collect_rows
from halfwidth.problems import Problem
from halfwidth.schedules import PowerStep
from halfwidth.watchers import Watcher

_STEP, _ANSWERED_STEP = PowerStep(1.0, 0.505), PowerStep(1.0, 2.0 / 3.0)
_LARGEST_STEP = 0.35
_LEARNED_RENEWALS = 32.0
_GROWTH, _RESPONSE_GROWTH = 1.2, 1.5
_WEIGHED_CHUNKS = 8
_RESTART_UNTIL = 64
_SPACING, _PROBED = 0.05, 4
_FEWEST_BATCHES = 4
_BIG_DIM = 24
_PIECE_NUMBERS = 262_144


def _diverged(row: int, rows: int) -> Diverged:
    return Diverged(
        f"theta left the finite numbers at row {row:,}: look for extreme values in the {rows:,} rows up to it; scale "
        "the columns to about one, or start nearer to the solution (theta_0)"
    )


class Auto(OwnResult):
    """Learns, and says how sure it is; `gradient_only` does without the problem's Hessian."""

    name = "auto"
    checks_rows = True

    def __init__(
        self,
        problem: Problem,
        *,
        gradient_only: bool = False,
        watchers: Sequence[Watcher] = (),
        seed: Seed = 0,
        theta_0: ArrayLike | None = None,
    ) -> None:
        super().__init__(problem, step=_STEP, watchers=watchers, seed=seed, theta_0=theta_0)
        if gradient_only:
            self.name = "auto-gradient"
        dim = problem.dim
        self.differences = gradient_only or problem.hessian is None
        self._field: Field = DifferencedField(problem) if self.differences else StaticField(problem)
        loop = (with_differences,) if self.differences else (with_hessian, problem.hessian)
        self._drawing, self._given = (
            specialise(loop[0], *source, problem.gradient, *loop[1:])
            for source in ((problem.sample or no_rows, any_row), (no_rows, finite_row))
        )
        self._m = 64 if dim <= _BIG_DIM else 128
        self._first = -(-max(512, 10 * dim) // self._m) * self._m  # N0
        self._largest_step = _LARGEST_STEP / (self._m + dim + 1.0)
        self._buffer = np.empty((self._first, problem.row_size))
        size = max(self._m, _PIECE_NUMBERS // dim)
        self._rows, self._thetas = np.empty((size, problem.row_size)), np.empty((size, dim))
        self._chunk, self._filled = np.empty((self._m, problem.row_size)), 0
        self._k = 0  # rows in finished chunks
        self._phase = 0  # 0: moving, 1: averaging, 2: estimating
        self._point, self._previous, self._origin = (self._theta.copy() for _ in range(3))
        self._P, self._J, self._H, self._hessian_sum = (np.zeros((dim, dim)) for _ in range(4))
        self._hessian_rows = 0
        self._Q, self._D, self._bends = (np.zeros(dim) for _ in range(3))
        self._start_hessian: Vector | None = None
        self._batches = Batches(dim, self._m, triangle=not self.differences)
        self._notes = ResponseNotes(dim)
        self._began, self._restarts, self._prior_rows = 0, 0, 0.0
        self._next_refresh, self._next_response = 0, 0
        self._weighed: int | None = None  # chunks since the point moved, until the move is weighed
        self._bent, self._learned = 0.0, False
        self._chunks, self._held = 0, 0
        self._spacing = np.zeros(dim)
        self._turn, self._whole = 0, 0  # of the differences: the next chunk's, and how many chunks each make them

    # ---- rows in

    def _walk(self, draw: bool, rows: Vector, thetas: Vector, k: NDArray[np.int64]) -> int:
        at = self._gather(draw, rows, thetas) if self._k == 0 else 0
        while at < len(rows) and self._k:
            plan = self._plan()
            used, self._filled, done, held = (self._drawing if draw else self._given)(
                self.rng if draw else None,
                self._theta,
                self._state,
                self.problem.params,
                rows[at:],
                thetas[at:] if self.watchers else thetas[:0],
                self._theta_0,
                self._total,
                plan,
                self._chunk,
                self._filled,
                self._weighed is not None,
                (self._point, self._previous, self._origin, self._P, self._J, self._Q, self._spacing),
                self._batches.arrays(),
                self._batches.open,
                self._batches.length,
                (self._D, self._H),
                self._notes.pages(),
            )
            if not math.isfinite(self._theta.sum()):
                raise _diverged(self._k + done * self._m, self._m)
            at += used
            self._held += held
            if done:
                self._advance(done)
            if done < len(plan):
                break  # the rows are used up, or the next one is not finite
        return at

    def _add_to_total(self, thetas: Vector) -> None:
        """The loop has done that."""

    def _gather(self, draw: bool, rows: Vector, thetas: Vector) -> int:
        """Collect the first N0 rows, then begin; returns how many of the rows that took."""
        new = rows[: self._first - self._filled]
        if draw:
            collect_rows(self.problem, self.rng, self._theta, self._state, new)
        else:
            new = new[: finite_rows(new)]
        self._buffer[self._filled : self._filled + len(new)] = new
        thetas[: len(new)] = self._theta
        self._filled += len(new)
        if self._filled == self._first:
            self._begin()
            thetas[len(new) - 1] = self._theta
            self._total += self._theta - self._theta_0
        return len(new)

    def _begin(self) -> None:
        start = warm_newton(self._field, self._theta, self._buffer)
        for place in (self._theta, self._point, self._previous, self._origin):
            place[:] = start.theta
        self._start_hessian = start.hessian
        self._P[:] = inverse(start.ridged / self._first)
        if self.differences:
            moves = self._field.gradients(start.theta, self._buffer) @ self._P.T
            scale = np.sqrt(np.square(moves).mean(axis=0))
            self._spacing[:] = _SPACING * np.where(scale > 0.0, scale, np.maximum(1.0, np.abs(start.theta)))
        self._buffer = self._buffer[:0].copy()
        self._filled, self._k = 0, self._first
        self._next_refresh = self._k + 4 * self._m

    # ---- what happens between chunks

    def _plan(self) -> Vector:
        """The steps and differences of the chunks until something else has to happen."""
        chunks = min(self._batches.room, self._notes.room)
        if self._weighed is not None:
            chunks = min(chunks, _WEIGHED_CHUNKS - self._weighed)
        else:
            chunks = min(chunks, -(-(self._next_refresh - self._k) // self._m))
        if self._phase < 2:
            chunks = min(chunks, (2 * (self._phase + 1) * self._first - self._k) // self._m)
        if self._whole:
            chunks = min(chunks, self._whole)
        plan = np.zeros((chunks, 2))
        plan[:, 0] = self._steps(chunks)
        if self.differences:
            every = 1 if self._whole else _PROBED
            turns = self._turn + np.arange(chunks)
            plan[:, 1] = np.where(turns % every == 0, 1.0 - 2.0 * (turns // every % 2), 0.0)
        return plan

    def _steps(self, chunks: int) -> Vector:
        """The steps of the next chunks, as planned."""
        ends = self._k + self._m * np.arange(1, chunks + 1)
        steps = np.minimum(self.step(ends), self._largest_step)
        return np.minimum(steps, _ANSWERED_STEP(ends)) if self._learned else steps

    def _advance(self, done: int) -> None:
        """So many chunks are in the sums: do what is due."""
        self._notes.note(self._m * self._steps(done), self._point - self._origin, self._bends)
        self._k += done * self._m
        self._chunks += done
        self._batches.note()
        self._turn += done
        if self._whole:
            self._whole -= done
            if self._whole == 0:
                self._turn, self._start_hessian = 0, None
        if self._weighed is not None:
            self._weighed += done
            if self._weighed == _WEIGHED_CHUNKS:
                self._rebase()
        if self._weighed is None and self._k >= self._next_refresh:
            self._refresh()
        if self._phase == 0 and self._k >= 2 * self._first:
            self._phase = 1
            self._clear_batches()
            if not self.differences:
                self._start_hessian = None
        elif self._phase == 1 and self._k >= 4 * self._first:
            self._phase = 2
            self._point[:] = self._origin + self._batches.T.sum(axis=0) / self._batches.rows
            self._prior_rows = 0.5 * self._k
            self._estimate_from_here()

    def _estimate_from_here(self) -> None:
        """Forget all sums but the mean Hessian's; the point becomes their origin and the prior's centre."""
        self._origin[:] = self._point
        self._previous[:] = self._point
        self._began = self._k
        self._clear_batches()
        self._notes.clear()
        self._bends[:] = 0.0
        self._Q[:] = 0.0
        self._D[:] = 0.0
        self._weighed = None
        self._next_refresh = self._next_response = self._k + self._k // 4
        if self.differences:
            self._turn, self._whole = 0, max(8, self._first // self._m)

    def _clear_batches(self) -> None:
        """Forget the batches, but for their part of the mean Hessian."""
        self._hessian_sum += self._batches.curvature()
        self._hessian_rows += self._batches.rows
        self._batches.clear()

    def _mean_hessian(self, curvature: Vector) -> Vector:
        """The mean static Hessian a row, from all rows but those of the buffer once it is forgotten.

        `curvature` is the part that is in the batches.
        """
        total, rows = self._hessian_sum + curvature, self._hessian_rows + self._batches.rows
        if self._start_hessian is not None:
            total, rows = total + self._start_hessian, rows + self._first
        return np.asarray(total / rows)

    def _refresh(self) -> None:
        """Renew preconditioner, response and linearisation point."""
        curvature = self._batches.curvature()
        H = self._mean_hessian(curvature)
        if self._phase < 2:
            self._next_refresh = self._k + 4 * self._m
        else:
            self._next_refresh = max(int(_GROWTH * self._k), self._k + _WEIGHED_CHUNKS * self._m)
            if self._k >= self._next_response:
                self._next_response = int(_RESPONSE_GROWTH * self._k)
                response = regress(self._notes.moments(), H, self._m)
                self._J[:] = response.steering
                self._learned = response.kept > 0.0 and response.renewals >= _LEARNED_RENEWALS * response.gain
        self._P[:] = inverse(H + self._J)
        if self._phase == 2:
            self._move_point(H, curvature)

    def _move_point(self, H: Vector, curvature: Vector) -> None:
        rows = self._batches.rows
        A = curvature + rows * self._J
        B = self._batches.right_side(self._J, self._Q)
        step = self._origin + solution(A + self._prior_rows * (H + self._J), B) - self._point
        if not math.isfinite(step.sum()):
            raise _diverged(self._k, self._k - self._began)
        bends = self._field.along(self._point, step, self._chunk)
        change = self._field.gradient(self._point + step, self._chunk) - self._field.gradient(self._point, self._chunk)
        bend = abs(float(step @ bends))
        self._bent = abs(float(step @ (change - bends))) / bend if bend > 0.0 else 0.0
        self._previous[:] = self._point
        if self._bent > status.MOST_BENT:
            self._point += step * (status.MOST_BENT / self._bent)
            if self._k < _RESTART_UNTIL * self._first:
                self._restarts += 1
                self._prior_rows += self._batches.rows
                self._estimate_from_here()
                return
        else:
            self._point += step
        self._bends[:] = self._m * (H @ (self._point - self._origin))
        self._D[:] = 0.0
        self._weighed = 0

    def _rebase(self) -> None:
        """The last move is weighed: correct all rows from before it."""
        self._D /= _WEIGHED_CHUNKS * self._m
        self._Q += self._D
        self._batches.give_back(self._D)
        self._weighed = None

    # ---- the answer

    def _rows_needed(self) -> int:
        began = self._began or 4 * self._first
        return began + _FEWEST_BATCHES * FIRST_CHUNKS * self._m

    def _own_result(self) -> BatchesResult:
        H = self._batches.curvature() / self._batches.rows
        response = regress(self._notes.moments(), H, self._m)
        D = self._D / (self._weighed * self._m) if self._weighed else np.zeros(self.problem.dim)
        equation = self._batches.equation(response.J, self._Q + D, D)
        centre, influences = equation.solve()
        K, n = len(influences), int(equation.rows.sum())
        covariance = n * K / (K - 1.0) * (influences.T @ influences)
        freedom = response.degrees_of_freedom(K)
        law, diagnostics = StudentLaw(freedom), Diagnostics(freedom)
        result = BatchesResult(self._origin + centre, covariance, n, law, self.name, diagnostics, influences=influences)
        facts = self._known(response)
        return result.with_facts(*status.flags(facts, result), notes=status.notes(facts, result))

    def _known(self, response: Response) -> status.Facts:
        told = "the problem's Hessian"
        if self.differences:
            told = "differences of gradients on the same rows"
            if self.problem.hessian is None and self.name == "auto":
                told += ", as the problem has no Hessian"
        return status.Facts(
            n_seen=self.n_seen,
            burn_in=4 * self._first,
            began=self._began,
            chunk_rows=self._m,
            batch_rows=self._batches.length,
            differences=told,
            response=response,
            held_share=self._held / self._chunks,
            bent=self._bent,
            restarts=self._restarts,
        )

    def _facts(self) -> dict[str, Any]:
        return {"capped_share": self._held / max(self._chunks, 1)}
