"""What renewable Newton keeps of the chunks it has expanded: batches or buckets of the equation, and a sample of rows.

Chunk j, expanded at theta_j, adds H_j and U_j + H_j (theta_j - reference) to the stores; the centre is

    c = reference + (sum H_j + penalty)^-1 (sum U_j + H_j (theta_j - reference) - penalty reference).

Rows in groups go to buckets, and to a few long batches in time order for the test of stability. Where the estimate is
the root of a smoothed score (quantiles), `smoothing` has the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy, deepcopy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfwidth.equation import BatchStore, capacity_for, solve_spd
from halfwidth.equation.buckets import BucketStore
from halfwidth.equation.wide_errors import WIDE
from halfwidth.families import Loss
from halfwidth.families.dispersed import estimated_dispersion
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.newton.dispersion_sums import DispersionSums
from halfwidth.learners.newton.kept_sample import PICTURED_ROWS, Ids, RowSample, coefficients
from halfwidth.learners.newton.loss_sums import GoodnessOfFit, LossSums, chunk_loss
from halfwidth.learners.newton.newton_solver import Rows, squared
from halfwidth.state.containers import Nested, Optional
from halfwidth.state.fields import Array, Real, State
from halfwidth.state.schema import Relation, Schema

TIME_BATCHES = 64
Expand = Callable[[Rows, "ChunkSums"], "Expanded"]


class Expanded(NamedTuple):
    """Rows at a point: eta, the raw score U, sqrt(weight) z, and the sum of the weights of the slope."""

    point: Vector
    eta: Vector
    score: Vector
    root: Vector
    bend: float

    @classmethod
    def of(cls, rows: Rows, loss: Loss, point: Vector) -> Expanded:
        eta = rows.eta(point)
        if loss.quadratic:
            root = rows.Z if rows.weight is None else np.sqrt(rows.weight)[:, None] * rows.Z
            return cls(point, eta, -rows.weighted(loss.slope(eta, rows.y)), root, rows.total_weight)
        slope, weight = loss.slope_and_weight(eta, rows.y)
        score = -rows.weighted(loss.score(eta, rows.y) if loss.rough else slope)
        return cls(point, eta, score, rows.root(weight), float(rows.weighted(weight).sum()))


def _parts_fit(state: State) -> bool:
    size, rows = len(state["smoothing"]), state["batches"]["n"].sum()
    parts = [len(state["batches"]["reference"]), state["batches"]["H"].shape[1]]
    if state["buckets"] is not None:
        parts.append(state["buckets"]["dim"])
        rows -= state["buckets"]["n"].sum() - rows
    if state["sample"] is not None:
        parts.append(coefficients(state["sample"]))
    if "dispersion" in state:
        parts.append(len(state["dispersion"]["cross"]))
    return size > 0 and set(parts) == {size} and rows == state["batches"]["n"].sum() > 0


class ChunkSums:
    """Sums over all expanded rows, and a thinned sample of them."""

    SCHEMA = Schema(
        None,
        None,
        {
            "smoothing": Array(("size",), doc="what smoothing the score changes"),
            "moments": Array((2,), low=0.0, doc="sums of squared scores and of the weights of the slope"),
            "weight": Real(0.0, strict=True, doc="sum of the weights of expanded rows"),
            "batches": Nested(BatchStore.SCHEMA, doc="batches in time order"),
            "buckets": Optional(Nested(BucketStore.SCHEMA), doc="buckets, where rows come in groups"),
            "sample": Optional(Nested(RowSample.SCHEMA), doc="the thinned sample; small if the loss is quadratic"),
            "losses": Nested(LossSums.SCHEMA, doc="the loss and the moments of targets"),
            "dispersion": Nested(DispersionSums.SCHEMA, doc="the equation of the dispersion, where it is estimated"),
        },
        relations=(Relation("have parts of the same coefficients and rows", _parts_fit),),
        title="sums of chunks",
        optional=("dispersion",),
    )

    def __init__(self, loss: Loss, size: int, batch_length: int, grouped: bool) -> None:
        self.loss = loss
        few = capacity_for(size, TIME_BATCHES)
        length = max(1, batch_length * capacity_for(size) // few) if grouped else batch_length
        self.batches = BatchStore(size, length, few if grouped else None, single=size > WIDE)
        self.buckets = BucketStore(size) if grouped else None
        self.smoothing = np.zeros(size)
        self.weight = 0.0
        self.moments = np.zeros(2)  # sums of squared scores and of the weights of the slope
        most = PICTURED_ROWS if loss.quadratic else None
        self.sample: RowSample | None = RowSample(size // loss.equations, most, loss.equations)
        self.losses = LossSums(loss)
        self.dispersions = None if estimated_dispersion(loss) is None else DispersionSums(size)

    @property
    def reference(self) -> Vector:
        return self.batches.reference

    def add(self, rows: Rows, expanded: Expanded, ids: Ids | None) -> None:
        """Add up the rows, which were expanded at a point."""
        if self.sample is not None:
            self.sample.add(rows, expanded.eta, self.loss, ids, self.batches.rows)
        gap = expanded.point - self.reference
        enter_batches(self.batches, rows.Z, expanded, gap)
        if self.buckets is not None and ids is not None:
            enter_buckets(self.buckets, rows.Z, expanded, gap, ids)
        if self.loss.rough:
            raw, smooth = self.loss.score(expanded.eta, rows.y), self.loss.root(expanded.eta, rows.y)
            self.smoothing += rows.weighted(raw - smooth) @ rows.Z
        self.weight += rows.total_weight
        score = expanded.score
        squares = np.sum(score**2) if rows.weight is None else np.sum((score.T**2) / rows.weight)
        self.moments += (float(squares), expanded.bend)
        if self.loss.likelihood:
            value = 0.5 * float(squares)
            if not self.loss.quadratic:
                value = chunk_loss(self.loss, expanded.eta, rows.y, rows.weight)
            if gap.any():
                value += float(np.sum(score * rows.along(gap))) + 0.5 * float(np.sum((expanded.root @ gap) ** 2))
            self.losses.add(self.loss, rows, value)
        family = estimated_dispersion(self.loss)
        if self.dispersions is not None and family is not None:
            self.dispersions.add(family, rows, expanded.eta, gap)

    @contextmanager
    def including(self, rows: Rows, ids: Ids | None, expand: Expand) -> Iterator[ChunkSums]:
        """The sums with these rows added, for reading; afterwards everything is as it was."""
        if not len(rows):
            yield self
            return
        reader = copy(self)
        reader.sample, reader.buckets = deepcopy(self.sample), deepcopy(self.buckets)
        reader.smoothing, reader.moments = self.smoothing.copy(), self.moments.copy()
        reader.losses, reader.dispersions = self.losses.copy(), deepcopy(self.dispersions)
        if not self.batches.single:
            reader.batches = self.batches.copy()
            reader.add(rows, expand(rows, reader), ids)
            yield reader
            return
        with self.batches.borrowed():
            reader.add(rows, expand(rows, reader), ids)
            del rows  # not needed while the sums are read
            yield reader

    def centre(self, penalty: Vector) -> Vector:
        """The root of the expanded equation, with the penalty's weights for all rows together."""
        return self.reference + solve_spd(self.batches.curvature(), self.pull(penalty), penalty)

    def pull(self, penalty: Vector) -> Vector:
        """What pulls the centre away from the reference: curvature and penalty times the difference."""
        return np.asarray(self.batches.score() + self.smoothing - penalty * self.reference)

    def goodness(self, centre: Vector, scale: float, *, exact: bool) -> GoodnessOfFit | None:
        """The loss at the centre and the scale, and the moments of targets, where the loss is a likelihood's."""
        if not self.loss.likelihood:
            return None
        gap = centre - self.reference
        decrease = float(gap @ self.batches.score() - 0.5 * gap @ self.batches.curvature() @ gap)
        found = self.losses.at(decrease, exact or self.loss.quadratic)
        return found if self.dispersions is None else self.dispersions.moved(found, scale)

    def dispersion(self, centre: Vector) -> float:
        """Sum of squared scores over sum of weights, at the centre; at the points of expansion if not quadratic."""
        squares, bend = self.moments.tolist()
        if self.loss.quadratic:  # moved from the reference to the centre
            gap = centre - self.reference
            squares += float(gap @ self.batches.curvature() @ gap - 2.0 * gap @ self.batches.score())
        return float(max(squares, 0.0) / max(bend, 1e-300))

    def to_state(self) -> dict[str, Any]:
        return {
            "smoothing": self.smoothing.copy(),
            "moments": self.moments.copy(),
            "weight": self.weight,
            "batches": self.batches.to_state(),
            "buckets": None if self.buckets is None else self.buckets.to_state(),
            "sample": None if self.sample is None else self.sample.to_state(),
            "losses": self.losses.to_state(),
        } | ({} if self.dispersions is None else {"dispersion": self.dispersions.to_state()})

    def restore(self, state: dict[str, Any]) -> None:
        """Become what `to_state` described."""
        self.smoothing = np.array(state["smoothing"], dtype=np.float64)
        self.moments = np.array(state["moments"], dtype=np.float64)
        self.weight = float(state["weight"])
        self.batches = BatchStore.from_state(state["batches"])
        self.buckets = None if state["buckets"] is None else BucketStore.from_state(state["buckets"])
        most = PICTURED_ROWS if self.loss.quadratic else None
        self.sample = None if state["sample"] is None else RowSample.from_state(state["sample"], most)
        self.losses = LossSums.from_state(state["losses"])
        if "dispersion" in state:
            self.dispersions = DispersionSums.from_state(state["dispersion"])


def enter_batches(store: BatchStore, Z: Vector, expanded: Expanded, gap: Vector) -> None:
    """Add rows in time order; `gap` is the point of expansion less the reference."""
    at = 0
    while at < len(Z):
        part = slice(at, at + store.free_rows)
        edges = store.edges(len(Z[part]))
        if store.single:  # one matrix at a time
            part, edges = slice(at, at + int(edges[1])), edges[:2]
        store.add(edges, *pieces(Z[part], expanded.root[part], expanded.score[part], edges, gap))
        at += len(Z[part])


def enter_buckets(store: BucketStore, Z: Vector, expanded: Expanded, gap: Vector, ids: Ids) -> None:
    """Add rows to the buckets of their groups."""
    places = store.places(ids)
    order = np.argsort(places, kind="stable")
    used, first = np.unique(places[order], return_index=True)
    edges = np.append(first, len(places)).astype(np.int64)
    b, H = pieces(Z[order], expanded.root[order], expanded.score[order], edges, gap)
    store.add(used, b, H, np.diff(edges).astype(np.float64))


def pieces(Z: Vector, root: Vector, score: Vector, edges: NDArray[np.int64], gap: Vector) -> tuple[Vector, Vector]:
    """U + H gap and H of the pieces between the edges; equal pieces go through one stacked product."""
    count, size = len(edges) - 1, root.shape[-1]
    step = int(edges[1] - edges[0])
    if step > 0 and len(Z) == count * step and (np.diff(edges) == step).all():
        stacked = _stacked(root, count, step)
        H = stacked.transpose(0, 2, 1) @ stacked
        U = (score.reshape(count, step, -1).transpose(0, 2, 1) @ _stacked(Z, count, step)).reshape(count, size)
        return U + H @ gap, H
    U, H = np.empty((count, size)), np.empty((count, size, size))
    for j in range(count):
        piece = slice(edges[j], edges[j + 1])
        U[j] = (score[piece].T @ Z[piece]).ravel()
        H[j] = squared(root[piece])
    return U + H @ gap, H


def _stacked(rows: Vector, count: int, step: int) -> Vector:
    """The rows in `count` pieces of `step`, without a copy in either order of memory."""
    if rows.ndim == 2 and rows.flags.f_contiguous:
        return rows.T.reshape(rows.shape[1], count, step).transpose(1, 2, 0)
    return rows.reshape(count, -1, rows.shape[-1])
