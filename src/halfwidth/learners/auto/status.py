"""What `auto` says about itself: notes on what it chose and why, and warnings when it should not be trusted.

| flag               | when                                                                                       |
|--------------------|--------------------------------------------------------------------------------------------|
| `few-batches`      | fewer than 16 batches, or fewer than twice as many rows as the burn-in took                |
| `short-batches`    | in the median coordinate, batches of twice or four times the length give significantly more |
| `held-steps`       | more than a fifth of the steps were shortened: the loss bends more than its mean Hessian says |
| `not-settled`      | the linearisation point moved, lately, through a region where the loss is far from quadratic |
| `response-rejected`| an answer was seen, but with it the Jacobian would be singular: it is not corrected for     |
| `near-singular`    | the data's answer nearly cancels the Hessian: the answer is hardly determined               |
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from halfwidth.inference.batch_result import BatchesResult, too_short
from halfwidth.learners.auto.feedback import LARGEST_GAIN, Response

Flag = tuple[str, str]

FEW_BATCHES = 16
MOST_HELD = 0.2
MOST_BENT = 0.3
LARGE_GAIN = 10.0
LATE = 0.2


@dataclass(frozen=True)
class Facts:
    """What the run knows about itself."""

    n_seen: int
    burn_in: int
    began: int
    chunk_rows: int
    batch_rows: int
    differences: str
    response: Response
    held_share: float
    bent: float
    restarts: int


def notes(facts: Facts, result: BatchesResult) -> tuple[str, ...]:
    """What was chosen, in words."""
    K = len(result.influences)
    wider = int((result.inflations(np.eye(result.params.size)) > 1.0).sum())
    seen = facts.response
    answer = f"F = {seen.strength:.2f} times its value when nothing answers"
    if seen.kept > 0.0:
        answer = f"the data answer to theta ({answer}): corrected, by a slope seen over {seen.renewals:.0f} renewals"
    else:
        answer = f"no significant answer of the data to theta ({answer}): no correction"
    said = [
        f"curvature: {facts.differences}",
        f"rows: {facts.began:,} to find a start and settle, {result.n:,} behind the interval, "
        f"{facts.n_seen - facts.began - result.n:,} waiting to fill a chunk of {facts.chunk_rows}",
        f"batches: {K} of {facts.batch_rows:,} rows"
        + (f"; longer ones for {wider} of {result.params.size} coordinates" if wider else ""),
        answer,
    ]
    if facts.restarts:
        times = "once" if facts.restarts == 1 else f"{facts.restarts} times, last"
        said.append(f"estimation began anew {times} at row {facts.began:,}: the loss was too curved")
    return tuple(said)


def flags(facts: Facts, result: BatchesResult) -> tuple[Flag, ...]:
    """What speaks against the interval."""
    K = len(result.influences)
    found: list[Flag] = []
    if K < FEW_BATCHES or facts.n_seen < 2 * facts.burn_in:
        text = f"only {K} batches after {facts.n_seen:,} rows; feed more than {3 * facts.burn_in:,} rows"
        found.append(("few-batches", text))
    if too_short(result.influences):
        text = (
            f"batches of {facts.batch_rows:,} rows are still correlated, the interval is likely too short; feed more "
            "rows, and batches grow with them"
        )
        found.append(("short-batches", text))
    if facts.held_share > MOST_HELD:
        text = (
            f"{100 * facts.held_share:.0f}% of the steps were shortened: the loss bends more than its mean Hessian "
            "says. Scale the columns, or start nearer to the solution (theta_0)"
        )
        found.append(("held-steps", text))
    late = facts.restarts and facts.began > LATE * facts.n_seen and facts.n_seen > 4 * facts.burn_in
    if facts.bent > MOST_BENT or late:
        text = (
            f"the point of expansion still moves through a strongly curved region (began at row {facts.began:,}); feed "
            "more rows, or start nearer to the solution (theta_0)"
        )
        found.append(("not-settled", text))
    found += _response_flags(facts.response)
    return tuple(found)


def _response_flags(response: Response) -> list[Flag]:
    if response.rejected:
        text = (
            f"the data answer to theta, but correcting for it would amplify errors {response.gain:.0f} times (limit "
            f"{LARGEST_GAIN:.0f}): not corrected, and the interval is likely too short. Feed more rows"
        )
        return [("response-rejected", text)]
    if response.gain > LARGE_GAIN:
        text = (
            f"the data's answer nearly cancels the Hessian (errors are amplified {response.gain:.0f} times): theta is "
            "hardly determined; feed many more rows"
        )
        return [("near-singular", text)]
    return []
