"""The linear system that moves the root of given rows: factorised once per chunk, solved for root and remainder."""

from __future__ import annotations

import numpy as np

from halfwidth.kernels.arrays import Vector


class ChunkSystem:
    """The sum of all Hessians with the prior, factorised; columns that no row has shown are left out."""

    def __init__(self, A: Vector, prior: Vector) -> None:
        from scipy.linalg.lapack import dgetrf

        self.seen = np.diag(A) != 0.0
        self.ridge = np.where(prior > 0.0, prior, 1.0)
        matrix = np.where(self.seen[:, None] & self.seen, A, 0.0)
        matrix.flat[:: len(A) + 1] += self.ridge
        self._factor, self._pivots, info = dgetrf(matrix.T, overwrite_a=1)
        self.regular = info == 0

    def solve(self, right_side: Vector) -> Vector:
        """The solution; zero in columns that no row has shown."""
        from scipy.linalg.lapack import dgetrs

        return np.asarray(dgetrs(self._factor, self._pivots, np.where(self.seen, right_side, 0.0), trans=1)[0])
