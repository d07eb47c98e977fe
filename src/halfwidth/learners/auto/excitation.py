"""How noisy the deployed theta was, batch by batch, and how much each batch counts for that reason.

A response that is curved in theta shifts what a chunk says by a multiple of the variance of the deployed theta, and so
does noise that theta follows while the data respond to it: both are of the order of the step. With v_j the mean over
the rows of batch j of eta (and once more of eta where there is a dither), the equation of batch j has its root near
theta* + beta v_j. Weights

    w_j = 1 - s v (v_j - v) / var(v_j),     v and var(v_j) over rows,

take the share s of that shift off the root, for any beta: s = 1 extrapolates to a theta without noise. The variance
grows by the factor 1 + s^2 v^2 / var(v_j), and s is as large as keeps that at most 1.05, so that it tends to 1 as the
rows of noisy thetas become a small part of all; 1.25 where dithers come in sessions (`careful`). v_j is known
beforehand, not estimated.

Whether there is such a shift is tested, too, by least squares: what batches say about each coordinate on v_j.

A slope of the feedback is measured where theta was noisy, and used for all rows. If rows changed in between, so that
the mean Hessian is another where theta was noisy, the slope may be another, too: `drift` says by how much.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from halfwidth.inference.student_law import StudentLaw
from halfwidth.kernels.arrays import Vector

MOST_INFLATION, MOST_INFLATION_SESSIONS = 1.05, 1.25
_LEVEL = 0.998


class Excitation:
    """The sum of m eta over the chunks since estimation began, noted at every refresh."""

    def __init__(self) -> None:
        self.begin(0)

    def begin(self, row: int) -> None:
        """Forget everything before this row."""
        self.total, self.marks = 0.0, [(float(row), 0.0)]

    def add(self, renewals: Vector) -> None:
        """Of the next chunks, one by one: the sum must not depend on how many come at a time."""
        for renewal in renewals.tolist():
            self.total += renewal

    def mark(self, row: int) -> None:
        """Note the sum up to this row."""
        if row > self.marks[-1][0]:
            self.marks.append((float(row), self.total))

    def of_batches(self, began: float, last: int, rows: Vector) -> Vector:
        """v_j of consecutive batches of so many rows; between the marks the sum grows evenly."""
        at, total = (np.array(part) for part in zip(*self.marks, (float(last), self.total), strict=True))
        edges = began + np.concatenate([[0.0], np.cumsum(rows)])
        return np.asarray(np.diff(np.interp(edges, at, total)) / rows)

    def to_state(self) -> dict[str, Any]:
        return {"total": self.total, "marks": np.array(self.marks)}

    def restore(self, state: dict[str, Any]) -> None:
        self.total, self.marks = float(state["total"]), [(float(row), float(sum_)) for row, sum_ in state["marks"]]


class Profile(NamedTuple):
    """v_j, centred, over its variance; the mean of v_j; and s."""

    slopes: Vector
    mean: float
    share: float

    @classmethod
    def of(cls, noise: Vector, rows: Vector, most: float = MOST_INFLATION) -> Profile | None:
        """None where all batches are alike; the variance grows `most` times at most."""
        mean = float(noise @ rows / rows.sum())
        centred = noise - mean
        variance = float(np.square(centred) @ rows / rows.sum())
        if variance <= 1e-6 * mean * mean:
            return None
        return cls(centred / variance, mean, min(1.0, math.sqrt((most - 1.0) * variance) / mean))

    @property
    def weights(self) -> Vector:
        return np.asarray(np.maximum(1.0 - self.share * self.mean * self.slopes, 0.0))

    def shifts(self, influences: Vector) -> bool:
        """Whether some coordinate's unweighted influences (K, d), which add up to 0, move with v_j beyond chance."""
        K, size = len(influences), float(self.slopes @ self.slopes)
        slopes = self.slopes @ influences / size
        left = np.square(influences - np.outer(self.slopes, slopes)).sum(axis=0) / max(K - 2.0, 1.0)
        t = np.abs(slopes) * np.sqrt(size / np.where(left > 0.0, left, np.inf))
        level = 1.0 - (1.0 - _LEVEL) / max(len(t), 1)
        return bool(t.max(initial=0.0) > StudentLaw(max(K - 2.0, 1.0)).quantile(level))


def drift(noise: Vector, rows: Vector, H: Vector) -> float:
    """By what factor, in the worst direction, the mean Hessian of all rows differs from that where theta was noisy.

    From the v_j, rows and sums H (K, d, d) of batches; 1 where they are alike, infinite where it cannot be said.
    """
    everywhere = H.sum(axis=0)
    shown = np.flatnonzero(np.diag(everywhere) > 0.0)
    everywhere, there = (0.5 * (M + M.T)[np.ix_(shown, shown)] for M in (everywhere, np.tensordot(noise, H, 1)))
    scale = np.sqrt(np.diag(everywhere))
    try:
        L = np.linalg.cholesky(everywhere / np.outer(scale, scale))
        between = np.linalg.solve(L, np.linalg.solve(L, there / np.outer(scale, scale)).T)
        ratios = np.linalg.eigvalsh(between) * (rows.sum() / float(noise @ rows))
    except np.linalg.LinAlgError:
        return math.inf
    return float(max(ratios.max(initial=1.0), 1.0 / max(ratios.min(initial=1.0), 1e-300)))
