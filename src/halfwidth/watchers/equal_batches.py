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

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.checks import check_positive
from halfwidth.errors import NotEnoughData
from halfwidth.schedules import check_step_exponent
from halfwidth.state.fields import Bool, Field, Real
from halfwidth.watchers.student_watcher import DyadicWatcher, Vector, dyadic_schema, scatter_of
from halfwidth.watchers.view import ViewName

BLOCK_FIELDS: dict[str, Field] = {
    "step_exponent": Real(0.5, 1.0, strict=True, doc="the exponent a of the step"),
    "batch_constant": Real(0.0, strict=True, doc="the constant C of the block length C n^((1+a)/2)"),
}


def block_rule(n: int, step_exponent: float, constant: float) -> float:
    """C n^((1+a)/2): longer than the correlation time n^a, shorter than the stream."""
    return float(constant * n ** (0.5 * (1.0 + step_exponent)))


def check_variances(covariance: Vector, what: str) -> Vector:
    """Raise where an estimator that may go negative did."""
    variances = covariance if covariance.ndim == 1 else np.diag(covariance)
    if (variances < 0).any():
        worst = int(np.argmin(variances))
        raise NotEnoughData(
            f"the {what} variance of coordinate {worst} came out negative ({variances[worst]:.3g}): too few blocks for "
            "the bias correction. Feed more rows, or use FixedBatchMeans"
        )
    return covariance


class EqualBatchMeans(DyadicWatcher):
    """Equal batches for every n, without knowing n.

    Time O(dim) a row, memory O(dim); nothing of size dim^2 before a full covariance is asked for.

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
        super().__init__(dim, view, projection)
        self.lugsail = bool(lugsail)
        self.step_exponent = check_step_exponent(step_exponent)
        self.batch_constant = check_positive("batch_constant", batch_constant)
        self.least_rows = 32 if self.lugsail else 4
        if self.lugsail:
            self.times_per_block = 3.0  # twice the batches' own bias is taken out; only what decays faster is left

    def _block_rows(self) -> int:
        n = self._rows()
        ideal = math.ceil(math.log2(max(block_rule(n, self.step_exponent, self.batch_constant), 1.0)))
        most = (n // (16 if self.lugsail else 4)).bit_length() - 1
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
