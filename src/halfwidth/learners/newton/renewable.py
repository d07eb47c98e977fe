"""Renewable Newton by chunks, with score batches: regression in one pass, without a step size.

Rows are taken in internal chunks of fixed size, whatever the size of the pieces they arrive in. Chunk j is expanded at
theta_j, the minimiser of its own loss plus the quadratic that stands for all chunks before it,

    theta_j = argmin loss_j(theta) + (theta - c_{j-1})' A_{j-1} (theta - c_{j-1}) / 2,
    U_j = -grad loss_j(theta_j),  H_j = hess loss_j(theta_j),  A_j = A_{j-1} + H_j,
    c_j solves sum_i U_i + H_i (theta_i - c) = 0.

For squared loss c is least squares, exactly. The covariance of c is A^-1 V A^-1 with V the long-run covariance of the
batch residuals r_b = U_b + H_b (theta_b - c) (`halfwidth.inference.longrun`), over batches far shorter than the chunks
at first, merged to flat memory later on (`halfwidth.learners.newton.score_batches`). The cost is O(d^2) a row. On a
problem's own stream the same is `halfwidth.learners.newton.chunked`.

A prior of one row's weight around the start tames first chunks that do not identify theta_j, like one that is
separable; it moves theta_j, where the loss is expanded, and never enters the equation for c. What the expansion
leaves out is estimated on a thinned sample of rows and put back (`halfwidth.learners.newton.kept_sample`).

L. Luo and P. X.-K. Song, *Renewable estimation and incremental inference in generalized linear models with streaming
data sets*, JRSS B 82 (2020); the batches of scores, which make the errors right for dependent rows, are ours.

| formula         | here                                      |
|-----------------|-------------------------------------------|
| theta_j         | `point`                                   |
| A_j             | `curvature` of `ChunkSums`                |
| sum U + H theta | its `score`, relative to its `reference`  |
| c_j             | `estimate()`                              |
"""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.checks import check_count
from halfwidth.errors import InputError, NotEnoughData
from halfwidth.families import Loss, make_loss
from halfwidth.learners.newton.chunk_sums import ChunkSums
from halfwidth.learners.newton.column_scaling import Scaling
from halfwidth.learners.newton.newton_solver import Rows, first_fit, minimise, prior_weights, robust_scale, solve_spd
from halfwidth.learners.newton.renewable_state import FIELDS, RELATIONS
from halfwidth.learners.newton.row_buffer import Groups, PendingRows, Piece
from halfwidth.learners.newton.score_batches import ScoreBatches, capacity_for
from halfwidth.learners.newton.snapshot import Fit
from halfwidth.state.schema import Schema, build, validate

Vector = NDArray[np.float64]

CHUNK_ROWS = 1_024
ROUGH_CHUNK_ROWS = 131_072
_MOST_PENDING_NUMBERS = 2**21
_SETTLED = 1e-20
_SLIGHT = 1e-7
_CLOSE = 1e-4


class RenewableNewton:
    """One pass of regression with a loss of `halfwidth.families`.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((5_000, 2))
    >>> learner = RenewableNewton(2, "linear").consume(X, 1.0 + X @ [2.0, -1.0] + rng.standard_normal(5_000))
    >>> np.round(learner.fit().params, 1).tolist()
    [1.0, 2.0, -1.0]
    """

    kind = "renewable-newton"
    version = 1
    SCHEMA = Schema(
        kind,
        version,
        FIELDS,
        {"size": lambda s: s["dim"] + s["intercept"], "width": lambda s: s["dim"] + 3},
        RELATIONS,
    )

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
        self.size = self.dim + self.intercept
        self.chunk_rows = chunk_rows or chunk_rows_for(self.loss, self.size)
        self.n_seen = 0
        self._groups = Groups()
        self._pending = PendingRows(self.dim, self.chunk_rows)
        self._scaling: Scaling | None = None
        self._prior = np.zeros(self.size)
        self._prior_centre = np.zeros(self.size)
        self._sums = ChunkSums(self.loss, self.size, max(1, 2 * self.chunk_rows // capacity_for(self.size)))
        self._lone = False  # whether the estimate rests on one chunk, solved to the end
        self._read: Fit | None = None

    def consume(
        self,
        X: ArrayLike,
        y: ArrayLike,
        weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        group: ArrayLike | None = None,
    ) -> Self:
        """Learn from rows in order; `group` marks rows that belong together, which must be next to each other."""
        X = np.ascontiguousarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != self.dim:
            raise InputError.of("X", f"have shape (m, {self.dim})", X.shape)
        y = self._column("y", y, len(X))
        weight = None if weight is None else self._column("weight", weight, len(X))
        offset = None if offset is None else self._column("offset", offset, len(X))
        if len(X) == 0:
            return self
        starts = self._groups.starts(group, len(X))
        self._read = None
        at = 0
        while at < len(X):
            rows = slice(at, min(at + self.chunk_rows - self._pending.filled, len(X)))
            self._take(
                (
                    X[rows],
                    y[rows],
                    None if weight is None else weight[rows],
                    None if offset is None else offset[rows],
                    None if starts is None else starts[rows],
                )
            )
            at = rows.stop
        self.n_seen += len(X)
        return self

    def fit(self) -> Fit:
        """What all rows so far say. Reading changes nothing; it is remembered until the next row."""
        if self._read is None:
            if self.n_seen == 0:
                raise NotEnoughData.rows("an estimate", 0, 1)
            self._read = self._fit()
        return self._read

    def second_pass(self) -> RenewableNewton:
        """A learner for the same rows once more, expanded at this estimate: one Newton step on all rows at once."""
        return RenewableNewton(
            self.dim,
            copy(self.loss),
            intercept=self.intercept,
            ridge=self.ridge,
            anchor=self.fit().params,
            chunk_rows=self.chunk_rows,
        )

    def _column(self, name: str, values: ArrayLike, rows: int) -> Vector:
        column = np.ascontiguousarray(values, dtype=np.float64)
        if column.shape != (rows,):
            raise InputError.of(name, f"have shape ({rows},), one number for each row of X", column.shape)
        return column

    def _take(self, piece: Piece) -> None:
        """Absorb a whole chunk at once; put less aside until it fills one."""
        pending = self._pending
        if pending.filled == 0 and len(piece[1]) == self.chunk_rows:
            self._absorb(piece)
            return
        pending.keep(piece)
        if pending.filled == self.chunk_rows:
            self._absorb(pending.piece(bool(self._groups.given)))
            pending.filled = 0

    def _absorb(self, piece: Piece, *, last: bool = False) -> None:
        """Expand a chunk and add it up; `last` polishes a fit that rests on this chunk alone."""
        X, y, weight, offset, starts = piece
        first = self._scaling is None
        if self._scaling is None:
            self._scaling = Scaling.of(X, weight, self.intercept)
        rows = Rows(self._scaling.apply(X), y, weight, offset)
        point = self._first_point(rows, last) if first else self._point(rows)
        if first:
            self._sums.reference = point.copy()
        self._sums.add(rows, point, starts)

    def _first_point(self, rows: Rows, last: bool) -> Vector:
        assert self._scaling is not None
        if self.anchor is not None:
            return self._scaling.inverse(self.anchor)
        total = rows.total_weight
        start = np.zeros(self.size)
        if self.intercept and total > 0.0:
            start[0] = self.loss.start(float(rows.weighted(rows.y).sum()) / total)
        penalty = np.diag(total * self._penalty())
        if self.loss.quadratic:
            return first_fit(rows, self.loss, start, penalty, _SETTLED)
        self._prior, self._prior_centre = prior_weights(rows), start
        point = first_fit(rows, self.loss, start, penalty + np.diag(self._prior), _CLOSE)
        if last:
            slight = np.diag(np.full(self.size, _SLIGHT))  # gives separable rows a minimum at all
            point = minimise(rows, self.loss, point, np.zeros(self.size), penalty + slight, _SETTLED)
            self._lone = True
        return point

    def _point(self, rows: Rows) -> Vector:
        """Where to expand the chunk: at the estimate so far if the chunk would hardly move it, at theta_j otherwise."""
        if self.loss.quadratic or self.anchor is not None:
            return self._sums.reference
        seen = self._sums.weight
        total = seen + rows.total_weight
        centre = self._sums.centre(seen * self._penalty())
        self.loss.sharpen(total, self.size)
        ridge = self._penalty()
        past = self._sums.curvature + np.diag(seen * ridge)
        Q = past + np.diag(rows.total_weight * ridge + self._prior)
        centre_Q = solve_spd(Q, past @ centre + self._prior * self._prior_centre)
        point = minimise(rows, self.loss, centre_Q, centre_Q, Q, _CLOSE)
        if self.loss.uses_scale and rows.total_weight > 0.0:
            change = robust_scale(rows, point, self.loss) - self.loss.scale
            self.loss.scale += change * rows.total_weight / total
        return point

    def _penalty(self) -> Vector:
        """The ridge on the internal scale, for a weight of one; the intercept is free."""
        assert self._scaling is not None
        penalty = np.zeros(self.size)
        penalty[int(self.intercept) :] = self.ridge / self._scaling.scale**2
        return penalty

    def _fit(self) -> Fit:
        reader = self._reader() if self._pending.filled else self
        assert reader._scaling is not None
        sums, penalty = reader._sums, reader._penalty()
        centre, curvature = sums.centre(sums.weight * penalty), sums.curvature.copy()
        if reader._lone and not reader.loss.rough:
            centre = sums.reference
        elif sums.sample is not None:
            centre, curvature = sums.sample.refine(reader.loss, centre, curvature, sums.weight * penalty)
        correction = self.n_seen / max(self.n_seen - self.size, 1)
        return Fit(
            self.n_seen,
            sums.weight,
            reader._scaling,
            centre,
            curvature,
            sums.curvature.copy(),
            np.sqrt(np.maximum(reader._prior, 1.0)),
            penalty,
            sums.dispersion(centre) * correction,
            float(sums.moments[2]),
            sums.batches,
            sums.reference,
            bool(self._groups.given),
        )

    def _reader(self) -> RenewableNewton:
        """A copy that has also taken in the rows set aside."""
        state = self.to_state()
        empty = {name: state[name][:0] for name in ("pending", "pending_starts")}
        reader = RenewableNewton._restored({**state, **empty})
        if reader._scaling is None:
            reader._sums.batches = ScoreBatches(self.size, _length_for(self._pending.filled, self.size))
        reader._absorb(self._pending.piece(bool(self._groups.given)), last=True)
        return reader

    def to_state(self) -> dict[str, Any]:
        """Plain numbers and arrays; `from_state` goes on with the same bits."""
        return {
            "kind": self.kind,
            "version": self.version,
            "dim": self.dim,
            "loss": self.loss.name,
            "options": self.loss.options(),
            "scale": self.loss.scale,
            "bandwidth": self.loss.bandwidth,
            "intercept": self.intercept,
            "ridge": self.ridge,
            "anchor": self.anchor,
            "chunk_rows": self.chunk_rows,
            "n_seen": self.n_seen,
            "grouped": self._groups.given,
            "last_group": self._groups.last,
            **self._pending.to_state(),
            "column_centre": None if self._scaling is None else self._scaling.centre,
            "column_scale": None if self._scaling is None else self._scaling.scale,
            "prior": self._prior.copy(),
            "prior_centre": self._prior_centre.copy(),
            **self._sums.to_state(),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The learner that `to_state` described; `BadState` if the state breaks a rule of `SCHEMA`."""
        validate(state, cls.SCHEMA)
        return build(cls.kind, lambda: cls._restored(state))

    @classmethod
    def _restored(cls, state: dict[str, Any]) -> Self:
        learner = cls(
            int(state["dim"]),
            make_loss(state["loss"], **state["options"]),
            intercept=state["intercept"],
            ridge=state["ridge"],
            anchor=state["anchor"],
            chunk_rows=int(state["chunk_rows"]),
        )
        learner.loss.scale, learner.loss.bandwidth = float(state["scale"]), float(state["bandwidth"])
        learner.n_seen = int(state["n_seen"])
        learner._groups.given, learner._groups.last = state["grouped"], state["last_group"]
        learner._pending.restore(state)
        if state["column_centre"] is not None:
            centre, scale = (np.array(state[name], dtype=np.float64) for name in ("column_centre", "column_scale"))
            learner._scaling = Scaling(centre, scale, learner.intercept)
        for name in ("prior", "prior_centre"):
            setattr(learner, f"_{name}", np.array(state[name], dtype=np.float64))
        learner._sums.restore(state)
        return learner


def chunk_rows_for(loss: Loss, size: int) -> int:
    """A loss whose score jumps is expanded over many rows at a time, as many as flat memory allows."""
    if not loss.rough:
        return CHUNK_ROWS
    fitting = max(_MOST_PENDING_NUMBERS // (size + 3), CHUNK_ROWS)
    return int(min(ROUGH_CHUNK_ROWS, 2 ** (fitting.bit_length() - 1)))


def _length_for(rows: int, size: int) -> int:
    """The shortest batches, a power of two, of which this many rows fit into the store."""
    return int(2 ** max(0, int(np.ceil(np.log2(max(rows, 1) / (capacity_for(size) / 2))))))
