"""Renewable Newton by chunks, with score batches: regression in one pass, without a step size.

Rows are taken in internal chunks of fixed size, whatever the size of the pieces they arrive in. Chunk j is expanded at
theta_j, the minimiser of its own loss plus the quadratic that stands for all chunks before it,

    theta_j = argmin loss_j(theta) + (theta - c_{j-1})' A_{j-1} (theta - c_{j-1}) / 2,
    U_j = -grad loss_j(theta_j),  H_j = hess loss_j(theta_j),  A_j = A_{j-1} + H_j,
    c_j solves sum_i U_i + H_i (theta_i - c) = 0.

For squared loss c is least squares, exactly. The covariance of c is A^-1 V A^-1 with V the long-run covariance of the
batch residuals r_b = U_b + H_b (theta_b - c) (`halfwidth.learners.longrun`), over batches far shorter than the chunks
at first, merged to flat memory later on (`halfwidth.learners.batches`). The cost is O(d^2) a row.

A prior of one row's weight around the start tames first chunks that do not identify theta_j, like one that is
separable; it moves theta_j, where the loss is expanded, and never enters the equation for c. What the expansion
leaves out is estimated on a thinned sample of rows and put back (`halfwidth.learners.sample`).

L. Luo and P. X.-K. Song, *Renewable estimation and incremental inference in generalized linear models with streaming
data sets*, JRSS B 82 (2020); the batches of scores, which make the errors right for dependent rows, are ours.

| formula         | here                                      |
|-----------------|-------------------------------------------|
| theta_j         | `point`                                   |
| A_j             | `curvature`                               |
| sum U + H theta | `score` (relative to `reference`)         |
| c_j             | `estimate()`                              |
"""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.checks import check_count
from halfwidth.errors import InputError, NotEnoughData
from halfwidth.learners.batches import ScoreBatches, capacity_for
from halfwidth.learners.damped import Rows, first_fit, minimise, prior_weights, robust_scale, solve_spd
from halfwidth.learners.renewed import Fit, pieces
from halfwidth.learners.sample import RowSample
from halfwidth.learners.scaling import Scaling
from halfwidth.problems.losses import Loss, make_loss

Vector = NDArray[np.float64]

CHUNK_ROWS = 1_024
ROUGH_CHUNK_ROWS = 131_072
_MOST_PENDING_NUMBERS = 2**21
_SETTLED = 1e-20
_SLIGHT = 1e-7
_CLOSE = 1e-4


class RenewableNewton:
    """One pass of regression with a loss of `halfwidth.problems.losses`.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((5_000, 2))
    >>> learner = RenewableNewton(2, "linear").consume(X, 1.0 + X @ [2.0, -1.0] + rng.standard_normal(5_000))
    >>> np.round(learner.fit().params, 1).tolist()
    [1.0, 2.0, -1.0]
    """

    kind = "renewable-newton"
    version = 1

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
        self.grouped: bool | None = None
        self._last_group: NDArray[Any] | None = None
        self._pending = np.empty((0, self.dim + 3))
        self._pending_starts = np.empty(0, dtype=np.bool_)
        self._filled = 0
        self._scaling: Scaling | None = None
        self._reference = np.zeros(self.size)
        self._score = np.zeros(self.size)
        self._curvature = np.zeros((self.size, self.size))
        self._weight = 0.0
        self._prior = np.zeros(self.size)
        self._prior_centre = np.zeros(self.size)
        self._moments = np.zeros(3)  # sums of squared scores, of weights, of misclassified rows
        self._batches = ScoreBatches(self.size, max(1, 2 * self.chunk_rows // capacity_for(self.size)))
        self._sample = RowSample(self.size) if self.loss.smooth else None
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
        starts = self._group_starts(group, len(X))
        self._read = None
        at = 0
        while at < len(X):
            if self._filled == 0 and len(X) - at >= self.chunk_rows:
                end = at + self.chunk_rows
                piece = slice(at, end)
                self._absorb(
                    X[piece],
                    y[piece],
                    None if weight is None else weight[piece],
                    None if offset is None else offset[piece],
                    None if starts is None else starts[piece],
                )
            else:
                end = min(at + self.chunk_rows - self._filled, len(X))
                self._keep(X, y, weight, offset, starts, at, end)
            at = end
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

    def _group_starts(self, group: ArrayLike | None, rows: int) -> NDArray[np.bool_] | None:
        if self.grouped is None:
            self.grouped = group is not None
        if self.grouped != (group is not None):
            raise InputError("group must be given with every chunk or with none")
        if group is None:
            return None
        ids = np.asarray(group)
        if ids.shape != (rows,):
            raise InputError.of("group", f"have shape ({rows},), one label for each row of X", ids.shape)
        starts = np.empty(rows, dtype=np.bool_)
        starts[1:] = ids[1:] != ids[:-1]
        starts[0] = self._last_group is None or bool(ids[0] != self._last_group[0])
        self._last_group = np.array([ids[-1]])  # text from an object column gets a plain type
        return starts

    def _keep(
        self,
        X: Vector,
        y: Vector,
        weight: Vector | None,
        offset: Vector | None,
        starts: NDArray[np.bool_] | None,
        at: int,
        end: int,
    ) -> None:
        """Put rows aside until they fill a chunk."""
        if self._filled + end - at > len(self._pending):
            self._make_room(self._filled + end - at)
        to = slice(self._filled, self._filled + end - at)
        self._pending[to, : self.dim] = X[at:end]
        self._pending[to, -3] = y[at:end]
        self._pending[to, -2] = 1.0 if weight is None else weight[at:end]
        self._pending[to, -1] = 0.0 if offset is None else offset[at:end]
        if starts is not None:
            self._pending_starts[to] = starts[at:end]
        self._filled = to.stop
        if self._filled == self.chunk_rows:
            self._absorb(*self._set_aside())
            self._filled = 0

    def _make_room(self, rows: int) -> None:
        room = min(self.chunk_rows, max(rows, 2 * len(self._pending), CHUNK_ROWS))
        kept, starts = self._pending[: self._filled], self._pending_starts[: self._filled]
        self._pending = np.empty((room, self.dim + 3))
        self._pending_starts = np.zeros(room, dtype=np.bool_)
        self._pending[: self._filled], self._pending_starts[: self._filled] = kept, starts

    def _set_aside(self) -> tuple[Vector, Vector, Vector, Vector, NDArray[np.bool_] | None]:
        rows = self._pending[: self._filled]
        starts = self._pending_starts[: self._filled] if self.grouped else None
        # Copies in C order: the same bits, whether rows come from here or straight from the caller.
        return rows[:, : self.dim].copy(), rows[:, -3].copy(), rows[:, -2].copy(), rows[:, -1].copy(), starts

    def _absorb(
        self,
        X: Vector,
        y: Vector,
        weight: Vector | None,
        offset: Vector | None,
        starts: NDArray[np.bool_] | None,
        *,
        last: bool = False,
    ) -> None:
        """Expand a chunk and add it up; `last` polishes a fit that rests on this chunk alone."""
        first = self._scaling is None
        if self._scaling is None:
            self._scaling = Scaling.of(X, weight, self.intercept)
        rows = Rows(self._scaling.apply(X), y, weight, offset)
        point = self._first_point(rows, last) if first else self._point(rows)
        if first:
            self._reference = point.copy()
        self._expand(rows, point, starts)

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
            return self._reference
        centre = self._centre()
        total = self._weight + rows.total_weight
        self.loss.sharpen(total, self.size)
        ridge = self._penalty()
        past = self._curvature + np.diag(self._weight * ridge)
        Q = past + np.diag(rows.total_weight * ridge + self._prior)
        centre_Q = solve_spd(Q, past @ centre + self._prior * self._prior_centre)
        point = minimise(rows, self.loss, centre_Q, centre_Q, Q, _CLOSE)
        if self.loss.uses_scale and rows.total_weight > 0.0:
            change = robust_scale(rows, point, self.loss) - self.loss.scale
            self.loss.scale += change * rows.total_weight / total
        return point

    @property
    def n_seen_absorbed(self) -> int:
        batches = self._batches
        return int(batches.rows[: batches.count].sum() + batches.open_rows)

    def _expand(self, rows: Rows, point: Vector, starts: NDArray[np.bool_] | None) -> None:
        eta = rows.eta(point)
        raw = self.loss.score(eta, rows.y)
        score = -rows.weighted(raw)
        edges = self._batches.edges(len(rows.y), starts)
        if self.loss.quadratic:
            root = rows.Z if rows.weight is None else np.sqrt(rows.weight)[:, None] * rows.Z
            bend = rows.total_weight
        else:
            weights = rows.weighted(self.loss.weight(eta, rows.y))
            root = np.sqrt(weights)[:, None] * rows.Z
            bend = float(weights.sum())
        if self._sample is not None:
            self._sample.add(rows, eta, self.n_seen_absorbed)
        U, H = pieces(rows.Z, root, score, edges)
        B = U + H @ (point - self._reference)
        self._batches.add(edges, B, H, starts is not None)
        self._score += B.sum(axis=0)
        if self.loss.rough:
            self._score += rows.weighted(raw - self.loss.root(eta, rows.y)) @ rows.Z
        self._curvature += H.sum(axis=0)
        self._weight += rows.total_weight
        squares = (
            score * score
            if rows.weight is None
            else rows.weighted((score / np.where(rows.weight > 0, rows.weight, 1.0)) ** 2)
        )
        self._moments += (squares.sum(), bend, self._mistakes(eta, rows))

    def _mistakes(self, eta: Vector, rows: Rows) -> float:
        return float(np.count_nonzero((eta > 0.0) != (rows.y > 0.5))) if self.loss.name == "logistic" else 1.0

    def _penalty(self) -> Vector:
        """The ridge on the internal scale, for a weight of one; the intercept is free."""
        assert self._scaling is not None
        penalty = np.zeros(self.size)
        penalty[int(self.intercept) :] = self.ridge / self._scaling.scale**2
        return penalty

    def _centre(self) -> Vector:
        penalty = self._weight * self._penalty()
        rhs = self._score - penalty * self._reference
        return np.asarray(self._reference + solve_spd(self._curvature + np.diag(penalty), rhs))

    def _fit(self) -> Fit:
        reader = self._reader() if self._filled else self
        assert reader._scaling is not None
        centre, curvature = reader._centre(), reader._curvature.copy()
        if reader._lone and not reader.loss.rough:
            centre = reader._reference
        elif reader._sample is not None:
            centre, curvature = reader._sample.refine(
                reader.loss, centre, curvature, reader._weight * reader._penalty()
            )
        squares, bend, mistakes = reader._moments.tolist()
        if reader.loss.quadratic:  # moved from the reference to the centre
            gap = centre - reader._reference
            squares += float(gap @ reader._curvature @ gap - 2.0 * gap @ reader._score)
        dispersion = max(squares, 0.0) / max(bend, 1e-300)
        if reader._sample is not None:
            dispersion = reader._sample.dispersion(reader.loss, centre)
        correction = self.n_seen / max(self.n_seen - self.size, 1)
        return Fit(
            self.n_seen,
            reader._weight,
            reader._scaling,
            centre,
            curvature,
            reader._curvature.copy(),
            np.sqrt(np.maximum(reader._prior, 1.0)),
            reader._penalty(),
            dispersion * correction,
            mistakes,
            reader._batches,
            reader._reference,
            bool(self.grouped),
        )

    def _reader(self) -> RenewableNewton:
        """A copy that has also taken in the rows set aside."""
        state = self.to_state()
        reader = RenewableNewton.from_state({**state, "pending": state["pending"][:0], "pending_starts": []})
        if reader._scaling is None:
            reader._batches = ScoreBatches(self.size, _length_for(self._filled, self.size))
        reader._absorb(*self._set_aside(), last=True)
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
            "grouped": self.grouped,
            "last_group": self._last_group,
            "pending": self._pending[: self._filled].copy(),
            "pending_starts": self._pending_starts[: self._filled].copy(),
            "column_centre": None if self._scaling is None else self._scaling.centre,
            "column_scale": None if self._scaling is None else self._scaling.scale,
            "reference": self._reference.copy(),
            "score": self._score.copy(),
            "prior": self._prior.copy(),
            "prior_centre": self._prior_centre.copy(),
            "curvature": self._curvature.copy(),
            "weight": self._weight,
            "moments": self._moments.copy(),
            "batches": self._batches.to_state(),
            "sample": None if self._sample is None else self._sample.to_state(),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        if state.get("kind") != cls.kind or state.get("version") != cls.version:
            found = (state.get("kind"), state.get("version"))
            raise InputError.of("state", f"be of kind {cls.kind!r}, version {cls.version}", found)
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
        learner.grouped = state["grouped"]
        learner._last_group = state["last_group"]
        learner._filled = len(state["pending"])
        learner._pending = np.array(state["pending"], dtype=np.float64)
        learner._pending_starts = np.array(state["pending_starts"], dtype=np.bool_)
        if state["column_centre"] is not None:
            centre, scale = (np.array(state[name], dtype=np.float64) for name in ("column_centre", "column_scale"))
            learner._scaling = Scaling(centre, scale, learner.intercept)
        for name in ("reference", "score", "prior", "prior_centre", "curvature", "moments"):
            setattr(learner, f"_{name}", np.array(state[name], dtype=np.float64))
        learner._weight = float(state["weight"])
        learner._batches = ScoreBatches.from_state(state["batches"])
        if state["sample"] is not None:
            learner._sample = RowSample.from_state(state["sample"])
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
