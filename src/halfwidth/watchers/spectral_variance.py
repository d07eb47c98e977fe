"""Bartlett spectral variance over batch sums.

    Sigma_hat = (1/n) sum_{|h| < H} (1 - |h|/H) sum_i X_i X_{i+h}' / f,    X_i the centred sum of sub-batch i,

a lag-window estimate of the spectral density at zero, computed on the 128 to 255 sub-batches of L rows that
`DyadicBatches` keeps, so that the bandwidth is B = H L rows. With the Bartlett window the sum over lags equals the sum
of squares of all windows of H sub-batches, partial ones at both ends included, over H: that is how it is computed, and
why it is positive semidefinite. f is the mean of the same form over white noise: what centring and the ends cost.

| literature      | here                                                         |
|-----------------|--------------------------------------------------------------|
| B               | `block_rows()`: C n^((1+a)/2), rounded to whole sub-batches  |
| C               | `batch_constant`                                             |

Law. The form's first two moments over Brownian increments give nu = (tr Q)^2 / tr Q^2 degrees of freedom, near
3n/(2B).

W. Newey and K. West, Econometrica 55 (1987); over batch sums: H. Damerdji, *Strong consistency of the variance
estimator in steady-state simulation output analysis*, Math. of Operations Research 19 (1994).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from halfwidth.kernels.arrays import Vector
from halfwidth.watchers.bandwidth_watcher import BLOCK_FIELDS, WindowWatcher, window_sums
from halfwidth.watchers.dyadic_watcher import dyadic_schema, scatter_of

_LARGEST_SHARE = 0.25


def _all_windows(sums: Vector, width: int) -> Vector:
    """The sums over every `width` consecutive rows, those that stick out at either end included."""
    margin = np.zeros((width - 1, sums.shape[1]))
    return window_sums(np.vstack([margin, sums, margin]), width)


@lru_cache(maxsize=512)
def bartlett_moments(count: int, width: int) -> tuple[float, float]:
    """The mean of the form over white noise of variance one, and its degrees of freedom."""
    windows = _all_windows(np.eye(count) - 1.0 / count, width)
    form = windows.T @ windows / (width * count)
    mean = float(np.trace(form))
    return mean, float(mean**2 / np.sum(form**2))


class SpectralVariance(WindowWatcher):
    """The Bartlett window with a bandwidth that grows with the stream.

    Parameters
    ----------
    batch_constant : float, default 1.0
        Constant C of the bandwidth C n^((1+a)/2).

    Notes
    -----
    Sigma_hat = (1/n) sum_{|h| < H} (1 - |h|/H) sum_i X_i X_{i+h}' over sums X_i of sub-batches, scaled by its mean over
    white noise; Student's t with about 3n/(2B) degrees of freedom for a bandwidth of B rows.

    References
    ----------
    W. Newey and K. West, *A simple, positive semi-definite, heteroskedasticity and autocorrelation consistent
    covariance matrix*, Econometrica 55 (1987).

    Examples
    --------
    >>> watcher = SpectralVariance(2).update_many(np.random.default_rng(0).standard_normal((20_000, 2)))
    >>> watcher.block_rows(), round(watcher.law().degrees_of_freedom, 1)
    (1664, 17.6)
    """

    kind = "spectral-variance"
    version = 1
    SCHEMA = dyadic_schema(kind, version, BLOCK_FIELDS)

    def _width(self) -> int:
        return max(1, min(super()._width(), int(_LARGEST_SHARE * self._batches.count)))

    def _nu(self) -> float:
        return bartlett_moments(self._batches.count, self._width())[1]

    def _covariance(self) -> Vector:
        width, count = self._width(), self._batches.count
        sums = self._batches.sums()
        windows = _all_windows(sums - sums.mean(axis=0), width)
        mean, _ = bartlett_moments(count, width)
        return scatter_of(windows, self._diagonal) / (width * count * self._batches.length * mean)
