"""How renewable Newton expands a chunk of rows, and what it reads off all of them.

The sums of all chunks so far, the point at which the next one is expanded, and the snapshot of everything seen; where
rows come from and what is saved is in `halfwidth.learners.newton.renewable`, with the equations.
"""

from __future__ import annotations

from copy import copy
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.checks import check_count
from halfwidth.equation import capacity_for, solve_spd
from halfwidth.equation.linear_algebra import with_diagonal
from halfwidth.equation.wide_errors import WIDE
from halfwidth.errors import InputError
from halfwidth.families import Loss, make_loss
from halfwidth.families.dispersed import estimated_dispersion
from halfwidth.families.multinomial import Multinomial
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.newton.chunk_sums import ChunkSums, Expanded
from halfwidth.learners.newton.column_scaling import Scaling
from halfwidth.learners.newton.newton_solver import Rows, first_fit, minimise, prior_weights, robust_scale
from halfwidth.learners.newton.offline_fit import SETTLED, offline_fit
from halfwidth.learners.newton.row_buffer import Groups, PendingRows, Piece
from halfwidth.learners.newton.snapshot import NewtonSnapshot
from halfwidth.learners.newton.thinned_fit import thinned_fit

CHUNK_ROWS = 1_024
ROUGH_CHUNK_ROWS = 131_072
LONG_CHUNK_ROWS = 4_096
_LONG_CHUNK_NUMBERS = 2**17
_MOST_PENDING_NUMBERS = 2**21
_CLOSE = 1e-4
_AS_GOOD = 0.1
"""Per coefficient."""


class ChunkExpander:
    """The sums of chunks, and the rows put aside until they fill one."""

    def __init__(
        self,
        dim: int,
        loss: Loss | str,
        *,
        intercept: bool = True,
        ridge: float = 0.0,
        anchor: ArrayLike | None = None,
        chunk_rows: int | None = None,
    ) -> None:
        self.dim = check_count("dim", dim, at_least=0 if intercept else 1)
        self.loss = make_loss(loss) if isinstance(loss, str) else loss
        if not (np.isfinite(ridge) and ridge >= 0.0):
            raise InputError.of("ridge", "be a finite number of at least 0", ridge)
        self.intercept = bool(intercept)
        self.ridge = float(ridge)
        self.anchor = None if anchor is None else np.array(anchor, dtype=np.float64)
        self.size = self.loss.equations * (self.dim + self.intercept)
        if self.loss.equations > 1 and self.size > WIDE:
            raise InputError.of(
                "X", f"have at most {WIDE // self.loss.equations} columns with so many classes", f"{self.dim} columns"
            )
        self.chunk_rows = chunk_rows or chunk_rows_for(self.loss, self.size)
        self.n_seen = 0
        self._groups = Groups()
        self._pending = PendingRows(self.dim, self.chunk_rows)
        self._scaling: Scaling | None = None
        self._unit = 1.0  # the weight that counts as one
        self._prior = np.zeros(self.size)
        self._prior_centre = np.zeros(self.size)
        self._sums: ChunkSums | None = None
        self._read: NewtonSnapshot | None = None

    @property
    def grouped(self) -> bool:
        """Whether rows come in groups."""
        return bool(self._groups.given)

    def _absorb(self, piece: Piece) -> None:
        """Expand a chunk and add it up."""
        if self._scaling is None:
            self._unit = _unit_of(piece.weight)
            self._scaling = self._scaling_of(piece)
        rows, ids = self._rows(piece, self._scaling, self._unit), piece.ids
        del piece  # wide rows are not kept twice
        if self._sums is None:
            self._sums = self._new_sums()
            point = self._first_point(rows, self._scaling)
            self._sums.batches.rebase(point)
            expanded = Expanded.of(rows, self.loss, point)
        else:
            expanded = self._expand(rows, self._sums, self._scaling)
        self._sums.add(rows, expanded, ids)

    def _scaling_of(self, piece: Piece) -> Scaling:
        robust = not self.loss.quadratic
        return Scaling.of(piece.X, piece.weight, self.intercept, self.loss.equations, robust=robust)

    def _new_sums(self) -> ChunkSums:
        length = max(1, 2 * self.chunk_rows // capacity_for(self.size))
        return ChunkSums(self.loss, self.size, length, self.grouped)

    def _rows(self, piece: Piece, scaling: Scaling, unit: float) -> Rows:
        weight = piece.weight
        if unit != 1.0:
            weight = np.full(len(piece), 1.0 / unit) if weight is None else weight / unit
        return Rows(scaling.apply(piece.X), piece.y, weight, piece.offset, self.loss.equations)

    def _first_point(self, rows: Rows, scaling: Scaling) -> Vector:
        if self.anchor is not None:
            return scaling.inverse(self.anchor)
        start, penalty = self._start(rows), rows.total_weight * self._penalty(scaling)
        if self.loss.quadratic:
            return first_fit(rows, self.loss, start, penalty, np.zeros(self.size), SETTLED)
        self._prior, self._prior_centre = prior_weights(rows), start
        far = self._prior.max(initial=0.0) >= len(rows)  # its curvature hides at first what other rows pull
        point = first_fit(rows, self.loss, start, penalty, self._prior, SETTLED if far else _CLOSE)
        self._prior = self._prior * self.loss.curvature_unit
        return point

    def _start(self, rows: Rows) -> Vector:
        start = np.zeros(self.size)
        if self.intercept and isinstance(self.loss, Multinomial):
            start[:: self.dim + 1] = self.loss.first(rows.y, rows.weight)
        elif self.intercept:
            start[0] = self.loss.start(float(rows.weighted(rows.y).sum()) / rows.total_weight)
        return start

    def _expand(self, rows: Rows, sums: ChunkSums, scaling: Scaling) -> Expanded:
        """The chunk at theta_j, or at the estimate before it where that is decided, exact or as good.

        As good: g'Q^-1 g, with g the gradient of the chunk there and Q the curvature of all rows before it, bounds the
        squared distance to theta_j in standard errors of that estimate, and is small.
        """
        if self.loss.quadratic or self.anchor is not None:
            return Expanded.of(rows, self.loss, sums.reference)
        seen, ridge = sums.weight, self._penalty(scaling)
        family = estimated_dispersion(self.loss)
        if family is not None and sums.dispersions is not None:
            family.scale = sums.dispersions.root(family, sums.centre(seen * ridge) - sums.reference)
        self.loss.sharpen(sums.batches.rows + len(rows), self.size)
        more = rows.total_weight * ridge + self._prior
        Q = with_diagonal(sums.batches.curvature(), seen * ridge + more)
        pull = sums.pull(seen * ridge + rows.total_weight * ridge)
        centre = sums.reference + solve_spd(Q, pull + self._prior * (self._prior_centre - sums.reference))
        if self.loss.smooth:
            expanded = Expanded.of(rows, self.loss, centre)
            gradient = rows.pulled(expanded.score)
            if gradient @ solve_spd(Q, gradient) <= _AS_GOOD * self.size:
                return expanded
            del expanded
        point = minimise(rows, self.loss, centre, centre, Q, _CLOSE).theta
        if self.loss.uses_scale:
            change = robust_scale(rows, point, self.loss) - self.loss.scale
            self.loss.scale += change * rows.total_weight / (seen + rows.total_weight)
        return Expanded.of(rows, self.loss, point)

    def _penalty(self, scaling: Scaling) -> Vector:
        """The ridge on the internal scale, for a weight of one; the intercept is free."""
        penalty = np.zeros(self.dim + self.intercept)
        penalty[int(self.intercept) :] = self.ridge / scaling.scale**2
        return np.tile(penalty, self.loss.equations)

    def _fit(self) -> NewtonSnapshot:
        piece = self._pending.piece(self.grouped)
        unit, scaling = self._unit, self._scaling
        if scaling is None:
            unit = _unit_of(piece.weight)
            scaling = self._scaling_of(piece)
        rows, penalty, loss = self._rows(piece, scaling, unit), self._penalty(scaling), copy(self.loss)
        if self._sums is None:
            return offline_fit(rows, loss, self._start(rows), penalty, scaling, piece.ids)
        sample = self._sums.sample
        if sample is not None and sample.holds_all and not loss.quadratic:
            centre = self._sums.centre(self._sums.weight * penalty)
            kept = sample.rows()
            y, weight, offset = (np.concatenate(pair) for pair in zip(_columns(kept), _columns(rows), strict=True))
            together = Rows(np.concatenate([kept.Z, rows.Z]), y, weight, offset, self.loss.equations)
            ids = None if piece.ids is None else np.concatenate([sample.ids, piece.ids])
            return offline_fit(together, loss, centre, penalty, scaling, ids)
        reader = copy(self)
        reader.loss = loss
        included = self._sums.including(rows, piece.ids, partial(reader._expand, scaling=scaling))
        del rows
        with included as sums:
            return thinned_fit(sums, loss, penalty, scaling, anchored=self.anchor is not None)


def chunk_rows_for(loss: Loss, size: int) -> int:
    """1,024 rows, or a power of two of at least `size` for wide rows, so that solving costs no more than adding up.

    A quadratic loss, which is the same wherever it is expanded, takes up to 4,096 rows at a time. A loss whose score
    jumps is expanded over many rows at a time, as many as flat memory allows.
    """
    if loss.quadratic and size <= _LONG_CHUNK_NUMBERS // CHUNK_ROWS:
        return int(min(LONG_CHUNK_ROWS, 2 ** ((_LONG_CHUNK_NUMBERS // size).bit_length() - 1)))
    if not loss.rough:
        return int(max(CHUNK_ROWS, 2 ** int(np.ceil(np.log2(size)))))
    fitting = max(_MOST_PENDING_NUMBERS // (size + 3), CHUNK_ROWS)
    return int(min(ROUGH_CHUNK_ROWS, 2 ** (fitting.bit_length() - 1)))


def _unit_of(weight: Vector | None) -> float:
    return 1.0 if weight is None else float(weight.mean())


def _columns(rows: Rows) -> tuple[Vector, Vector, Vector]:
    """y, weight and offset, the last two spelled out."""
    ones, zeros = np.ones(len(rows)), np.zeros(len(rows))
    return rows.y, ones if rows.weight is None else rows.weight, zeros if rows.offset is None else rows.offset
