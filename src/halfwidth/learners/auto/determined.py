"""Whether the rows tell the coefficients of a steered or told run apart.

Of collinear columns (all levels beside an intercept, a column that stands twice) the mean Hessian H is singular up to
rounding, which may make it regular by chance, with intervals of any length. With S = D H D of unit diagonal, its
smallest eigenvalue (singular value, for a field that is no gradient) is compared with the largest one.
"""

from __future__ import annotations

import numpy as np

from halfwidth.equation.field_errors import two_sided
from halfwidth.errors import NotIdentified
from halfwidth.kernels.arrays import Vector

LEAST, LEAST_DIFFERENCED = 1e-13, 1e-9
_SKEW, _TAKES_PART = 1e-6, 0.1


def check_determined(H: Vector, *, differenced: bool) -> None:
    """Refuse a Hessian, summed over all rows, that does not determine the coefficients which rows have shown."""
    shown = np.flatnonzero(np.diag(H) != 0.0)
    inside = H[np.ix_(shown, shown)]
    if not len(shown) or not np.isfinite(inside).all():
        return
    scale = 1.0 / np.sqrt(np.abs(np.diag(inside)))
    S = inside * scale[:, None] * scale
    if np.abs(S - S.T).max() <= _SKEW:
        values, vectors = np.linalg.eigh(0.5 * (S + S.T))
        first = int(np.argmin(np.abs(values)))
        left, vector = abs(float(values[first])) / float(np.abs(values).max()), vectors[:, first]
    else:
        sides = two_sided(inside)
        left, vector = sides.smallest, sides.null[:, -1] if sides.null.shape[1] else np.ones(len(shown))
    if left > (LEAST_DIFFERENCED if differenced else LEAST):
        return
    names = ", ".join(f"theta[{j}]" for j in shown[np.abs(vector) > _TAKES_PART][:8])
    raise NotIdentified(
        f"the rows do not tell {names} apart: their columns are collinear, such as all levels of a category beside an "
        "intercept, or a column that stands twice. Drop one of them",
        "singular",
    )
