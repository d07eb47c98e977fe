"""An exact answer to whether rows are separated: a linear programme over the few rows that matter.

Rows are separated if some direction d other than zero has a'd >= 0 for all constraints a of all rows, and > 0 for one
(K. Konis, thesis, Oxford, 2007): a = +-z for two classes, e_y x z - e_c x z for every other class c of several. With g
the sum of all a, the programme is

    maximise g'd   subject to   a'd >= 0,  -1 <= d <= 1,

which is zero exactly when there is no such direction. It has few variables and as many constraints as rows; those that
are broken most are added until none is (cutting planes). A programme with some of the constraints can only promise
more: where even it promises nothing, rows overlap. The programme is solved again for the rows that the solution leaves
where they are, and the solutions added, so that no row stays which some direction moves.
"""

from __future__ import annotations

import numpy as np

from halfwidth.families.multinomial import with_baseline
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.newton.newton_solver import Rows

_ROUNDS = 40
_ADDED = 64
_TOLERANCE = 1e-7
_TIED = 1e-6
_NOTHING = 1e-6


def separating_plane(rows: Rows, rule: str, start: Vector) -> Vector | None:
    """A direction that separates as many of these rows of classes as any does; None if they overlap."""
    found, A = None, np.empty((0, len(start)))
    for _ in range(rows.equations + 1):
        goal = _total(rows, rule, found)
        first = start / np.abs(start).max() if found is None else np.zeros(len(start))
        more, A = _best(rows, rule, goal, first, A)
        if more is None:
            break
        found = more if found is None else found + more
    return found


def _best(rows: Rows, rule: str, goal: Vector, direction: Vector, A: Vector) -> tuple[Vector | None, Vector]:
    """The solution of the programme, and the constraints that it took; None if it promises nothing."""
    from scipy.optimize import linprog

    size = float(np.abs(goal).sum())
    for _ in range(_ROUNDS if size > 0.0 else 0):
        broken = _broken(rows, rule, direction)
        if not len(broken) and goal @ direction > _NOTHING * size:
            return direction, A
        A = np.vstack([A, broken])
        found = linprog(-goal / size, A_ub=-A, b_ub=np.zeros(len(A)), bounds=(-1.0, 1.0), method="highs")
        if found.status != 0 or goal @ found.x <= _NOTHING * size:
            break
        direction = np.asarray(found.x)
    return None, A


def _margins(rows: Rows, rule: str, direction: Vector) -> Vector:
    """a'd of every constraint: (n, 1) for two classes, (n, K) for K of them, infinite for the own class."""
    along = rows.along(direction)
    if rule == "sides":
        return np.asarray((_signs(rows) * along)[:, None])
    moved, codes, every = with_baseline(along), rows.y.astype(np.intp), np.arange(len(rows))
    margins = moved[every, codes][:, None] - moved
    margins[every, codes] = np.inf
    return np.asarray(margins)


def _total(rows: Rows, rule: str, direction: Vector | None) -> Vector:
    """The sum of all constraints, or of those that a direction leaves at zero."""
    margins = _margins(rows, rule, np.zeros(rows.equations * rows.Z.shape[1]) if direction is None else direction)
    level = margins <= _TIED
    if rule == "sides":
        return np.asarray((_signs(rows) * level[:, 0]) @ rows.Z)
    sides = -level.astype(np.float64)
    sides[np.arange(len(rows)), rows.y.astype(np.intp)] = level.sum(axis=1)
    return np.asarray((sides[:, 1:].T @ rows.Z).ravel())


def _broken(rows: Rows, rule: str, direction: Vector) -> Vector:
    """The constraints that the direction breaks most, as rows."""
    margins = _margins(rows, rule, direction)
    worst = margins.min(axis=1)
    at = np.argsort(worst)[:_ADDED]
    at = at[worst[at] < -_TOLERANCE]
    if rule == "sides":
        return np.asarray(_signs(rows)[at, None] * rows.Z[at])
    classes = np.eye(rows.equations + 1)
    sides = classes[rows.y[at].astype(np.intp)] - classes[margins[at].argmin(axis=1)]
    return np.asarray((sides[:, 1:, None] * rows.Z[at][:, None, :]).reshape(len(at), len(direction)))


def _signs(rows: Rows) -> Vector:
    return np.where(rows.y > 0.5, 1.0, -1.0)
