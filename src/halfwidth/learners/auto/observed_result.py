"""The result along somebody else's trajectory, and what speaks against it.

| flag                 | when                                                                                        |
|----------------------|---------------------------------------------------------------------------------------------|
| `not-settled`        | expansions at the told thetas may have moved some coefficient by more than half a standard   |
|                      | error (`expansions`)                                                                        |
| `feedback-undecided` | a response as large as the error of its slope J, whether one is seen or not, would move the  |
|                      | root far: its `leverage` is more than 3 for each coefficient. That is 0.1 to 0.8 where theta |
|                      | follows its noise about the root, and above 1,000 where it stays far away. Or none is seen,  |
|                      | but data that respond by a quarter of the Hessian are within two standard errors of what is: |
|                      | then intervals would be a quarter too short. Or J has fewer than 2 degrees of freedom, or    |
|                      | makes some standard error less than a quarter of what it is without: theta that follows its  |
|                      | noise looks like a strong response against its own, and nothing tells the two apart here     |
| `hessian-mismatch`   | gradients change with theta by another multiple of the Hessian than 1, by a quarter and by   |
|                      | four standard errors, and data cannot respond; or by more than four times as much, or less   |
|                      | than a fifteenth: feedback that cancels so much would not be corrected for                   |
"""

from __future__ import annotations

import numpy as np

from halfwidth.equation import Equation, Sums
from halfwidth.equation.result import FEWEST
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto import status
from halfwidth.learners.auto.careful_result import shown_only
from halfwidth.learners.auto.determined import check_determined
from halfwidth.learners.auto.expansions import left_out
from halfwidth.learners.auto.facts import Facts, Flag
from halfwidth.learners.auto.feedback import LARGEST_GAIN
from halfwidth.learners.auto.observed import Observed, Seen
from halfwidth.learners.auto.reading import batch_means_result
from halfwidth.learners.auto.result import AutoResult
from halfwidth.learners.auto.slope_error import leverage
from halfwidth.learners.auto.slopes import TINY
from halfwidth.learners.auto.unequal import wander

MOST_LEFT_OUT, MOST_LEVERAGE, MOST_SHARE = 0.5, 3.0, 0.25
SURELY, MOST_STEEP = 4.0, 3.0
MOST_NARROWED = 0.25


def observed_result(engine: Observed, name: str, n_seen: int, detect: bool) -> AutoResult:
    """What an observed engine says now."""
    seen = engine.seen(detect)
    response = seen.response
    sums = engine.sums()
    check_determined(sums.H.sum(axis=0), differenced=False)
    equation = Equation.of(sums, response.J if response.kept > 0.0 else None)
    result = batch_means_result(equation, sums, engine.origin, response, name, (), engine.m)
    facts = Facts(
        n_seen=n_seen,
        burn_in=engine.rows_needed,
        began=n_seen - result.n,
        chunk_rows=engine.m,
        batch_rows=engine.store.length,
        curvature="the Hessian that was told",
        response=response,
        clipped_share=0.0,
        bent=0.0,
        restarts=0,
        wander=wander(sums.H, sums.n, response),
        detect=detect,
        dithers=False,
        hidden=tuple(np.flatnonzero(result.unidentified).tolist()),
    )
    doubts = _curved(equation, sums, engine.origin, result, response.kept > 0.0)
    if detect and not response.rejected:
        shown = ~result.unidentified
        near = sums._replace(T=sums.T[:, shown])
        away = leverage(seen.spread[np.ix_(shown, shown)], near, (result.params - engine.origin)[shown])
        most = max(seen.share, 0.0) + 2.0 * seen.error
        doubts += _unseen(away / shown.sum(), most if response.kept == 0.0 else 0.0)
    doubts += _hardly_known(result, sums) if response.kept > 0.0 else []
    unlike = _mismatch(seen, *((MOST_STEEP, 1.0 - 1.0 / LARGEST_GAIN) if detect else (MOST_SHARE, MOST_SHARE)))
    return result.with_facts(*unlike, *status.flags(facts, result), *doubts, notes=status.notes(facts, result))


def _mismatch(seen: Seen, above: float, below: float) -> list[Flag]:
    """The doubt about gradients that change by more than 1 + `above` or less than 1 - `below` times the Hessian."""
    least = SURELY * seen.error
    if not (-seen.share > max(above, least) or seen.share > max(below, least)):
        return []
    text = (
        f"gradients change with theta by {1.0 - seen.share:.3g} times what the Hessian says. Tell the Hessian of the "
        "same loss as the gradients, both summed over the same rows and neither of them a mean; do not declare "
        "feedback='none' where data may respond"
    )
    return [("hessian-mismatch", text)]


def _curved(equation: Equation, sums: Sums, origin: Vector, result: AutoResult, fitted: bool) -> list[Flag]:
    inside, shown = shown_only(equation)
    told = sums.T / sums.n[:, None]
    away = told - (result.params - origin)
    within = sums.U - (sums.H @ told[:, :, None])[:, :, 0]
    covariance = result.covariance[np.ix_(shown, shown)]
    moved = left_out(inside, away[:, shown], within[:, shown], covariance, fitted)
    if moved <= MOST_LEFT_OUT:
        return []
    text = (
        f"the thetas that were told are so far from the estimate that a curved loss may have moved it by {moved:.1f} "
        "standard errors. Run on from the estimate by smaller steps: tell a new learner thetas near it"
    )
    return [("not-settled", text)]


def _hardly_known(result: AutoResult, sums: Sums) -> list[Flag]:
    """The doubt about a slope with hardly any degrees of freedom, or with which errors are far smaller than without."""
    freedom = result.diagnostics.effective_blocks
    if freedom < FEWEST:
        text = (
            f"theta has moved so little since it settled that the response it shows has {freedom:.1f} degrees of "
            "freedom. Declare feedback='none' if data cannot respond; if they can, run on with larger steps"
        )
        return [("feedback-undecided", text)]
    inside, shown = shown_only(Equation.of(sums))
    influences = inside.solve()[1]
    without = np.sqrt(np.square(influences).sum(axis=0) * len(influences) / (len(influences) - 1.0))
    share = float(np.min(result.bse[shown] / np.maximum(without, TINY)))
    if share >= MOST_NARROWED:
        return []
    text = (
        f"the data seem to respond against theta, so strongly that an interval is {share:.2f} times as wide as without "
        "a response; a theta that follows its own noise looks like that, too. Declare feedback='none' if data cannot "
        "respond; if they can, use ask() and tell(request, ...), which tells the two apart"
    )
    return [("feedback-undecided", text)]


def _unseen(leverage_each: float, most: float) -> list[Flag]:
    """The doubt about a response as large as `most` of the Hessian, which was not seen."""
    if 0.0 <= leverage_each <= MOST_LEVERAGE and most <= MOST_SHARE:  # negative where V is rounding: theta stood still
        return []
    text = (
        "theta moved too little, or stayed too far from the estimate, to show how the data respond to it. Declare "
        "feedback='none' if data cannot respond; if they can, run on with larger steps about the estimate"
    )
    return [("feedback-undecided", text)]
