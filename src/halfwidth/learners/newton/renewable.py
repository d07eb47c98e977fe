"""Renewable Newton by chunks, with score batches: regression in one pass, without a step size.

Rows are taken in internal chunks of fixed size, whatever the size of the pieces they arrive in. Chunk j is expanded at
theta_j, the minimiser of its own loss plus the quadratic that stands for all chunks before it,

    theta_j = argmin loss_j(theta) + (theta - c_{j-1})' A_{j-1} (theta - c_{j-1}) / 2,
    U_j = -grad loss_j(theta_j),  H_j = hess loss_j(theta_j),  A_j = A_{j-1} + H_j,
    c_j solves sum_i U_i + H_i (theta_i - c) = 0.

For squared loss c is least squares, exactly. What the rows say goes into the stores of `halfwidth.equation`, whose
batch jackknife gives the errors of c. The cost is O(d^2) per row. On a problem's own stream the same is
`halfwidth.learners.newton.chunked`.

Weights are probability weights: a row of weight w stands for w rows of its kind, and only ratios of weights matter.
They are divided by the mean weight of the first chunk. Rows of weight zero do not count.

A prior of one row's weight around the start tames first chunks that do not identify theta_j, like one that is
separable; it moves theta_j, where the loss is expanded, and never enters the equation for c. While a sample of rows
still holds all of them the estimate is the offline fit (`offline_fit`); later, what the expansions leave out is
estimated on the thinned sample and put back (`refinement`).

L. Luo and P. X.-K. Song, *Renewable estimation and incremental inference in generalized linear models with streaming
data sets*, JRSS B 82 (2020); the batches of scores, which make the errors right for dependent rows, are ours.

| formula         | here                                      |
|-----------------|-------------------------------------------|
| theta_j         | `point`                                   |
| A_j             | `ChunkSums.batches.curvature()`           |
| sum U + H theta | its `score()`, relative to `reference`    |
| c_j             | `fit().centre`                            |
"""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.checks import check_real
from halfwidth.errors import InputError, NotEnoughData
from halfwidth.families import make_loss
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.newton.added_columns import with_columns
from halfwidth.learners.newton.chunk_expander import ChunkExpander
from halfwidth.learners.newton.column_scaling import Scaling
from halfwidth.learners.newton.renewable_state import FIELDS, RELATIONS, equations_of
from halfwidth.learners.newton.row_buffer import Piece
from halfwidth.learners.newton.snapshot import NewtonSnapshot
from halfwidth.state.schema import Schema, Stored


class RenewableNewton(Stored, ChunkExpander):
    """One pass of regression with a loss of `halfwidth.families`.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((5_000, 2))
    >>> learner = RenewableNewton(2, "linear").consume(X, 1.0 + X @ [2.0, -1.0] + rng.standard_normal(5_000))
    >>> np.round(learner.fit().params, 1).tolist()
    [1.0, 2.0, -1.0]
    """

    kind = "renewable-newton"
    version = 2
    SCHEMA = Schema(
        kind,
        version,
        FIELDS,
        {"size": lambda s: (s["dim"] + s["intercept"]) * equations_of(s), "width": lambda s: s["dim"] + 3},
        RELATIONS,
    )

    def consume(
        self,
        X: ArrayLike,
        y: ArrayLike,
        weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        group: ArrayLike | None = None,
    ) -> Self:
        """Learn from rows in order; rows of the same `group`, anywhere in the stream, may depend on each other."""
        X = check_real("X", X)
        if X.ndim != 2 or X.shape[1] != self.dim:
            raise InputError.of("X", f"have shape (m, {self.dim})", X.shape)
        y = self._column("y", y, len(X))
        weight = None if weight is None else self._column("weight", weight, len(X))
        offset = None if offset is None else self._column("offset", offset, len(X))
        if len(X) == 0:
            return self
        piece = Piece(X, y, weight, offset, self._groups.ids(group, len(X)))
        if weight is not None and not weight.all():
            piece = piece.take(np.flatnonzero(weight))
        self._read = None
        at = 0
        while at < len(piece):
            part = piece.take(slice(at, at + self.chunk_rows - self._pending.filled))
            self._take(part)
            at += len(part)
        self.n_seen += len(piece)
        return self

    def fit(self) -> NewtonSnapshot:
        """What all rows so far say; reading changes nothing, and is remembered until the next row."""
        if self._read is None:
            if self.n_seen == 0:
                raise NotEnoughData.rows("an estimate", 0, 1)
            self._read = self._fit()
        return self._read

    def second_pass(self) -> RenewableNewton:
        """A learner for the same rows once more, expanded at this estimate: one Newton step on all rows at once."""
        found = self.fit()
        learner = RenewableNewton(
            self.dim,
            copy(found.loss),
            intercept=self.intercept,
            ridge=self.ridge,
            anchor=found.params,
            chunk_rows=self.chunk_rows,
        )
        learner._scaling, learner._unit = self._scaling or found.scaling, self._unit
        return learner

    def add_columns(self, scales: ArrayLike) -> None:
        """Go on with one more column for each of the scales, at the end of X; it was zero in all rows so far.

        Parameters
        ----------
        scales
            The size of a value of each new column, for the internal scale; 1 for the indicator of a level.
        """
        sizes = np.asarray(scales, dtype=np.float64)
        if sizes.ndim != 1 or not (np.isfinite(sizes) & (sizes > 0.0)).all():
            raise InputError.of("scales", "be positive numbers, one for each new column", scales)
        wide = RenewableNewton.from_state(with_columns(self.to_state(), sizes))
        self.__dict__.update(wide.__dict__)

    def _column(self, name: str, values: ArrayLike, rows: int) -> Vector:
        column = np.ascontiguousarray(check_real(name, values))
        if column.shape != (rows,):
            raise InputError.of(name, f"have shape ({rows},), one number for each row of X", column.shape)
        return column

    def _take(self, piece: Piece) -> None:
        """Absorb a whole chunk at once; put less aside until it fills one."""
        pending = self._pending
        if pending.filled == 0 and len(piece) == self.chunk_rows:
            self._absorb(piece)
            return
        pending.keep(piece)
        if pending.filled == self.chunk_rows:
            self._absorb(pending.handed_over(bool(self._groups.given)))

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
            **self._pending.to_state(),
            "column_centre": None if self._scaling is None else self._scaling.centre,
            "column_scale": None if self._scaling is None else self._scaling.scale,
            "unit": self._unit,
            "prior": self._prior.copy(),
            "prior_centre": self._prior_centre.copy(),
            "sums": None if self._sums is None else self._sums.to_state(),
        }

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
        learner._groups.given, learner._unit = state["grouped"], float(state["unit"])
        learner._pending.restore(state)
        if state["column_centre"] is not None:
            centre, scale = (np.array(state[name], dtype=np.float64) for name in ("column_centre", "column_scale"))
            learner._scaling = Scaling(centre, scale, learner.intercept, learner.loss.equations)
        for name in ("prior", "prior_centre"):
            setattr(learner, f"_{name}", np.array(state[name], dtype=np.float64))
        if state["sums"] is not None:
            learner._sums = learner._new_sums()
            learner._sums.restore(state["sums"])
        return learner
