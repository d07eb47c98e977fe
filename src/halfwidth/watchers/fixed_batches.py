"""A fixed number m of equal batches with t_{m-1}.

    Sigma_hat = b / (m - 1) sum_j (Y_j - Y_bar)(Y_j - Y_bar)',    Y_j the mean of batch j, b its rows.

The estimate is not consistent, and need not be: wherever the rescaled sums of the iterates converge to a Brownian
motion (iid, Markov, state-dependent), the studentised average converges to t with m - 1 degrees of freedom, because
the batch means become independent normals with the same variance.

| literature     | here                       |
|----------------|----------------------------|
| m              | `batches`                  |
| b              | `block_rows()`             |
| Y_j            | `DyadicBatches.groups`     |

n need not be known: the batches are put together, when they are asked for, from the 128 to 255 equal sub-batches of
`DyadicBatches`. Up to m - 1 of the oldest sub-batches are left out of the covariance (never of the average), which
changes nothing in the law: contrasts of equal batches are independent of the sum of all rows.

B. Schmeiser, *Batch size effects in the analysis of simulation output*, Operations Research 30 (1982); R. Ibragimov and
U. Mueller, *t-statistic based correlation and heterogeneity robust inference*, JBES 28 (2010).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.checks import check_count
from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.state.fields import Whole
from halfwidth.watchers.dyadic_watcher import DyadicWatcher, dyadic_schema, scatter_of
from halfwidth.watchers.view import ViewName

MOST_BATCHES = 32


def check_batches(batches: int, at_least: int) -> int:
    """So many batches that sub-batches can still be put together evenly."""
    if check_count("batches", batches, at_least=at_least) > MOST_BATCHES:
        raise InputError.of("batches", f"be at most {MOST_BATCHES}", batches)
    return int(batches)


class FixedBatchMeans(DyadicWatcher):
    """The m latest equal batches with Student's t; between 8 and 20 batches serve most runs.

    Parameters
    ----------
    batches : int
        Number m of batches, 2 to 32.

    Notes
    -----
    Sigma_hat = b / (m - 1) sum_j (Y_j - Y_bar)(Y_j - Y_bar)' with Y_j the means of m batches of b rows. It is not
    consistent and need not be: the studentised average converges to t with m - 1 degrees of freedom, for independent,
    Markov and state-dependent data. Time per row and memory are O(dim).

    References
    ----------
    B. Schmeiser, *Batch size effects in the analysis of simulation output*, Operations Research 30 (1982).

    Examples
    --------
    >>> iterates = np.random.default_rng(0).standard_normal((1000, 2))
    >>> watcher = FixedBatchMeans(2, batches=10).update_many(iterates)
    >>> watcher.law().degrees_of_freedom
    9.0
    >>> watcher.interval().covers([0.0, 0.0]).tolist()
    [True, True]
    """

    kind = "fixed-batch-means"
    version = 1
    settings = ("batches",)
    SCHEMA = dyadic_schema(kind, version, {"batches": Whole(2, MOST_BATCHES, doc="the number m of batches")})

    def __init__(
        self, dim: int, *, batches: int = 10, view: ViewName = "full", projection: ArrayLike | None = None
    ) -> None:
        super().__init__(dim, view, projection)
        self.batches = check_batches(batches, at_least=2)
        self.least_rows = self.batches

    def _nu(self) -> float:
        return float(self.batches - 1)

    def _block_rows(self) -> int:
        return self._batches.groups(self.batches)[1]

    def _covariance(self) -> Vector:
        means, rows = self._batches.groups(self.batches)
        return scatter_of(np.sqrt(rows) * (means - means.mean(axis=0)), self._diagonal) / self._nu()
