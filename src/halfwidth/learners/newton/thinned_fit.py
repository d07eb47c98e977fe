"""What the sums of all rows say, corrected on a sample of rows where the loss is not quadratic."""

from __future__ import annotations

import numpy as np

from halfwidth.equation.batch_sums import Sums
from halfwidth.families import Loss
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.newton.chunk_sums import ChunkSums
from halfwidth.learners.newton.column_scaling import Scaling
from halfwidth.learners.newton.kept_sample import RowSample
from halfwidth.learners.newton.newton_solver import Rows
from halfwidth.learners.newton.refinement import Refined, refine
from halfwidth.learners.newton.snapshot import NewtonSnapshot


def thinned_fit(sums: ChunkSums, loss: Loss, penalty: Vector, scaling: Scaling, *, anchored: bool) -> NewtonSnapshot:
    """The snapshot of all rows; `penalty` is for a weight of one."""
    n, size = sums.batches.rows, len(penalty)
    full = sums.weight * penalty
    centre, curvature = sums.centre(full), sums.batches.curvature()
    wide = sums.batches.single
    time = sums.batches.closed(copy=not wide)
    refined = Refined(centre, curvature, np.zeros((size, size)), True, np.zeros(0))
    dispersion, left_out = sums.dispersion(centre), np.zeros(size)
    rows = None
    if sums.sample is not None:
        refined = refine(sums.sample, loss, centre, curvature, full)
        rows = sums.sample.rows()
        dispersion = _dispersion(rows, loss, refined.centre)
        left_out = _by_batch(refined.remainders, sums.sample, time, rows)
    snapshot = NewtonSnapshot(
        n=n, weight=sums.weight, scaling=scaling, loss=loss, centre=refined.centre, curvature=refined.curvature,
        expanded=curvature, penalty=penalty, dispersion=dispersion * n / max(n - size, 1),
        sums=time if sums.buckets is None else sums.buckets.closed(), time=time, reference=sums.reference.copy(),
        time_correction=left_out, batch_rows=int(time.n[0]),
        groups=None if sums.buckets is None else sums.buckets.groups, correction=refined.covariance,
        settled=refined.settled, anchored=anchored, sample=rows, complete=False,
        goodness=sums.goodness(refined.centre, exact=anchored),
    )  # fmt: skip
    if wide:  # the sums are not copies: they change with the next rows
        snapshot.errors, snapshot.held_still  # noqa: B018
    return snapshot


def _dispersion(rows: Rows, loss: Loss, centre: Vector) -> float:
    """Sum of squared scores over sum of weights: one where the family's variance is right."""
    eta = rows.eta(centre)
    squares = rows.weighted(loss.score(eta, rows.y) ** 2).sum()
    return float(squares / max(rows.weighted(loss.weight(eta, rows.y)).sum(), 1e-300))


def _by_batch(remainders: Vector, sample: RowSample, time: Sums, rows: Rows) -> Vector:
    """What the expansions leave out of every batch, estimated on its sampled rows."""
    found = np.zeros_like(time.b)
    batch = np.searchsorted(np.cumsum(time.n), sample.index.astype(np.float64), side="right")
    np.add.at(found, np.minimum(batch, len(found) - 1), remainders[:, None] * rows.Z)
    return found
