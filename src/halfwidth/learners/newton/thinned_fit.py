"""What the sums of all rows say, corrected on a sample of rows where the loss is not quadratic."""

from __future__ import annotations

import numpy as np

from halfwidth.equation.batch_sums import Sums
from halfwidth.families import Loss
from halfwidth.families.dispersed import estimated_dispersion
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.newton.chunk_sums import ChunkSums
from halfwidth.learners.newton.column_scaling import Scaling
from halfwidth.learners.newton.kept_sample import RowSample
from halfwidth.learners.newton.newton_solver import Rows
from halfwidth.learners.newton.offline_fit import dispersion
from halfwidth.learners.newton.refinement import Refined, refine
from halfwidth.learners.newton.snapshot import NewtonSnapshot

_SHORT = 0.01
"""A squared step, in standard errors of independent rows."""


def thinned_fit(sums: ChunkSums, loss: Loss, penalty: Vector, scaling: Scaling, *, anchored: bool) -> NewtonSnapshot:
    """The snapshot of all rows; `penalty` is for a weight of one."""
    n, size = sums.batches.rows, len(penalty)
    full = sums.weight * penalty
    centre, curvature = sums.centre(full), sums.batches.curvature()
    wide = sums.batches.single
    time = sums.batches.closed(copy=not wide)
    refined = Refined(centre, curvature, np.zeros((0, size)), True, np.zeros(0))
    left_out, rows = np.zeros(size), None if sums.sample is None else sums.sample.rows()
    if sums.sample is not None and rows is not None and not loss.quadratic:
        refined = _refined(sums, rows, loss, refined, full, anchored)
        if anchored and not refined.settled and _arrived(centre - sums.reference, curvature):
            refined = Refined(centre, curvature, np.zeros((0, size)), True, np.zeros(sums.sample.count))
        left_out = _by_batch(refined.remainders, sums.sample, time, rows)
    snapshot = NewtonSnapshot(
        n=n, weight=sums.weight, scaling=scaling, loss=loss, centre=refined.centre, curvature=refined.curvature,
        penalty=penalty, dispersion=_dispersion(sums, rows, loss, refined.centre),
        sums=time if sums.buckets is None else sums.buckets.closed(), time=time, reference=sums.reference.copy(),
        time_correction=left_out, batch_rows=int(time.n[0]),
        groups=None if sums.buckets is None else sums.buckets.groups, correction=refined.root,
        settled=refined.settled, anchored=anchored, sample=rows, complete=False,
        goodness=sums.goodness(refined.centre, loss.scale, exact=anchored),
    )  # fmt: skip
    if wide:  # the sums are not copies: they change with the next rows
        snapshot.errors, snapshot.held_still  # noqa: B018
    return snapshot


def _refined(sums: ChunkSums, rows: Rows, loss: Loss, plain: Refined, full: Vector, anchored: bool) -> Refined:
    """Corrected on the sample; the loss takes the dispersion that belongs to the centre, if it has one to estimate."""
    assert sums.sample is not None
    family = estimated_dispersion(loss)
    if family is None or sums.dispersions is None:
        return refine(sums.sample, rows, loss, plain.centre, plain.curvature, full)
    if not anchored:
        family.scale = sums.dispersions.root(family, plain.centre - sums.reference)
    found = refine(sums.sample, rows, family, plain.centre, plain.curvature, full)
    gap = found.centre - sums.reference
    if not anchored:
        family.scale = sums.dispersions.root(family, gap)
        return found
    family.scale, shift = sums.dispersions.joint_step(family, gap, plain.curvature, full)
    return found._replace(centre=found.centre + shift)


def _dispersion(sums: ChunkSums, rows: Rows | None, loss: Loss, centre: Vector) -> float:
    """Sum of squared scores over sum of mean weights: of all rows where it is known, else of the sample."""
    freedom = sums.batches.rows / max(sums.batches.rows - len(centre), 1)
    family = estimated_dispersion(loss)
    if family is not None and not family.steers:
        return family.scale * freedom
    if rows is None or loss.quadratic:
        return sums.dispersion(centre) * freedom
    return dispersion(rows, loss, rows.eta(centre), 0) * freedom


def _arrived(step: Vector, curvature: Vector) -> bool:
    """Whether the step of this pass, a Newton step on all rows, was so short that a further one would be none."""
    return bool(step @ curvature @ step <= _SHORT)


def _by_batch(remainders: Vector, sample: RowSample, time: Sums, rows: Rows) -> Vector:
    """What the expansions leave out of every batch, estimated on its sampled rows."""
    found = np.zeros_like(time.b)
    batch = np.searchsorted(np.cumsum(time.n), sample.index.astype(np.float64), side="right")
    np.add.at(found, np.minimum(batch, len(found) - 1), rows.each(remainders))
    return found
