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
| `feedback-rejected`  | feedback was seen, but with it the Jacobian would be singular, or climb: not corrected for  |
| `near-singular`      | the feedback nearly cancels the Hessian, and its slope is uncertain by more than a sixth     |
| `feedback-undecided` | a response is seen that may be correlated noise: the dither has not told the two apart yet, |
|                      | or theta ran away before it did                                                             |
| `slow-feedback`      | the dither shows less than a sixteenth of the response that theta's own motion shows         |
| `curved-response`    | batches in which the deployed theta was noisier say something else, beyond chance           |
| `rows-changed`       | the Hessian is another than where the feedback was measured, or changes slowly (`unequal`)   |
| `jumping-gradient`   | the gradient jumps: differences on a chunk say little about its mean field                  |
| `long-dependence`    | where chunks are unlike each other: a kernel over batches leaves few degrees of freedom      |
| `exact-fit`          | the batches of some coefficient do not differ, or by squares that underflow: no noise        |
| `unidentified`       | no row has shown some coefficient: its interval is refused                                  |
| `rare`               | of a coefficient: few batches hold what is known of it (`unequal`)                           |
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from halfwidth.inference.batch_result import BatchesResult, too_short
from halfwidth.learners.auto.feedback import LARGE_GAIN, LARGEST_GAIN, Response

Flag = tuple[str, str]

NO_STEPS: Flag = (
    "no-steps",
    "theta follows the root of all rows here and takes no steps: what a watcher makes of its path is no interval. Ask "
    "result() without a watcher",
)
FEW_BATCHES, FEW_DEGREES = 16, 8.0
MOST_CLIPPED, MOST_CLIPPED_UNUSED = 0.2, 0.4
"""Shares of clipped steps; the second where noise is correlated, J = 0 and the loss quadratic: no step matters then."""
MOST_BENT, FEW_RENEWALS = 0.3, 64.0
MOST_DRIFT, MOST_WANDER = 1.25, 0.2
LATE, LATE_TRUNCATION, SLOWEST = 0.2, 0.5, 16.0
"""A response that lasts for ten chunks shows some 16 times as much in theta's own motion as in signs that alternate."""


@dataclass(frozen=True)
class Facts:
    """What the run knows about itself."""

    n_seen: int
    burn_in: int
    began: int
    chunk_rows: int
    batch_rows: int
    curvature: str
    response: Response
    clipped_share: float
    bent: float
    restarts: int
    truncations: tuple[int, ...] = ()
    jumps: bool = False
    shifted: bool = False
    """Whether the root moves with the noise of the deployed theta."""
    drift: float = 1.0
    """The factor by which the Hessian of all rows differs from that where the feedback was measured."""
    wander: float = 0.0
    """What rows that change slowly add to the variance, where one slope stands for the response of all."""
    quadratic: bool = True
    """Whether the gradient was seen to be linear in theta."""
    detect: bool = True
    dithers: bool = True
    """Whether the engine chooses what is deployed."""
    hidden: tuple[int, ...] = ()


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
        feedback_note(facts.response) if facts.detect else "feedback: declared to be none",
    ]
    if facts.restarts:
        times = "once" if facts.restarts == 1 else f"{facts.restarts} times, last"
        said.append(f"estimation restarted {times} at row {facts.began:,}: the loss was too curved")
    if facts.truncations:
        where = ", ".join(f"{row:,}" for row in facts.truncations)
        said.append(f"truncations: theta was taken back at row {where}; the sums started afresh each time")
    return tuple(said)


def feedback_note(seen: Response) -> str:
    """What is known of the feedback, in words."""
    if seen.evidence == 0.0:
        return f"feedback: not seen; that takes {2 * len(seen.J) + 8:,} chunks, and a theta that moves: no correction"
    if seen.proportion is not None:
        error = math.sqrt(seen.proportion.variance)
        kind = "the data respond to theta" if seen.detected else "no significant feedback"
        share = f"{seen.proportion.share:.2f} of each chunk's own Hessian, with a standard error of {error:.2f}"
        return f"{kind} ({share}): {'not ' if seen.rejected else ''}corrected"
    evidence = f"F = {seen.evidence:.2f} times its value without feedback"
    if seen.instrument is not None:
        evidence += f"; dither {seen.instrument.T:.1f}, {seen.instrument.N:.1f} expected of feedback"
    if seen.kept > 0.0:
        kind = "the data respond to theta" if seen.detected else "the data may respond to theta"
        return f"{kind} ({evidence}): corrected, by a slope seen over {seen.renewals:.0f} renewals"
    if seen.denied:
        return f"noise stays correlated for longer than a chunk, no feedback ({evidence}): no correction"
    small = "a response within chance" if seen.suspected and not seen.rejected else "no significant feedback"
    return f"{small} ({evidence}): no correction"


def flags(facts: Facts, result: BatchesResult) -> tuple[Flag, ...]:
    """What speaks against the interval."""
    K = len(result.influences)
    found: list[Flag] = []
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
    found += _feedback_flags(facts)
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


def _feedback_flags(facts: Facts) -> list[Flag]:
    response = facts.response
    if response.rejected and response.proportion is not None and not response.proportion.fits:
        text = (
            "chunks of rows are unlike each other, and the data respond to theta in another way than in proportion to "
            "each chunk's own Hessian: not corrected. Deploy each theta for more rows (chunk_rows), or draw the rows "
            "at random"
        )
        return [("feedback-rejected", text)]
    if response.rejected:
        amplified = f"amplify errors {response.gain:.0f} times (limit {LARGEST_GAIN:.0f})"
        text = (
            "the data respond to theta, but correcting for it would "
            f"{amplified if response.gain > LARGEST_GAIN else 'turn steps uphill'}: not corrected, and the interval is "
            "likely too short. Feed more rows, or start nearer to the solution (theta_0)"
        )
        return [("feedback-rejected", text)]
    if response.gain > LARGE_GAIN and response.renewals < FEW_RENEWALS:
        text = (
            f"the feedback nearly cancels the Hessian (errors are amplified {response.gain:.0f} times): theta is "
            "hardly determined; feed many more rows"
        )
        return [("near-singular", text)]
    if not facts.detect:
        return []
    if response.unlike and response.doubtful:
        text = (
            "chunks of rows are unlike each other, and the dither has not measured yet how the data respond to theta. "
            "Feed more rows, or declare feedback='none' if data cannot respond"
        )
        return [("feedback-undecided", text)]
    if facts.dithers and (response.undecided or (response.denied and facts.truncations)):
        text = (
            "the gradient moves with theta, by feedback or by noise that stays correlated: the dither has not told the "
            "two apart yet. Feed more rows, or declare feedback='none' if data cannot respond"
        )
        return [("feedback-undecided", text)]
    seen = response.instrument
    if facts.dithers and response.detected and not response.unlike and seen is not None and seen.T < seen.N / SLOWEST:
        text = (
            f"the data respond to theta, but so slowly that the dither shows {seen.T:.1f} of {seen.N:.0f} expected: "
            "the response may last longer than can be followed, and a bias is likely left. Feed many more rows"
        )
        return [("slow-feedback", text)]
    if text := _rows_changed(facts):
        return [("rows-changed", text)]
    if facts.shifted:
        text = (
            "batches in which the deployed theta was noisier say something else: the data respond in a curve, or "
            "slowly, and a bias is likely left. Feed more rows"
        )
        return [("curved-response", text)]
    return []


def _rows_changed(facts: Facts) -> str:
    if facts.drift > MOST_DRIFT:
        return (
            "the data respond to theta, and the mean Hessian has changed since that was measured "
            f"({facts.drift:.1f} times in some direction): so may the response. Draw the rows at random, or run on "
            "from the estimate with new rows"
        )
    if facts.wander <= MOST_WANDER:
        return ""
    return (
        "the data respond to theta, and stretches of rows are unlike each other: no one slope of the response fits "
        "them all, and the interval is likely too short. Draw the rows at random"
    )
