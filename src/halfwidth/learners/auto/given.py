"""The engine of `auto` where data cannot respond to theta: renewable Newton on the equation; every row counts.

Rows are gathered into chunks, of 1,024 rows at first and of up to a quarter of those seen. A chunk is expanded at l,
the root of everything before it; the root moves to

    c = (sum H + prior)^-1 (sum H l - g).

If the gradient of the chunk was not nearly linear from l to c, it is expanded again at the minimiser of its own loss
plus the quadratic that stands for all chunks before it, found by damped Newton steps (L. Luo and P. X.-K. Song 2020);
of a field without a loss, at the root of the same. A prior worth about a row around theta_0, set for each column when a
row first shows it, holds directions that the rows so far do not determine; it moves linearisation points and never
enters the equation of the result. In the first chunk it fades where it outweighs all rows (`first_minimum`). What
expansions leave out is measured on a sample of rows (`row_sample`) and solved for, so that the result is the root of
the rows' own equation for all purposes; where gradients jump, its mean is (`rough_expansions`). For a loss that is
known to be quadratic nothing is left out; nor where differences show that the gradient is linear: there sums and prior
become relative to the root whenever batches double, for its distance multiplies rounding. An open chunk is expanded for
a result.

Errors: batch jackknife under a quadratic spectral kernel (`halfwidth.equation.errors`, `field_errors`; `stores`).
"""

from __future__ import annotations

import math
from copy import copy
from typing import Any

import numpy as np

from halfwidth.equation import Equation, restored_store
from halfwidth.equation.field_errors import is_field
from halfwidth.errors import BadState, Diverged
from halfwidth.kernels.arrays import Indices, Vector
from halfwidth.learners.auto.at_root import at_root
from halfwidth.learners.auto.chunk_minimum import chunk_minimum, chunk_root, first_minimum, rough_minimum
from halfwidth.learners.auto.chunk_system import ChunkSystem
from halfwidth.learners.auto.difference_widths import DifferenceWidths
from halfwidth.learners.auto.engine_schemas import GIVEN_SCHEMA, MOST_CHUNK_ROWS
from halfwidth.learners.auto.field import Field, field_of
from halfwidth.learners.auto.given_root import Root, corrected_root, linear_root
from halfwidth.learners.auto.rough_expansions import mean_left_out
from halfwidth.learners.auto.row_sample import RowSample
from halfwidth.learners.auto.stores import empty_store, power_of_two
from halfwidth.problems import Problem
from halfwidth.problems.row_losses import is_quadratic
from halfwidth.state.schema import validate

CHUNK_ROWS = 1_024
_CHUNK_NUMBERS, _CHUNK_SHARE = 2**19, 4
_NEARLY_LINEAR, _ROUGHLY_LINEAR = 0.02, 0.5


class GivenRows:
    """Sums of the equation over rows that are given, or drawn from data that do not respond."""

    def __init__(self, problem: Problem, theta_0: Vector, *, differences: bool) -> None:
        dim = problem.dim
        self.problem, self.differences = problem, differences
        self.quadratic = not differences and is_quadratic(problem)
        self.theta_0, self.theta = theta_0.copy(), theta_0.copy()
        self.chunk, self.filled = np.empty((0, problem.row_size)), 0
        self.widths = DifferenceWidths(theta_0)
        self.field = self._field()
        self.store = empty_store(theta_0)
        self.sample, self.prior = RowSample(problem.row_size, dim), np.zeros(dim)
        self.expanded_again = 0
        self._most_rows = min(MOST_CHUNK_ROWS, max(power_of_two(_CHUNK_NUMBERS / problem.row_size), CHUNK_ROWS))

    def _field(self) -> Field:
        return field_of(self.problem, self.widths.values, differences=self.differences)

    @property
    def without_loss(self) -> bool:
        """Whether the rows are those of a field that is not the gradient of a loss: its matrices are not symmetric."""
        if self.differences:
            return not self.rough and is_field(self.store.closed().H)
        return self.problem.derivative != "hessian"

    @property
    def rows(self) -> int:
        return self.store.rows + self.filled

    @property
    def rough(self) -> bool:
        """Whether gradients jump."""
        return self.widths.rough

    @property
    def linear(self) -> bool:
        """Whether the gradient is linear in theta: it is known, or differences have shown it on all rows so far."""
        return self.quadratic or self.widths.straight

    @property
    def chunk_rows(self) -> int:
        """How many rows the open chunk has when it is full, a power of two."""
        fitting = self.store.rows // _CHUNK_SHARE
        return CHUNK_ROWS if fitting < 2 * CHUNK_ROWS else min(power_of_two(fitting), self._most_rows)

    @property
    def free_rows(self) -> int:
        """How many rows the open chunk still takes."""
        return self.chunk_rows - self.filled

    def take(self, rows: Vector) -> None:
        """Put rows aside, at most `free_rows`; expand the chunk when it is full."""
        size = self.chunk_rows
        if len(rows) == size:
            self.expand(rows)
            return
        if len(self.chunk) < size:
            waiting = self.chunk[: self.filled]
            self.chunk = np.empty((size, self.problem.row_size))
            self.chunk[: self.filled] = waiting
        self.chunk[self.filled : self.filled + len(rows)] = rows
        self.filled += len(rows)
        if self.filled == size:
            self.filled = 0
            self.expand(self.chunk[:size])

    @np.errstate(over="ignore", invalid="ignore")  # what is not finite ends in Diverged
    def expand(self, rows: Vector) -> None:
        """Add the rows to the sums, expanded at the root so far or, where that is too far away, nearer to their own."""
        length = self.store.length
        while self.store.free_rows < len(rows):
            self.store.merge()
        edges = self.store.edges(len(rows))
        point = self.theta
        g, H = self._pieces(rows, edges)
        added, total = H.sum(axis=0), g.sum(axis=0)
        self._watch_columns(added, len(rows))
        system = ChunkSystem(self.store.curvature() + added, self.prior)
        target = self._root(system, added @ (point - self.store.reference) - total)
        if not self._nearly_linear(system, rows, target, total, added):
            self.expanded_again += 1
            past = self.store.curvature() + np.diag(system.ridge)
            own = not self.differences and self.without_loss
            find = chunk_root if own else rough_minimum if self.rough else chunk_minimum
            if find is chunk_minimum and not self.store.rows:
                point, share = first_minimum(self.field, rows, point, system.ridge)
                self.prior *= share
            else:
                point = find(self.field, rows, point, past)
            g, H = self.field.pieces(point, rows, edges)
            added = H.sum(axis=0)
            system = ChunkSystem(self.store.curvature() + added, self.prior)
            target = self._root(system, added @ (point - self.store.reference) - g.sum(axis=0))
        elif self.rough and self.store.rows:
            g = g + np.outer(np.diff(edges) / len(rows), left := mean_left_out(self.field, rows, point, self.store))
            target = target - system.solve(left)
        self.store.add(edges, (H.reshape(-1, len(point)) @ (point - self.store.reference)).reshape(g.shape) - g, H)
        if self.quadratic:
            self.sample.skip(len(rows))
        else:
            self.sample.add(rows, point, self.field)
        if not np.isfinite(target).all():
            raise Diverged(
                f"non-finite numbers at row {self.store.rows:,}: look for extreme values in the {len(rows):,} rows up "
                "to it; scale the columns to about one, start nearer to the solution (theta_0), or check that the "
                "gradient points uphill"
            )
        self.theta = target
        if self.linear and self.store.length > length and not self.store.single:
            self.store.rebase(linear_root(self.store, self.without_loss)[0])

    def _pieces(self, rows: Vector, edges: Indices) -> tuple[Vector, Vector]:
        """Gradient and Hessian at the root so far, summed between the edges."""
        if not self.differences:
            return self.field.pieces(self.theta, rows, edges)
        past, forwards = self.store.rows, self.store.rows // self.chunk_rows % 2 == 1
        diagonal = np.diag(self.store.curvature())
        return self.widths.expand(self.field, self.theta, rows, edges, (diagonal, past), forwards)

    def _root(self, system: ChunkSystem, b: Vector) -> Vector:
        """The root of all sums and these, with the prior; columns that no row has shown stay at theta_0."""
        return self.store.reference + system.solve(self.store.score() + b) if system.regular else self.theta

    def _watch_columns(self, H: Vector, rows: int) -> None:
        size = np.abs(np.diag(H))
        appeared = (self.prior == 0.0) & (size != 0.0)
        self.prior[appeared] = size[appeared] / math.sqrt(rows)

    def _nearly_linear(self, system: ChunkSystem, rows: Vector, target: Vector, g: Vector, H: Vector) -> bool:
        """Whether what the expansion leaves out moves the root by little of its own noise."""
        if not (system.regular and np.isfinite(target).all()):
            return False
        if self.linear:
            return True
        with np.errstate(all="ignore"):
            there, squares = self.field.moments(target, rows)
            left = there - g - H @ (target - self.theta)
            moved = left @ system.solve(left)
            noise = np.mean(squares / np.abs(np.diag(H) + system.ridge))
        return bool(abs(moved) <= (_ROUGHLY_LINEAR if self.rough else _NEARLY_LINEAR) ** 2 * abs(noise))

    # ---- reading

    def whole(self) -> GivenRows:
        """The engine with the rows of the open chunk expanded too; itself if there are none."""
        if self.filled == 0:
            return self
        reader = copy(self)
        reader.store, reader.sample = self.store.copy(), self.sample.reader()
        reader.prior, reader.widths = self.prior.copy(), self.widths.copy()
        reader.field, reader.filled = reader._field(), 0
        reader.expand(self.chunk[: self.filled])
        return reader

    def root(self) -> Root:
        """The root of the rows' own equation."""
        return corrected_root(self.store, self.without_loss, self.useful_sample, self.field)

    def at_root(self, centre: Vector) -> Equation:
        """The batches as they are at the root, relative to it."""
        equation, away = Equation.of(self.store.closed(copy=not self.store.single)), centre - self.store.reference
        if self.useful_sample is None:
            return Equation(equation.A, equation.residuals(away), equation.rows)
        return at_root(equation, away, centre, self.useful_sample, self.field)

    @property
    def useful_sample(self) -> RowSample | None:
        """The sample of rows; None where expansions leave nothing out, or gradients jump: it would show noise."""
        return None if self.rough or self.linear else self.sample

    def to_state(self) -> dict[str, Any]:
        return {
            **GIVEN_SCHEMA.head,
            "theta": self.theta.copy(),
            "chunk": self.chunk[: self.filled].copy(),
            "widths": self.widths.values.copy(),
            "prior": self.prior.copy(),
            "expanded_again": self.expanded_again,
            "rough": self.rough,
            "straight": self.widths.straight,
            "store": self.store.to_state(),
            "sample": self.sample.to_state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Become what `to_state` described."""
        validate(state, GIVEN_SCHEMA, "engine")
        self.theta = np.array(state["theta"], dtype=np.float64)
        self.chunk = np.array(state["chunk"], dtype=np.float64)
        self.filled = len(self.chunk)
        self.widths.values[:], self.prior[:] = state["widths"], state["prior"]
        self.expanded_again, self.widths.rough = int(state["expanded_again"]), bool(state["rough"])
        self.widths.straight = bool(state["straight"])
        self.store = restored_store(self.store, state["store"], "engine.store", rebased=True)
        self.sample.restore(state["sample"])
        if self.free_rows < 1:
            raise BadState.at("engine.chunk", f"have fewer than {self.chunk_rows} rows", self.filled)
