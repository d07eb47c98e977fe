"""Equal batches whose length doubles with the stream, plain or lugsail.

    Sigma_b = b / (m - 1) sum_j (Y_j - Y_bar)(Y_j - Y_bar)',    Y_j the mean of batch j of b rows, m = floor(n / b),
    lugsail: 2 Sigma_b - Sigma_{b/2} over the same rows,

with b the smallest power of two of at least C n^((1+a)/2). The iterates stay correlated over tau ~ n^a rows, so that
Sigma_b is too small by about tau/b of itself; lugsail removes that term.

| paper                | here                  |
|----------------------|-----------------------|
| C                    | `batch_constant`      |
| a                    | `step_exponent`       |
| b                    | `block_rows()`        |
| m                    | `n // block_rows()`   |

Law. For a Brownian motion Sigma_b is exactly chi-square with m - 1 degrees of freedom. Lugsail is a difference: m - 1
sums of neighbours carry weight 2/(m-1) - 1/(2m-1), m differences carry -1/(2m-1), which gives
1 / ((m-1) w1^2 + m w2^2) degrees of freedom by its first two moments, near n/(5 b/2). A lugsail variance that comes out
negative (in 2% of runs with 16 batches, 0.6% with 24) raises.

b never exceeds n/4 (n/16 for lugsail), so that there is something to compare, nor falls below what 256 kept sums allow,
which always leaves at least 64 batches.

R. Singh, A. Shukla and D. Vats, *On the utility of equal batch sizes for inference in stochastic gradient descent*
(2023); D. Vats and J. Flegal, *Lugsail lag windows for estimating time-average covariance matrices*, Biometrika 109
(2022).
"""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import ArrayLike

from halfwidth.kernels.arrays import Vector
from halfwidth.state.fields import Bool
from halfwidth.watchers.bandwidth_watcher import BLOCK_FIELDS, BandwidthWatcher, check_variances
from halfwidth.watchers.dyadic_watcher import dyadic_schema, scatter_of
from halfwidth.watchers.view import ViewName


class EqualBatchMeans(BandwidthWatcher):
    """Equal batches for every n, without knowing n; plain or lugsail.

    Parameters
    ----------
    lugsail : bool
        Whether the bias of order tau/b is removed, at the price of more variance.
    batch_constant : float, default 1.0
        Constant C of the batch length, the smallest power of two of at least C n^((1+a)/2).

    Notes
    -----
    Sigma_b = b / (m - 1) sum_j (Y_j - Y_bar)(Y_j - Y_bar)' over m batches of b rows, with Student's t of m - 1 degrees
    of freedom; lugsail takes 2 Sigma_b - Sigma_{b/2}. A lugsail variance may come out negative, which raises
    `NotEnoughData`.

    References
    ----------
    R. Singh, A. Shukla and D. Vats, *On the utility of equal batch sizes for inference in stochastic gradient descent*
    (2023). D. Vats and J. Flegal, *Lugsail lag windows for estimating time-average covariance matrices*, Biometrika 109
    (2022).

    Examples
    --------
    >>> watcher = EqualBatchMeans(2).update_many(np.random.default_rng(0).standard_normal((1000, 2)))
    >>> watcher.block_rows(), watcher.law().degrees_of_freedom
    (128, 6.0)
    """

    kind = "equal-batch-means"
    version = 1
    settings = ("lugsail", "step_exponent", "batch_constant")
    SCHEMA = dyadic_schema(kind, version, {"lugsail": Bool(doc="whether the bias is taken out"), **BLOCK_FIELDS})

    def __init__(
        self,
        dim: int,
        *,
        lugsail: bool = False,
        step_exponent: float = 0.505,
        batch_constant: float = 1.0,
        view: ViewName = "full",
        projection: ArrayLike | None = None,
    ) -> None:
        self.lugsail = bool(lugsail)
        shown: Any = {"view": view, "projection": projection}
        super().__init__(dim, step_exponent=step_exponent, batch_constant=batch_constant, **shown)
        if self.lugsail:
            self.times_per_block = 3.0  # twice the batches' own bias is taken out; only what decays faster is left

    def _fewest_rows(self) -> int:
        return 32 if self.lugsail else 4

    def _block_rows(self) -> int:
        ideal = math.ceil(math.log2(max(self._ideal_rows(), 1.0)))
        most = (self._rows() // (16 if self.lugsail else 4)).bit_length() - 1
        return max(1 << min(ideal, most), self._batches.length * (2 if self.lugsail else 1))

    def _batch_count(self) -> int:
        return self._rows() // self._block_rows()

    def _nu(self) -> float:
        m = self._batch_count()
        if not self.lugsail:
            return m - 1.0
        half = 1.0 / (2 * m - 1)
        return float(1.0 / ((m - 1) * (2.0 / (m - 1) - half) ** 2 + m * half**2))

    def _covariance(self) -> Vector:
        rows, m = self._block_rows(), self._batch_count()
        if not self.lugsail:
            return self._batch_means(rows, m)
        return check_variances(2.0 * self._batch_means(rows, m) - self._batch_means(rows // 2, 2 * m), "lugsail")

    def _batch_means(self, rows: int, m: int) -> Vector:
        together = rows // self._batches.length
        sums = self._batches.sums()[: m * together].reshape(m, together, -1).sum(axis=1)
        return scatter_of(sums - sums.mean(axis=0), self._diagonal) / (rows * (m - 1))
