"""The engine of `auto` where data cannot respond to theta: renewable Newton on the equation; every row counts.

Rows are gathered into chunks of 1,024. A chunk is expanded at l, the root of everything before it; the root moves to

    c = (sum H + prior)^-1 (sum H l - g).

If the gradient of the chunk was not nearly linear from l to c, it is expanded again at the minimiser of its own loss
plus the quadratic that stands for all chunks before it, found by damped Newton steps (L. Luo and P. X.-K. Song 2020). A
prior worth about a row around theta_0, set for each column when a row first shows it, holds directions that the rows so
far do not determine; it moves linearisation points and never enters the equation of the result. What expansions leave
out is measured on a sample of rows (`row_sample`) and solved for, so that the result is the root of the rows' own
equation for all purposes; for a quadratic loss it is so exactly. Rows of a chunk that is not full are expanded when a
result is asked for.

Errors: batch jackknife under a quadratic spectral kernel, degrees of freedom of each coefficient
(`halfwidth.equation.errors`).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from halfwidth.equation import BatchStore, capacity_for
from halfwidth.equation.linear_algebra import whitening
from halfwidth.equation.newton import damped_newton
from halfwidth.errors import Diverged
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto.field import DifferencedField, Field, StaticField
from halfwidth.learners.auto.row_sample import RowSample
from halfwidth.problems import Problem

CHUNK_ROWS = 1_024
_NEARLY_LINEAR, _ROUGHLY_LINEAR = 0.02, 0.5
_CLOSE, _ROUNDS, _SETTLED = 1e-4, 12, 1e-6
_WIDTH, _ROUGH_WIDTH, _FIRST_WIDTH, _WIDER = 1e-3, 0.5, 1e-4, 2.0
_MOST_WIDENINGS, _NOTICED = 48, 1.0 / 16.0


class Root(NamedTuple):
    """What the rows so far say: the centre, what its correction is uncertain by, and whether that converged."""

    centre: Vector
    correction_error: Vector
    converged: bool


class GivenRows:
    """Sums of the equation over rows that are given, or drawn from data that do not respond."""

    def __init__(self, problem: Problem, theta_0: Vector, *, differences: bool) -> None:
        dim = problem.dim
        self.problem, self.differences = problem, differences
        self.theta_0, self.theta = theta_0.copy(), theta_0.copy()
        self.chunk, self.filled = np.zeros((CHUNK_ROWS, problem.row_size)), 0
        self.widths = _FIRST_WIDTH * np.maximum(1.0, np.abs(theta_0))
        self.field: Field = DifferencedField(problem, self.widths) if differences else StaticField(problem)
        capacity = capacity_for(dim)
        self.store = BatchStore(dim, max(1, 2 * CHUNK_ROWS // capacity), capacity, reference=theta_0)
        self.sample = RowSample(problem.row_size, dim)
        self.prior = np.zeros(dim)
        self.expanded_again = 0
        self.rough = False  # whether gradients jump

    @property
    def rows(self) -> int:
        return self.store.rows + self.filled

    @property
    def room(self) -> int:
        """How many rows the open chunk still takes."""
        return CHUNK_ROWS - self.filled

    def take(self, rows: Vector) -> None:
        """Put rows aside, at most `room`; expand the chunk when it is full."""
        self.chunk[self.filled : self.filled + len(rows)] = rows
        self.filled += len(rows)
        if self.filled == CHUNK_ROWS:
            self.expand(self.chunk)
            self.filled = 0

    def expand(self, rows: Vector) -> None:
        """Add the rows to the sums, expanded at the root so far or, where that is too far away, nearer to their own."""
        if self.differences:
            self._set_widths(rows)
        while self.store.room < len(rows):
            self.store.merge()
        edges = self.store.edges(len(rows))
        point = self.theta
        g, H = self.field.pieces(point, rows, edges)
        total, added = g.sum(axis=0), H.sum(axis=0)
        self._watch_columns(added, len(rows))
        target = self._root(added, added @ (point - self.theta_0) - total)
        if not self._nearly_linear(rows, point, target, total, added):
            self.expanded_again += 1
            point = self._chunk_minimum(rows, point)
            g, H = self.field.pieces(point, rows, edges)
            added = H.sum(axis=0)
            target = self._root(added, added @ (point - self.theta_0) - g.sum(axis=0))
        self.store.add(edges, H @ (point - self.theta_0) - g, H)
        self.sample.add(rows, point)
        if not np.isfinite(target).all():
            raise Diverged(
                f"non-finite numbers at row {self.store.rows:,}: look for extreme values in the {len(rows):,} rows up "
                "to it; scale the columns to about one, or start nearer to the solution (theta_0)"
            )
        self.theta = target

    def _root(self, H: Vector, b: Vector) -> Vector:
        """The root of all sums and these, with the prior; columns that no row has shown stay at theta_0."""
        A = self.store.curvature() + H
        seen = np.diag(A) != 0.0
        found = self.theta_0.copy()
        inside = np.ix_(seen, seen)
        try:
            found[seen] += np.linalg.solve(A[inside] + np.diag(self.prior[seen]), (self.store.score() + b)[seen])
        except np.linalg.LinAlgError:
            found[seen] = self.theta[seen]
        return found

    def _watch_columns(self, H: Vector, rows: int) -> None:
        appeared = (self.prior == 0.0) & (np.diag(H) != 0.0)
        self.prior[appeared] = np.abs(np.diag(H))[appeared] / math.sqrt(rows)

    def _nearly_linear(self, rows: Vector, point: Vector, target: Vector, g: Vector, H: Vector) -> bool:
        """Whether what the expansion leaves out moves the root by little of its own noise."""
        if not np.isfinite(target).all():
            return False
        step = target - point
        with np.errstate(all="ignore"):
            there = self.field.gradients(target, rows)
            left = there.sum(axis=0) - g - H @ step
            ridge = np.where(self.prior > 0.0, self.prior, 1.0)
            moved = left @ np.linalg.solve(self.store.curvature() + H + np.diag(ridge), left)
            noise = np.mean(np.square(there).sum(axis=0) / np.abs(np.diag(H) + ridge))
        return bool(0.0 <= moved <= (_ROUGHLY_LINEAR if self.rough else _NEARLY_LINEAR) ** 2 * abs(noise))

    def _chunk_minimum(self, rows: Vector, centre: Vector) -> Vector:
        """The minimiser of the chunk's loss plus the quadratic of all chunks before it."""
        past = self.store.curvature() + np.diag(np.where(self.prior > 0.0, self.prior, 1.0))
        past = 0.5 * (past + past.T)

        def gradient(theta: Vector) -> Vector:
            return np.asarray(self.field.gradient(theta, rows) + past @ (theta - centre))

        def hessian(theta: Vector) -> Vector:
            if self.rough:  # differences are noisy far from the minimum; this has the right shape there
                grads = self.field.gradients(theta, rows)
                return np.asarray(grads.T @ grads + past)
            H = self.field.hessian(theta, rows)
            return np.asarray(0.5 * (H + H.T) + past)

        return np.asarray(damped_newton(gradient, hessian, centre.copy(), _CLOSE, relative=True).theta)

    def _set_widths(self, rows: Vector) -> None:
        """Widths at which differences show something, forwards and backwards in turn.

        A thousandth of what a row moves a Newton step by. If fewer than half of the rows notice that, gradients jump:
        widths grow until a sixteenth of them do, and are n^(-1/5) / 2 of that move from then on.
        """
        A, n = np.abs(np.diag(self.store.curvature())), self.store.rows
        grads = self.field.gradients(self.theta, rows)
        size = np.sqrt(np.square(grads).mean(axis=0))
        if n:
            width = _ROUGH_WIDTH * (n + len(rows)) ** -0.2 if self.rough else _WIDTH
            scale = size * n / np.where(A > 0.0, A, np.inf)
            self.widths[:] = np.where(scale > 0.0, width * scale, np.abs(self.widths))
        if not n:
            for j in np.flatnonzero(size > 0.0).tolist():
                self._widen(j, rows, grads)
        self.widths *= 1.0 if (n // CHUNK_ROWS) % 2 else -1.0

    def _widen(self, j: int, rows: Vector, grads: Vector) -> None:
        """Widen the differences along coordinate j until rows notice them."""
        touched = np.count_nonzero(grads[:, j])
        for _ in range(_MOST_WIDENINGS):
            there = self.theta.copy()
            there[j] += self.widths[j]
            noticed = np.count_nonzero(np.any(self.field.gradients(there, rows) != grads, axis=1))
            if noticed >= (_NOTICED if self.rough else 0.5) * touched:
                return
            self.rough = True
            self.widths[j] *= _WIDER

    # ---- reading

    def whole(self) -> GivenRows:
        """The engine with the rows of the open chunk expanded too; itself if there are none."""
        if self.filled == 0:
            return self
        reader = GivenRows(self.problem, self.theta_0, differences=self.differences)
        reader.restore(self.to_state())
        reader.expand(reader.chunk[: reader.filled].copy())
        reader.filled = 0
        return reader

    def root(self) -> Root:
        """The root of the rows' own equation: that of the sums, corrected for what expansions leave out.

        Of gradients that jump a sample shows nothing but noise, and nothing is corrected.
        """
        dim = len(self.theta)
        A = self.store.curvature()
        whitened = whitening(0.5 * (A + A.T))
        inverse = _generalised_inverse(A, whitened.C)
        linear = self.theta_0 + inverse @ self.store.score()
        centre, before, error = linear, math.inf, np.zeros(dim)
        scale = np.sqrt(np.maximum(np.diag(inverse), 0.0))
        for _ in range(0 if self.rough else _ROUNDS):
            left, spread = self.sample.remainder(self.field, centre)
            error = np.sqrt(np.maximum(np.diag(inverse @ spread @ inverse.T), 0.0))
            target = linear - inverse @ left
            moved = float(np.max(np.abs(target - centre) / np.where(scale > 0.0, scale, 1.0), initial=0.0))
            if not moved < before:
                return Root(centre, error, converged=moved <= 1.0)
            centre, before = target, moved
            if moved <= _SETTLED:
                break
        return Root(centre, error, converged=True)

    # ---- state

    def to_state(self) -> dict[str, Any]:
        return {
            "theta": self.theta.copy(),
            "chunk": self.chunk[: self.filled].copy(),
            "widths": self.widths.copy(),
            "prior": self.prior.copy(),
            "expanded_again": self.expanded_again,
            "rough": self.rough,
            "store": self.store.to_state(),
            "sample": self.sample.to_state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Become what `to_state` described."""
        self.theta = np.array(state["theta"], dtype=np.float64)
        self.filled = len(state["chunk"])
        self.chunk[: self.filled] = state["chunk"]
        self.widths[:], self.prior[:] = state["widths"], state["prior"]
        self.expanded_again, self.rough = int(state["expanded_again"]), bool(state["rough"])
        self.store = BatchStore.from_state(state["store"])
        self.sample.restore(state["sample"])


def _generalised_inverse(A: Vector, C: Vector) -> Vector:
    """A^-1, on the directions that the rows determine: C (C'AC)^-1 C'."""
    return np.asarray(C @ np.linalg.solve(C.T @ A @ C, C.T))
