"""Which coefficients are left without a maximum when rows are separated along a direction.

Along a separating direction the rows that move to their right side fit perfectly in the limit and tell nothing more;
what is left of the likelihood is that of the rows that stay (A. Albert and J. A. Anderson, Biometrika 71, 1984; S.
Correia, P. Guimaraes and T. Zylkin, 2021): those with x'direction = 0, or, of several classes, those whose own class
stays level with others, and only about these. A coefficient that the rows at hand determine, but those that stay do
not, can have any value at the same likelihood: if no row stays, as when two classes are apart altogether, all of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from halfwidth.equation.linear_algebra import scaled, symmetric_eigen
from halfwidth.families import Loss
from halfwidth.families.multinomial import with_baseline
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.newton.column_scaling import Scaling
from halfwidth.learners.newton.newton_solver import Rows

Mask = NDArray[np.bool_]

_STAYS = 1e-6
"""A row that moves by less than this share of the farthest one stays."""
_NULL = 1e-9
_BESIDE = 1e-6
_AT_ONCE = 512
FEWEST_BEYOND = 10
"""Rows beyond the number of coefficients that must stay for them to tell anything."""


def lost_coefficients(direction: Vector, rows: Rows, loss: Loss, scaling: Scaling) -> Mask:
    """The user's coefficients that only rows which leave along the direction determine."""
    along = rows.along(direction)
    slack = _STAYS * float(np.abs(along).max())
    moved = with_baseline(along) if loss.separation == "largest" else None
    if moved is None:
        level, stay = None, np.abs(along) <= slack
    else:
        level = moved >= moved.max(axis=1, keepdims=True) - slack
        stay = level.sum(axis=1) > 1
    if stay.sum() < rows.Z.shape[1] + FEWEST_BEYOND:
        lost = _undetermined(np.zeros((len(direction), len(direction))), scaling)
    else:
        lost = _undetermined(_curvature(rows.Z[stay], None if level is None else level[stay]), scaling)
    every = None if level is None else np.ones_like(level)
    return lost & ~_undetermined(_curvature(rows.Z, every), scaling)


def _curvature(Z: Vector, level: Mask | None) -> Vector:
    return np.asarray(Z.T @ Z) if level is None else _between(Z, level)


def _between(Z: Vector, level: Mask) -> Vector:
    """The curvature of rows with equal chances for the classes that are level, and none for others."""
    p = level / level.sum(axis=1, keepdims=True)
    k, equations = Z.shape[1], level.shape[1] - 1
    H = np.zeros((equations, k, equations, k))
    for a in range(equations):
        for b in range(a + 1):
            weight = p[:, a + 1] * (float(a == b) - p[:, b + 1])
            H[a, :, b] = H[b, :, a] = (Z * weight[:, None]).T @ Z
    return H.reshape(equations * k, equations * k)


def _undetermined(H: Vector, scaling: Scaling) -> Mask:
    """The user's coefficients that a curvature leaves open."""
    size = np.sqrt(np.maximum(np.diag(H), 0.0))
    unit = np.where(size > 0.0, size, 1.0)
    R = scaled(H, 1.0 / unit)
    del H
    values, vectors = symmetric_eigen(R)
    del R
    null = vectors[:, : int(np.sum(values <= _NULL * max(float(values[-1]), 1e-300)))]
    null /= unit[:, None]
    reach = np.zeros(len(unit))
    for at in range(0, null.shape[1], _AT_ONCE):
        moved = np.abs(scaling.user_coefficients(null[:, at : at + _AT_ONCE]))
        reach = np.maximum(reach, moved.max(axis=1))
    return np.asarray(reach > _BESIDE * np.abs(scaling.user_coefficients(1.0 / unit)))
