"""Targets that have no density where a quantile is fitted: classes, counts, an atom such as zero.

The error of a quantile divides by the density of the residuals at zero. Let r(q) be the distance within which a share q
of the residuals is. With a density, r(q) / r(4q) is about 1/4. An atom at the fitted quantile makes it nearly 0, a gap
between two atoms nearly 1; and where most rows are fitted exactly, r(0.4) is nothing beside r(0.9). A target of ten
values or fewer is called tied whatever the residuals.
"""

from __future__ import annotations

import numpy as np

from halfwidth.kernels.arrays import Vector

_SHARE = 0.1
_FEWEST_ROWS, _FEW_VALUES = 20, 10
_ATOM, _GAP = 0.05, 0.7
_EXACT = 1e-3


def tied(y: Vector, fitted: Vector, quantile: float) -> bool:
    """Whether residuals have no density at zero, as far as a sample of rows shows."""
    distance = np.sort(np.abs(y - fitted))
    rows = len(distance)
    if rows >= _FEWEST_ROWS * _FEW_VALUES and len(np.unique(y)) <= _FEW_VALUES:
        return True
    share = max(min(_SHARE, 0.5 * quantile, 0.5 * (1.0 - quantile)), _FEWEST_ROWS / max(rows, 1))
    if 4.0 * share >= 0.9:
        return False
    for q in (share, 0.5 * share):
        near, far = distance[int(q * rows)], distance[int(4.0 * q * rows)]
        if not _ATOM * far < near < _GAP * far:
            return True
    return bool(distance[int(0.4 * rows)] < _EXACT * distance[int(0.9 * rows)])
