"""The long-run covariance of a sum, from the sums of consecutive batches.

Let z_1, ..., z_m be centred sums over consecutive batches of a stationary sequence. The covariance of their total is

    V = sum_{|l| < m} k(l / S) sum_j z_j z_{j+l}' / (1 - kbar),

with the quadratic spectral kernel k, positive definite by construction, and the bandwidth S that D. W. K. Andrews
(Econometrica 59, 1991) derives from an autoregression of order one for every coordinate:

    S = 1.3221 (alpha m)^(1/5),  alpha = sum_a 4 rho_a^2 s_a^4 / (1 - rho_a)^8  /  sum_a s_a^4 / (1 - rho_a)^4,

where s_a^2 is the innovations' share of the variance of coordinate a. The factor kbar, the mean of the m x m matrix K
= k(|i - j| / S), undoes what centring takes away. The degrees of freedom are those of the chi-square with the mean
and the variance that the estimate has when batches are independent: nu = tr(PK)^2 / tr(PKPK) with the centring matrix
P = I - 11'/m.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from halfwidth.kernels.arrays import Vector

FEW_DEGREES_OF_FREEDOM = 15.0
RHO_CAP = 0.97
_HIDDEN_LEVEL = 0.001
_LONGEST_MATRIX, _MANY_COLUMNS = 256, 32

Flag = tuple[str, str]


class LongRun(NamedTuple):
    """An estimate of the long-run covariance of batch totals."""

    covariance: Vector
    """The covariance of the total, (d, d)."""
    bandwidth: float
    """S, in batches."""
    degrees_of_freedom: float
    """nu of the chi-square with the same mean and variance."""


def quadratic_spectral(x: Vector) -> Vector:
    """The kernel k(x) = 25 / (12 pi^2 x^2) (sin(z)/z - cos(z)), z = 6 pi x / 5."""
    z = np.maximum(1.2 * np.pi * np.abs(x), 1e-3)
    values = 3.0 / z**2 * (np.sin(z) / z - np.cos(z))
    return np.asarray(np.where(np.abs(x) < 1e-3, 1.0, values))


def lag_one(z: Vector) -> Vector:
    """The correlation of neighbours in every column of centred batch sums; 0 where all are zero."""
    spread = np.einsum("ja,ja->a", z, z)
    return np.asarray(np.einsum("ja,ja->a", z[1:], z[:-1]) / np.where(spread > 0.0, spread, 1.0))


def andrews_bandwidth(z: Vector) -> float:
    """The plug-in bandwidth for centred batch sums, in batches."""
    moving = np.einsum("ja,ja->a", z, z) > 0.0
    if len(z) < 4 or not moving.any():
        return 0.0
    rho = np.clip(lag_one(z)[moving], -RHO_CAP, RHO_CAP)
    share2 = (1.0 - rho**2) ** 2
    alpha = np.sum(4.0 * rho**2 * share2 / (1.0 - rho) ** 8) / np.sum(share2 / (1.0 - rho) ** 4)
    return float(1.3221 * (alpha * len(z)) ** 0.2)


def kernel_weights(m: int, bandwidth: float) -> Vector:
    """The kernel at the lags 0, ..., m - 1; one at zero and nothing else without a bandwidth."""
    kernel = np.zeros(m)
    kernel[0] = 1.0
    if bandwidth > 0.0:
        kernel[1:] = quadratic_spectral(np.arange(1, m) / bandwidth)
    return kernel


def kernel_degrees_of_freedom(m: int, bandwidth: float) -> float:
    """nu for m equal batches that are independent, under the kernel of this bandwidth."""
    kernel = kernel_weights(m, bandwidth)
    row_sums = _row_sums(kernel)
    mean = float(row_sums.sum()) / m**2
    squares = float(kernel[0] ** 2 * m + 2.0 * np.sum((m - np.arange(1, m)) * kernel[1:] ** 2))
    second = squares - 2.0 / m * float(row_sums @ row_sums) + (m * mean) ** 2
    return (m - m * mean) ** 2 / second


def long_run_covariance(z: Vector, bandwidth: float | None = None) -> LongRun:
    """V, S and nu for batch sums z, one in each row, whose total is (nearly) zero; S is Andrews' unless given."""
    m = len(z)
    bandwidth = min(andrews_bandwidth(z), m / 4.0) if bandwidth is None else bandwidth
    kernel = kernel_weights(m, bandwidth)
    smoothed = toeplitz_product(kernel, z)
    mean = float(_row_sums(kernel).sum()) / m**2
    covariance = z.T @ smoothed / (1.0 - mean)
    return LongRun(0.5 * (covariance + covariance.T), bandwidth, kernel_degrees_of_freedom(m, bandwidth))


def _row_sums(kernel: Vector) -> Vector:
    """K 1 with K_ij = kernel[|i - j|]."""
    up_to = np.cumsum(kernel)
    return np.asarray(up_to + up_to[::-1] - kernel[0])


def toeplitz_product(kernel: Vector, z: Vector) -> Vector:
    """K z with K_ij = kernel[|i - j|]; z may have a kernel for each of its columns.

    By the fast Fourier transform; many columns of moderate length go through the matrix itself, which takes less time:
    K maps vectors that are symmetric about their middle to such ones, and antisymmetric ones to antisymmetric ones.
    """
    from scipy.fft import irfft, next_fast_len, rfft

    m = len(kernel)
    kernel = kernel.reshape(m, -1)
    if not kernel[1:].any():
        return np.asarray(kernel[0] * z)
    if kernel.shape[1] == 1 and m <= _LONGEST_MATRIX and z.shape[1] >= _MANY_COLUMNS:
        return _by_halves(kernel[:, 0], z)
    size = next_fast_len(2 * m - 1, real=True)
    circle = np.zeros((size, kernel.shape[1]))
    circle[:m] = kernel
    circle[size - m + 1 :] = kernel[:0:-1]
    spectrum = rfft(circle, axis=0) * rfft(z, size, axis=0)
    return np.asarray(irfft(spectrum, size, axis=0)[:m])


def _by_halves(kernel: Vector, z: Vector) -> Vector:
    """K z, from the symmetric and the antisymmetric half of every column: half the operations of the whole matrix."""
    windows = np.lib.stride_tricks.sliding_window_view
    few, many = len(z) // 2, len(z) - len(z) // 2  # without and with the row in the middle, where there is one
    K = windows(np.concatenate([kernel[many - 1 : 0 : -1], kernel[:many]]), many)[::-1]
    mirrored = windows(kernel[::-1], many)[:many]
    both, backwards = K + mirrored, z[::-1]
    both[:, few:] *= 0.5
    symmetric = both @ (z[:many] + backwards[:many])
    antisymmetric = (K - mirrored)[:few, :few] @ (z[:few] - backwards[:few])
    symmetric *= 0.5
    antisymmetric *= 0.5
    found = np.empty(z.shape)
    found[few:many] = symmetric[few:]
    np.add(symmetric[:few], antisymmetric, out=found[:few])
    np.subtract(symmetric[:few], antisymmetric, out=found[::-1][:few])
    return found


def long_dependence(rows: int, batches: int, bandwidth: float, few: float) -> Flag | None:
    """The doubt about errors whose kernel leaves fewer than `few` degrees of freedom, or spans a quarter of it all."""
    if bandwidth == 0.0:
        return None
    nu = kernel_degrees_of_freedom(batches, bandwidth)
    if nu >= few and bandwidth < batches / 4.0:
        return None
    return (
        "long-dependence",
        f"rows stay correlated over a large part of the {rows:,} rows seen ({nu:.0f} degrees of freedom): the "
        "standard errors are rough and may be too small. Feed more rows, or model trend and season",
    )


def hidden_dependence(
    long_variances: Vector, errors: Vector, stretches: int, batches: int, bandwidth: float
) -> Flag | None:
    """The doubt about standard errors that are much smaller than sums over long stretches of the stream show.

    A weak dependence that lasts, under noise that does not, is missed by the first-order autoregression that the
    bandwidth rests on; most of it is found in sums (`halfwidth.inference.slow_dependence`), and this is for the rest.
    The ratio of both variances, of the coefficient in which it is largest, is held against the F distribution.
    Coefficients with an error of nan are not looked at.
    """
    from scipy.special import fdtri

    known = np.isfinite(long_variances) & (errors > 0.0)
    ratio = float((long_variances[known] / np.square(errors[known])).max(initial=0.0))
    level = 1.0 - _HIDDEN_LEVEL / max(int(known.sum()), 1)
    nu = max(kernel_degrees_of_freedom(batches, bandwidth), 2.0)
    if not ratio > float(fdtri(stretches - 1.0, nu, level)):
        return None
    return (
        "long-dependence",
        f"sums over {stretches} long stretches of the rows give {np.sqrt(ratio):.1f} times the standard error of some "
        "coefficient: a slow dependence is hidden under noise, and the errors are too small. Feed more rows, or model "
        "trend and season",
    )
