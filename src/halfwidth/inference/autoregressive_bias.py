"""How much a kernel estimate of a long-run variance falls short in a small sample, by a working autoregression.

Batch scores e_b of a direction have variances proportional to its information h_b (sum h_b = 1) and, in the working
model, correlations rho^|b - c|: R_bc = sqrt(h_b h_c) rho^|b - c|. What is seen are the residuals x = e - h sum_b e_b.
With kernel weights W the estimate x'Wx has the mean

    E x'Wx = tr(W R) - 2 h'W R1 + (1'R1) h'W h,   while the variance wanted is 1'R1.

The ratio of the two, divided by its value at rho = 0, which the jackknife accounts for, is the factor by which the
variance falls short: 1 in large samples, and 1.5 for 50 rows at rho = 0.7. rho is estimated from the lag-one
correlation of the residuals and corrected for the bias of that estimate (M. G. Kendall, Biometrika 41, 1954), twice as
large for residuals of a regression.
"""

from __future__ import annotations

import numpy as np

from halfwidth.inference.batch_result import in_pairs
from halfwidth.inference.longrun import kernel_weights, lag_one, toeplitz_product
from halfwidth.kernels.arrays import Vector

LARGEST = 4.0
_RHO_CAP = 0.95
_NOTICED = 1e-3


def shortfall(influences: Vector, information: Vector, bandwidth: float, level: int = 0) -> Vector:
    """The factor for the variance of every direction, from the influences and information of batches (K, m).

    A bandwidth that was found in sums over 2^level batches (`halfwidth.inference.slow_dependence`) is for their
    autoregression.
    """
    for _ in range(level):
        influences, information, bandwidth = in_pairs(influences), in_pairs(information), 0.5 * bandwidth
    K, m = influences.shape
    factors = np.ones(m)
    if bandwidth == 0.0 or K < 4:
        return factors
    kernel = kernel_weights(K, bandwidth)
    rho = lag_one(influences)
    rho = np.clip(rho + 2.0 * (1.0 + 3.0 * np.maximum(rho, 0.0)) / K, 0.0, _RHO_CAP)
    total = information.sum(axis=0)
    noticed = (total > 0.0) & (rho > _NOTICED)
    h = np.maximum(information[:, noticed], 0.0) / total[noticed]
    Wh = toeplitz_product(kernel, h)
    factors[noticed] = _ratios(h, Wh, kernel, rho[noticed]) / _ratios(h, Wh, kernel, np.zeros(int(noticed.sum())))
    return np.clip(factors, 1.0, LARGEST)


def _ratios(h: Vector, Wh: Vector, kernel: Vector, rho: Vector) -> Vector:
    """The variance wanted over the mean of the estimate, one direction in each column of h and W h (K, m)."""
    s = np.sqrt(h)
    decay = np.power(rho, np.arange(len(h), dtype=np.float64)[:, None])
    R1 = s * toeplitz_product(decay, s)
    wanted = R1.sum(axis=0)
    mean = np.sum(s * toeplitz_product(kernel[:, None] * decay, s) - 2.0 * Wh * R1 + wanted * h * Wh, axis=0)
    return np.asarray(np.where(mean > 0.0, wanted / np.where(mean > 0.0, mean, 1.0), LARGEST))
