"""What `auto` says of the response of its data, and when that should not be trusted.

| flag                 | when                                                                                        |
|----------------------|---------------------------------------------------------------------------------------------|
| `feedback-rejected`  | feedback was seen, but with it the Jacobian would be singular, or climb: not corrected for  |
| `near-singular`      | the feedback nearly cancels the Hessian, and its slope is uncertain by more than a sixth     |
| `feedback-undecided` | a response is seen that may be correlated noise: the dither has not told the two apart yet, |
|                      | or theta ran away before it did. Or none is seen, but one of 0.35 of the Hessian is within   |
|                      | two standard errors of what is; or it was looked for as where chunks are unlike, and these   |
|                      | are alike (`unequal`)                                                                       |
| `slow-feedback`      | the dither shows less than a sixteenth of the response that theta's own motion shows; or the |
|                      | response lasts for more than two chunks, and errors would be half as large again if it were  |
|                      | as much larger as it may be measured low                                                     |
| `curved-response`    | batches in which the deployed theta was noisier say something else, beyond chance; or theta |
|                      | moved so far that a response which follows the loss is curved there (`curved_response`)     |
| `rows-changed`       | the Hessian is another than where the feedback was measured, or changes slowly (`unequal`)   |
"""

from __future__ import annotations

import math

from halfwidth.learners.auto.facts import Facts, Flag
from halfwidth.learners.auto.feedback import LARGE_GAIN, LARGEST_GAIN, MOST_SHORTFALL, Response
from halfwidth.learners.auto.instrument import SURE

FEW_RENEWALS = 64.0
MOST_DRIFT, MOST_WANDER = 1.25, 0.2
MOST_UNSEEN = 0.35
"""The share of the Hessian by which data may respond, unseen, before intervals that leave it out are doubted."""
LONG_MEMORY = 2.25
"""In chunks: from here on the trace of theta, which forgets at its own speed, is no longer the response's."""
SLOWEST = 16.0
"""A response that lasts for ten chunks shows some 16 times as much in theta's own motion as in signs that alternate."""


def feedback_note(seen: Response, unseen: float = 0.0) -> str:
    """What is known of the feedback, in words; one as large as `unseen` may be there where none is seen."""
    if seen.evidence == 0.0:
        return f"feedback: not seen; that takes {2 * len(seen.J) + 8:,} chunks, and a theta that moves: no correction"
    if seen.proportion is not None:
        error = math.sqrt(seen.proportion.variance)
        kind = "the data respond to theta" if seen.detected else "no significant feedback"
        share = f"{seen.proportion.share:.2f} of each chunk's own Hessian, with a standard error of {error:.2f}"
        return f"{kind} ({share}): {'not ' if seen.rejected else ''}corrected"
    evidence = f"F = {seen.evidence:.2f} times its value without feedback"
    if seen.instrument is not None:
        z = f"dither z = {seen.instrument.T:.1f}, {seen.instrument.N:.1f} expected of feedback"
        evidence += f"; {z}, detected from {SURE:.1f} on"
    if seen.kept > 0.0:
        kind = "the data respond to theta" if seen.detected else "the data may respond to theta"
        size = f"strength {seen.strength:.2f}, from theta's having moved about {seen.renewals:.0f} times"
        return f"{kind} ({evidence}): corrected; {size}"
    if seen.denied:
        return f"noise stays correlated for longer than a chunk, no feedback ({evidence}): no correction"
    small = "a response within chance" if seen.suspected and not seen.rejected else "no significant feedback"
    excluded = f"; one of up to {unseen:.2f} of the Hessian is not excluded" if 0.0 < unseen < math.inf else ""
    return f"{small} ({evidence}): no correction{excluded}"


def feedback_flags(facts: Facts) -> list[Flag]:
    """What speaks against the response that was corrected for."""
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
    if facts.alike:
        text = (
            "the first steps were too long, as they are where stretches of rows are unlike each other; these are not, "
            "but the response was looked for as if they were. Run again from the estimate (theta_0), or declare "
            "feedback='none' if data cannot respond"
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
    if response.shortfall > MOST_SHORTFALL and response.memory_chunks > LONG_MEMORY:
        text = (
            f"the data respond to theta over some {response.memory_chunks * facts.chunk_rows:,.0f} rows, and nearly "
            "cancel the gradient: a response that slow is measured a little low, and the interval is likely too short. "
            "Deploy each theta for more rows (chunk_rows)"
        )
        return [("slow-feedback", text)]
    if text := _rows_changed(facts):
        return [("rows-changed", text)]
    return _curved_or_unseen(facts)


def _curved_or_unseen(facts: Facts) -> list[Flag]:
    if facts.shifted:
        text = (
            "batches in which the deployed theta was noisier say something else: the data respond in a curve, or "
            "slowly, and a bias is likely left. Feed more rows"
        )
        return [("curved-response", text)]
    if facts.curved:
        text = (
            "the data respond to theta, which moved so far while their response was measured that it need not be the "
            "response at the estimate: a bias is likely left. Feed more rows, start nearer to the solution (theta_0), "
            "or run again from the estimate"
        )
        return [("curved-response", text)]
    if facts.unseen > MOST_UNSEEN:
        text = (
            "theta has not moved enough yet to show that the data do not respond to it: they may, by a share of "
            f"{min(facts.unseen, 1.0):.2f} of the Hessian. Feed more rows, or declare feedback='none' if data cannot "
            "respond"
        )
        return [("feedback-undecided", text)]
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
