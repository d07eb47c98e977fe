"""Dyadic batches of the estimating equation, its root, and the residuals that its error is read from.

Batch j holds sums over its chunks c of n_j rows (`halfwidth.learners.auto.chunks`), relative to `origin`:

    A_j = sum H_c,   b_j = sum H_c point_c - g_c + m Q_c,   T_j = sum m theta_c.

For ANY fixed matrix J let A'_j = A_j + n_j J and B'_j = b_j + J T_j - n_j Q. The centre is

    c = (sum A'_j)^-1 sum B'_j,   so that for a quadratic loss, exactly,
    c - theta* = -(sum A'_j)^-1 sum_c [ g_c(theta*) - m J (theta_c - theta*) ],

and r_j = B'_j - A'_j c are the batch sums of that same bracket. The interval is therefore consistent for every J; J
only decides how fast the bracket mixes. With J = 0 it contains the data's answer to theta, as slow as the deployed
steps; with J the slope of that answer (`halfwidth.learners.auto.feedback`) only noise is left, and short batches do.

Without a Hessian H_c is made of differences on every fourth chunk, and the three after it take it over: the mean of
H_c (point_c - c) is what matters, and the point rarely moves, so nothing is lost but noise. A mean Hessian of all
differences in its place would not do: it belongs to no point, and to the order of Q, D3 times the mean distance of the
points from the last one stays in the centre, in the same direction for every pair.

Q is what the expansions leave out, a row: rows expanded at an older point carry 1/2 D3[point_c - theta*]^2. Every move
of the point is weighed on the chunks after it (D a row), and Q += D corrects all rows from before the move; the rows
since then, `moved`, are expanded at the new point and get D back.

When all `MOST` batches are full, neighbours merge: between 32 and 64 batches at any time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfwidth.kernels.products import mirrored
from halfwidth.learners.auto.newton_start import inverse

Vector = NDArray[np.float64]

MOST = 64
FIRST_CHUNKS = 4


@dataclass(frozen=True)
class Equation:
    """A'_j (K, d, d) and B'_j (K, d), one for each batch, with the rows n_j."""

    A: Vector
    B: Vector
    rows: Vector

    def solve(self) -> tuple[Vector, Vector]:
        """The centre c and (sum A')^-1 (B'_j - A'_j c), what each batch adds to its error, (K, d)."""
        inverted = inverse(self.A.sum(axis=0))
        centre = inverted @ self.B.sum(axis=0)
        return centre, np.asarray((self.B - self.A @ centre) @ inverted.T)


def lower_mirrored(A: Vector) -> Vector:
    """The full symmetric matrices of which the lower triangles are given."""
    return mirrored(np.swapaxes(A, -1, -2))


class Batches:
    """The sums; the batch that is being filled is the one at `open`."""

    def __init__(self, dim: int, chunk_rows: int, *, triangle: bool) -> None:
        self._chunk_rows = chunk_rows
        self._triangle = triangle  # whether A is symmetric, and only its lower triangle is added to
        self.A = np.zeros((MOST, dim, dim))
        self.b, self.T = np.zeros((MOST, dim)), np.zeros((MOST, dim))
        self.n, self.moved = np.zeros(MOST), np.zeros(MOST)
        self._closed = np.zeros((dim, dim))  # the sum of A over all batches but the open one
        self.clear()

    def clear(self) -> None:
        self.open = 0
        self.length = FIRST_CHUNKS * self._chunk_rows
        for sums in (*self.arrays(), self._closed):
            sums[:] = 0.0

    @property
    def rows(self) -> int:
        return int(self.n.sum())

    @property
    def room(self) -> int:
        """How many chunks can be added before neighbours have to merge."""
        return int((MOST - self.open) * self.length - self.n[self.open]) // self._chunk_rows

    def arrays(self) -> tuple[Vector, ...]:
        """A, b, T, n and moved, for the loop to add to."""
        return self.A, self.b, self.T, self.n, self.moved

    def curvature(self) -> Vector:
        """The sum of all A_j."""
        return self._whole(self._closed + self.A[self.open])

    def note(self) -> None:
        """The loop added chunks."""
        while self.open < MOST and self.n[self.open] >= self.length:
            self._closed += self.A[self.open]
            self.open += 1
        if self.open == MOST:
            self._merge()

    def give_back(self, D: Vector) -> None:
        """The move is weighed: the rows since then need no correction."""
        self.b += self.moved[:, None] * D
        self.moved[:] = 0.0

    def right_side(self, J: Vector, Q: Vector) -> Vector:
        """sum B'_j, while no move is being weighed."""
        return np.asarray(self.b.sum(axis=0) + J @ self.T.sum(axis=0) - self.n.sum() * Q)

    def equation(self, J: Vector, Q: Vector, D: Vector) -> Equation:
        """A' and B' of every batch; Q includes D, the last move's share, which is given back to the rows since then.

        An open batch less than half full joins its neighbour.
        """
        rows = self.n[:, None]
        B = self.b + self.T @ J.T - rows * Q + self.moved[:, None] * D
        A = self._whole(self.A) + rows[:, :, None] * J
        K = self.open
        if K == 0 or self.n[K] >= 0.5 * self.length:
            K += 1
        elif self.n[K] > 0.0:
            for sums in (A, B):
                sums[K - 1] += sums[K]
        n = self.n[:K].copy()
        n[-1] += self.n[K:].sum()
        return Equation(A[:K], B[:K], n)

    def _whole(self, A: Vector) -> Vector:
        return lower_mirrored(A) if self._triangle else A

    def _merge(self) -> None:
        half = MOST // 2
        for sums in self.arrays():
            sums[:half] = sums[0::2] + sums[1::2]
            sums[half:] = 0.0
        self.open = half
        self.length *= 2
