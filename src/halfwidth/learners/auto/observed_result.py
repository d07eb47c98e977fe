"""The result along somebody else's trajectory, and what speaks against it.

| flag                 | when                                                                                        |
|----------------------|---------------------------------------------------------------------------------------------|
| `not-settled`        | expansions at the told thetas may have moved some coefficient by more than half a standard   |
|                      | error (`expansions`)                                                                        |
| `feedback-undecided` | no response is seen, but one as large as the error of its slope J would move the root by     |
|                      | more than its standard error in a typical direction: its `leverage` is more than 1 for each  |
|                      | coefficient. Thetas that settle without feedback have 0.1 to 0.4                            |
"""

from __future__ import annotations

import numpy as np

from halfwidth.equation import Equation
from halfwidth.learners.auto import status
from halfwidth.learners.auto.careful_result import shown_only
from halfwidth.learners.auto.expansions import left_out
from halfwidth.learners.auto.feedback import Response
from halfwidth.learners.auto.observed import Observed
from halfwidth.learners.auto.reading import batch_means_result
from halfwidth.learners.auto.result import AutoResult
from halfwidth.learners.auto.slope_error import leverage

MOST_LEFT_OUT, MOST_LEVERAGE = 0.5, 1.0


def observed_result(engine: Observed, name: str, n_seen: int, detect: bool) -> AutoResult:
    """What an observed engine says now."""
    response = engine.response(detect)
    sums = engine.sums()
    equation = Equation.of(sums, response.J if response.kept > 0.0 else None)
    result = batch_means_result(equation, sums, engine.origin, response, name, (), engine.m)
    facts = status.Facts(
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
        detect=detect,
        dithers=False,
        hidden=tuple(np.flatnonzero(result.unidentified).tolist()),
    )
    doubts = trajectory_flags(engine, result, response, detect)
    return result.with_facts(*status.flags(facts, result), *doubts, notes=status.notes(facts, result))


def trajectory_flags(engine: Observed, result: AutoResult, response: Response, detect: bool) -> list[status.Flag]:
    """What speaks against the thetas that were told."""
    every, sums, centre = engine.store.closed(), engine.sums(), result.params - engine.origin
    equation, shown = shown_only(Equation.of(every, response.J if response.kept > 0.0 else None))
    away = (every.T / every.n[:, None] - centre)[:, shown]
    found: list[status.Flag] = []
    covariance, first = result.covariance[np.ix_(shown, shown)], len(every.n) - len(sums.n)
    moved = left_out(equation, away, first, covariance, response.kept > 0.0)
    if moved > MOST_LEFT_OUT:
        text = (
            f"the thetas that were told are so far from the estimate that a curved loss may have moved it by {moved:.1f} "
            "standard errors. Run on from the estimate: tell thetas near it to a new learner"
        )
        found.append(("not-settled", text))
    if detect and response.kept == 0.0 and not response.rejected:
        spread = engine.notes.moments().centred(engine.m)[1][np.ix_(shown, shown)]
        near = sums._replace(T=sums.T[:, shown])
        if leverage(spread, near, centre[shown]) > MOST_LEVERAGE * len(away[0]):
            text = (
                "theta moved too little, or stayed too far from the estimate, to show whether the data respond to it. "
                "Run on from the estimate, with steps about it, or declare feedback='none' if data cannot respond"
            )
            found.append(("feedback-undecided", text))
    return found
