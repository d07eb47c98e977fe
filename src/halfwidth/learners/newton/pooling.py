"""Renewable Newton over several pieces of data, learned apart: on machines of their own, say.

Sums of the equation add up. Every piece has the internal scale and the reference of its own first rows, so those of the
second are brought to the first's before: coordinates by theta_2 = M theta_1, weights by the ratio of their units, and

    b <- b - A g,   loss <- loss - g'b + g'A g / 2,   g = reference_1 - reference_2.

Rows that either piece had put aside are expanded first. For squared loss the result is that of one learner on all rows;
otherwise chunks were expanded at other points, and what that leaves out is measured on the samples of both pieces,
thinned alike. The second's sampled rows take the numbers that the hash selects among those of its rows, in order.
"""

from __future__ import annotations

import numpy as np

from halfwidth.equation.batch_store import BatchStore
from halfwidth.equation.buckets import BucketStore
from halfwidth.equation.combine import pool, recast
from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.newton.chunk_sums import ChunkSums
from halfwidth.learners.newton.kept_sample import Ids, RowSample, hashed
from halfwidth.learners.newton.loss_sums import LossSums
from halfwidth.learners.newton.renewable import RenewableNewton

_BLOCK = 1 << 20


def pooled(first: RenewableNewton, second: RenewableNewton) -> RenewableNewton:
    """One learner for the rows of both, which stay as they are; see the module's text."""
    if bool(first.grouped) != bool(second.grouped):
        raise InputError("grouped and ungrouped pieces cannot be pooled; give groups with all of them or with none")
    if first.chunk_rows != second.chunk_rows:
        raise InputError.of("chunk_rows", f"be {first.chunk_rows} in both pieces", second.chunk_rows)
    one, two = _expanded(first), _expanded(second)
    if one._scaling is None or two._scaling is None or one._sums is None or two._sums is None:
        raise InputError("a piece without rows cannot be pooled; leave it out")
    share = two.n_seen / (one.n_seen + two.n_seen)
    join(one._sums, two._sums, two._scaling.from_other(one._scaling), two._unit / one._unit)
    one.n_seen += two.n_seen
    if one.anchor is None or two.anchor is None or not np.array_equal(one.anchor, two.anchor):
        one.anchor = None
    one.loss.scale += share * (two.loss.scale - one.loss.scale)
    one.loss.sharpen(one.n_seen, one.size)
    return one


def _expanded(learner: RenewableNewton) -> RenewableNewton:
    """A copy in which no row is put aside."""
    twin = RenewableNewton.from_state(learner.to_state())
    if twin._pending.filled:
        twin._absorb(twin._pending.piece(twin.grouped))
        twin._pending.filled = 0
    return twin


def join(one: ChunkSums, two: ChunkSums, M: Vector, factor: float) -> None:
    """Add the sums of a second piece, whose coefficients are M times the first's, for each equation."""
    if one.sample is not None and two.sample is not None:
        join_samples(one.sample, two.sample, M, factor, one.batches.rows, two.batches.rows)
    whole: Vector = np.asarray(np.kron(np.eye(one.loss.equations), M), dtype=np.float64)
    recast(two.batches, whole, factor)
    gap = one.reference - two.reference
    slope, bend = float(gap @ two.batches.score()), float(gap @ two.batches.curvature() @ gap)
    squares = factor * two.moments[0] + (bend - 2.0 * slope if one.loss.quadratic else 0.0)
    one.moments += (squares, factor * two.moments[1])
    join_losses(one.losses, two.losses, factor, slope - 0.5 * bend)
    if one.dispersions is not None and two.dispersions is not None:
        cross = factor * (two.dispersions.cross @ whole)
        one.dispersions.value += factor * two.dispersions.value + float(cross @ gap)
        one.dispersions.cross += cross
        one.dispersions.bend += factor * two.dispersions.bend
        one.dispersions.slopes += factor * two.dispersions.slopes
        one.dispersions.offsets += factor * two.dispersions.offsets
    one.smoothing += factor * (two.smoothing @ whole)
    one.weight += factor * two.weight
    if one.buckets is not None and two.buckets is not None:
        recast(two.buckets, whole, factor)
        two.buckets.rebase(-gap)
        buckets = pool(one.buckets, two.buckets)
        assert isinstance(buckets, BucketStore)
        one.buckets = buckets
    batches = pool(one.batches, two.batches)
    assert isinstance(batches, BatchStore)
    one.batches = batches


def join_losses(one: LossSums, two: LossSums, factor: float, decrease: float) -> None:
    """Add the second's sums, of a loss that is less by `decrease` at the first's reference."""
    shift = two.y_ref - one.y_ref
    one.value += factor * two.value - decrease
    one.saturated += factor * two.saturated
    one.constant += factor * two.constant
    one.second += factor * (two.second + shift * (2.0 * two.first + shift * two.weight))
    one.first += factor * (two.first + shift * two.weight)
    one.weight += factor * two.weight
    one.has_offset |= two.has_offset
    if one.counts is not None and two.counts is not None:
        one.counts = one.counts + factor * two.counts


def join_samples(one: RowSample, two: RowSample, M: Vector, factor: float, before: int, rows: int) -> None:
    """Add the second's sampled rows, out of `rows` that come after `before` others."""
    for sample, other in ((one, two), (two, one)):
        while sample.thinning < other.thinning:
            sample.thin()
    index = _numbers(before, rows, one.thinning, two.count)
    chosen = np.arange(two.count) if len(index) == two.count else _spread(two.count, len(index))
    new = two._rows[chosen]
    new[:, : one.columns] = new[:, : one.columns] @ M
    new[:, one.columns + 1] *= factor
    one._rows = np.concatenate([one._rows[: one.count], new])
    one._index = np.concatenate([one.index, index])
    one._ids = np.concatenate([one.ids, two.ids[chosen]])
    one.count = len(one._rows)
    while one.count > one.capacity:
        one.thin()


def _numbers(first: int, rows: int, thinning: int, most: int) -> Ids:
    """The first numbers from `first` on, of so many rows, that the hash selects."""
    if thinning == 0:
        return np.arange(first, first + most, dtype=np.uint64)
    found: list[Ids] = []
    for start in range(first, first + rows, _BLOCK):
        block = np.arange(start, min(start + _BLOCK, first + rows), dtype=np.uint64)
        found.append(block[hashed(block) >> np.uint64(64 - thinning) == 0])
        if sum(map(len, found)) >= most:
            break
    return np.concatenate(found)[:most]


def _spread(count: int, kept: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """`kept` of the places up to `count`, evenly."""
    return np.arange(kept) * count // max(kept, 1)
