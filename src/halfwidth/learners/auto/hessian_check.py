"""Whether a problem's Hessian or Jacobian is the derivative of its gradient, on a sample of the rows.

Along random signs s_j, in the units of each column, delta_j = s_j / (10000 sqrt(H_jj / n)), the gradients of the same
rows change from one side of the estimate to the other, and

    |D (g(c + delta) - g(c - delta) - 2 H delta)| / |2 D H delta|,   D_jj = H_jj^-1/2,

is zero but for rounding and third derivatives, whatever the rows are. Signs along which columns cancel, as a constant
and one with a large mean do, leave rounding alone: so the largest difference is divided by the largest change. The root
of given rows is corrected for what their expansions leave out, and so for a wrong Hessian; their errors are not: above
a tenth that is `hessian-mismatch`.
"""

from __future__ import annotations

import numpy as np

from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto.facts import Flag
from halfwidth.learners.auto.given import GivenRows

MOST_CONTRADICTED = 0.1
"""The share by which gradients may change otherwise than the Hessian says: a Fisher information is another one."""
_ROWS, _DIRECTIONS, _STEP = 2_048, 4, 1e-4


@np.errstate(over="ignore", invalid="ignore")
def share_contradicted(engine: GivenRows, centre: Vector) -> float:
    """By what share of it gradients change otherwise than the Hessian says; 0 where it is not the problem's own."""
    rows = engine.sample.evenly(_ROWS)
    if engine.differences or engine.rough or not len(rows) or not np.isfinite(centre).all():
        return 0.0
    field = engine.field
    H = field.pieces(centre, rows, np.array([0, len(rows)]))[1][0]
    size = np.abs(np.diag(H))
    unit = np.divide(1.0, np.sqrt(size), out=np.zeros(len(size)), where=size > 0.0)
    signs = np.random.default_rng(0).integers(0, 2, (_DIRECTIONS, len(size))) * 2.0 - 1.0
    deltas = _STEP * np.sqrt(len(rows)) * signs * unit
    told = 2.0 * deltas @ H.T
    seen = [field.gradient(centre + delta, rows) - field.gradient(centre - delta, rows) for delta in deltas]
    expected, apart = (np.linalg.norm(unit * changes, axis=1).max() for changes in (told, seen - told))
    return float(apart / expected) if expected > 0.0 and np.isfinite(apart) else 0.0


def hessian_doubt(engine: GivenRows, centre: Vector) -> tuple[Flag, ...]:
    """`hessian-mismatch`, where gradients contradict the problem's Hessian."""
    share = share_contradicted(engine, centre)
    if share <= MOST_CONTRADICTED:
        return ()
    text = (
        f"near the estimate gradients change otherwise than the problem's Hessian says, by {share:.2g} of it: standard "
        "errors rest on that. Give the derivative of the gradient, or gradient_only=True"
    )
    return (("hessian-mismatch", text),)
