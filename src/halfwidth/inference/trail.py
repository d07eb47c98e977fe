"""How an estimate settled: what it was after some of the rows.

After k of n rows the estimate differs from the last one, if nothing changes, by a normal variable with the variance
se^2 (n / k - 1), where se is the standard error after n rows: the funnel of the picture.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfwidth.kernels.arrays import Vector

MOST_LOOKS = 40
LONGEST = 60.0
"""Nothing is shown before a share of one in so many of the rows."""


class Trail(NamedTuple):
    """The coefficients after some of the rows.

    Parameters
    ----------
    rows : ndarray of shape (m,)
        How many rows, in increasing order; the last of them are all.
    params : ndarray of shape (m, d)
        The coefficients then; NaN for one that those rows did not determine.
    """

    rows: Vector
    params: Vector

    def funnel(self) -> Vector:
        """Return the standard deviation of the distance to the last value, in standard errors.

        Returns
        -------
        ndarray of shape (m,)
            sqrt(n / k - 1): zero at the last row.
        """
        return np.asarray(np.sqrt(self.rows[-1] / self.rows - 1.0))


def looks(batch_rows: Vector) -> NDArray[np.intp]:
    """Which batches to stop after: about evenly in the logarithm of the rows, the last one included."""
    total = np.cumsum(batch_rows)
    wanted = np.geomspace(max(total[0], total[-1] / LONGEST), total[-1], MOST_LOOKS)
    return np.unique(np.minimum(np.searchsorted(total, wanted * (1.0 - 1e-9)), len(total) - 1))


def influence_trail(params: Vector, influences: Vector, n: int) -> Trail:
    """The trail that the influences (K, d) of equal batches give: params + n / k times the sum of the first ones."""
    K = len(influences)
    after = looks(np.full(K, n / K))
    shares = (after + 1.0) / K
    return Trail(n * shares, params + np.cumsum(influences, axis=0)[after] / shares[:, None])
