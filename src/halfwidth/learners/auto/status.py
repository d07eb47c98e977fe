"""What `auto` says about itself: notes on what it chose and why, and warnings when it should not be trusted.

| flag                 | when                                                                                        |
|----------------------|---------------------------------------------------------------------------------------------|
| `few-batches`        | fewer than 16 batches, or fewer than twice as many rows as the burn-in took                 |
| `short-batches`      | in the median coordinate, batches of twice or four times the length give significantly more, |
|                      | or, where noise outlasts a chunk, a kernel over them leaves fewer than 8 degrees of freedom  |
| `clipped-steps`      | more than a fifth of the steps were clipped (two where J = 0, noise is correlated and the    |
|                      | loss quadratic): the loss bends more than its mean Hessian says                             |
| `not-settled`        | the linearisation point moved, lately, through a region where the loss is far from           |
|                      | quadratic; or theta ran away when half of the rows were over                                |
| `jumping-gradient`   | the gradient jumps: differences on a chunk say little about its mean field                  |
| `long-dependence`    | where chunks are unlike each other: a kernel over batches leaves few degrees of freedom      |
| `hessian-mismatch`   | of `ask` and `tell`: gradients change with theta by more, or less, than the told Hessian says|
| `exact-fit`          | the batches of some coefficient do not differ, or by squares that underflow: no noise        |
| `unidentified`       | no row has shown some coefficient: its interval is refused                                  |
| `rare`               | of a coefficient: few batches hold what is known of it (`unequal`)                           |
"""

from __future__ import annotations

import numpy as np

from halfwidth.inference.batch_result import BatchesResult, too_short
from halfwidth.learners.auto.facts import Facts, Flag
from halfwidth.learners.auto.feedback_status import feedback_flags, feedback_note

NO_STEPS: Flag = (
    "no-steps",
    "theta follows the root of all rows here and takes no steps: what a watcher makes of its path is no interval. Ask "
    "result() without a watcher",
)
FEW_BATCHES, FEW_DEGREES = 16, 8.0
MOST_CLIPPED, MOST_CLIPPED_UNUSED = 0.2, 0.4
"""Shares of clipped steps; the second where noise is correlated, J = 0 and the loss quadratic: no step matters then."""
MOST_BENT = 0.3
LATE, LATE_TRUNCATION = 0.2, 0.5
TOLD_HESSIAN = "the Hessian that was told"
MOST_MISMATCH = 0.15
"""How far gradients may change by more, or less, than a Hessian that was told says."""


def notes(facts: Facts, result: BatchesResult, kernel: str = "") -> tuple[str, ...]:
    """What was chosen, in words; `kernel` where errors are not those of batch means."""
    K = len(result.influences)
    wider = int((result.inflations(np.eye(result.params.size)) > 1.0).sum())
    said = [
        f"curvature: {facts.curvature}",
        f"rows: {facts.began:,} to find a start and settle, {result.n:,} behind the interval, "
        f"{facts.n_seen - facts.began - result.n:,} waiting to fill a chunk of {facts.chunk_rows}",
        kernel
        or f"batches: {K} of {facts.batch_rows:,} rows"
        + (f"; longer ones for {wider} of {result.params.size} coordinates" if wider else ""),
        feedback_note(facts.response, facts.unseen) if facts.detect else "feedback: declared to be none",
    ]
    if facts.restarts:
        times = "once" if facts.restarts == 1 else f"{facts.restarts} times, last"
        said.append(f"estimation restarted {times} at row {facts.began:,}: the loss was too curved")
    if facts.truncations:
        where = ", ".join(f"{row:,}" for row in facts.truncations)
        said.append(f"truncations: theta was taken back at row {where}; the sums started afresh each time")
    return tuple(said)


def flags(facts: Facts, result: BatchesResult) -> tuple[Flag, ...]:
    """What speaks against the interval."""
    K = len(result.influences)
    found = _mismatch(facts)
    if K < FEW_BATCHES or facts.n_seen < 2 * facts.burn_in:
        enough = max(3 * facts.burn_in, facts.n_seen + max(FEW_BATCHES - K, 1) * facts.batch_rows)
        text = f"only {K} batches after {facts.n_seen:,} rows; feed more than {enough:,} rows"
        found.append(("few-batches", text))
    few = facts.response.denied and result.diagnostics.effective_blocks < FEW_DEGREES
    if few or too_short(result.influences):
        text = (
            f"batches of {facts.batch_rows:,} rows are still correlated, the interval is likely too short; feed more "
            "rows, and batches grow with them"
        )
        found.append(("short-batches", text))
    unused = facts.response.correlated and facts.quadratic and not facts.restarts and not facts.truncations
    if facts.clipped_share > (MOST_CLIPPED_UNUSED if unused else MOST_CLIPPED):
        text = (
            f"{100 * facts.clipped_share:.0f}% of the steps were clipped: the loss bends more than its mean Hessian "
            "says. Scale the columns, or start nearer to the solution (theta_0)"
        )
        found.append(("clipped-steps", text))
    late = facts.restarts and facts.began > LATE * facts.n_seen and facts.n_seen > 4 * facts.burn_in
    if facts.bent > MOST_BENT or late:
        text = (
            f"the linearisation point still moves through a strongly curved region (began at row {facts.began:,}); "
            "feed more rows, or start nearer to the solution (theta_0)"
        )
        found.append(("not-settled", text))
    elif facts.truncations and facts.began > LATE_TRUNCATION * facts.n_seen:
        text = (
            f"theta ran away as late as row {facts.truncations[-1]:,}, and {facts.n_seen - facts.began:,} of "
            f"{facts.n_seen:,} rows are behind the interval. Feed more rows, or start nearer to the solution (theta_0)"
        )
        found.append(("not-settled", text))
    if facts.jumps:
        text = (
            "the gradient jumps, and steps by its differences are rough: the interval may be far off. Give the rows to "
            "consume(...), where such losses are differenced over many rows, or smooth the loss"
        )
        found.append(("jumping-gradient", text))
    found += feedback_flags(facts)
    shown = np.delete(result.influences, facts.hidden, axis=1)
    if not np.square(shown).any(axis=0).all():
        text = (
            "the batches of some coefficient do not differ at all: there is no noise, or it cancels within a chunk, "
            "and the interval says nothing. Draw the rows at random, or feed them in another order"
        )
        found.append(("exact-fit", text))
    if facts.hidden:
        text = (
            f"no row has shown {', '.join(f'theta[{j}]' for j in facts.hidden[:8])}: its interval is refused, the "
            "others are given. Feed rows that show it, or drop the column"
        )
        found.append(("unidentified", text))
    return tuple(found)


def _mismatch(facts: Facts) -> list[Flag]:
    if facts.curvature != TOLD_HESSIAN or abs(facts.steepness - 1.0) <= MOST_MISMATCH:
        return []
    text = (
        f"gradients change with theta by {facts.steepness:.3g} times what the Hessian says. Tell the Hessian of the "
        "same loss at request.points[1], summed over the same rows; if it is right, theta was deployed where the loss "
        "is far from quadratic: start nearer to the solution (theta_0)"
    )
    return [("hessian-mismatch", text)]
