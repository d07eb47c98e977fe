"""The long-run covariance of batch sums against its definition."""

import warnings

import numpy as np
import pytest
from scipy.signal import lfilter

from halfwidth.equation.stability import LONG_BATCHES, stability
from halfwidth.inference.autoregressive_bias import LARGEST, shortfall
from halfwidth.inference.longrun import (
    andrews_bandwidth,
    hidden_dependence,
    kernel_weights,
    long_run_covariance,
    quadratic_spectral,
    toeplitz_product,
)
from halfwidth.inference.student_law import StudentLaw
from halfwidth.models import FitWarning, LinearRegression


def slow_twin(z, bandwidth):
    m = len(z)
    lags = np.abs(np.subtract.outer(np.arange(m), np.arange(m)))
    K = quadratic_spectral(lags / bandwidth) if bandwidth > 0 else np.eye(m)
    P = np.eye(m) - 1.0 / m
    PKP = P @ K @ P
    return z.T @ K @ z / (1.0 - K.mean()), np.trace(PKP) ** 2 / np.trace(PKP @ PKP)


def ar(rng, m, phi, d=3):
    z = np.empty((m, d))
    z[0] = rng.standard_normal(d)
    for i in range(1, m):
        z[i] = phi * z[i - 1] + np.sqrt(1 - phi**2) * rng.standard_normal(d)
    return z - z.mean(axis=0)


@pytest.mark.parametrize("phi", [0.0, 0.6])
@pytest.mark.parametrize("m", [7, 200])
def test_covariance_and_degrees_of_freedom_match_the_definition(m, phi):
    z = ar(np.random.default_rng(1), m, phi)
    fast = long_run_covariance(z)
    covariance, nu = slow_twin(z, fast.bandwidth)
    np.testing.assert_allclose(fast.covariance, covariance, rtol=1e-9, atol=1e-12)
    assert fast.degrees_of_freedom == pytest.approx(nu, rel=1e-9)


def test_the_kernel_is_one_at_zero_and_positive_definite():
    x = np.arange(300) / 7.0
    k = quadratic_spectral(x)
    assert k[0] == 1.0
    lags = np.abs(np.subtract.outer(np.arange(300), np.arange(300)))
    assert np.linalg.eigvalsh(k[lags]).min() > -1e-10


def test_bandwidth_grows_with_dependence():
    rng = np.random.default_rng(2)
    weak, strong = (andrews_bandwidth(ar(rng, 1000, phi)) for phi in (0.0, 0.8))
    assert weak < 4.0
    assert strong > 3.0 * weak


def test_correlated_batches_get_their_long_run_variance():
    """AR(0.6): the truth is (1 + 0.6)/(1 - 0.6) = 4 times the variance; ignoring the lags is the control."""
    estimates, controls = [], []
    for seed in range(40):
        z = ar(np.random.default_rng(seed), 2000, 0.6, d=1)
        estimates.append(long_run_covariance(z).covariance[0, 0] / 2000)
        controls.append(float(np.mean(z**2)))
    assert np.mean(estimates) == pytest.approx(4.0, rel=0.07)
    assert np.mean(controls) < 1.1


def test_student_law_matches_scipy():
    from scipy import stats

    law = StudentLaw(7.3)
    assert law.quantile(0.95) == pytest.approx(stats.t.ppf(0.975, 7.3))
    np.testing.assert_allclose(law.two_sided_tail([0.0, 1.0, 5.0]), 2 * stats.t.sf([0.0, 1.0, 5.0], 7.3))
    x = law.joint_quantile(0.9, 3)
    assert law.joint_tail(x, 3) == pytest.approx(0.1)
    assert law.joint_quantile(0.9, 1) == pytest.approx(law.quantile(0.9) ** 2)
    with pytest.raises(ValueError, match="9 directions"):
        law.joint_tail(1.0, 9)


@pytest.mark.parametrize("columns", [3, 40])
@pytest.mark.parametrize("m", [2, 3, 70, 71])
def test_toeplitz_products_are_those_of_the_matrix(m, columns):
    rng = np.random.default_rng(0)
    z, lags = rng.standard_normal((m, columns)), np.abs(np.subtract.outer(np.arange(m), np.arange(m)))
    kernel = kernel_weights(m, 3.3)
    np.testing.assert_allclose(toeplitz_product(kernel, z), kernel[lags] @ z, atol=1e-12)
    kernels = rng.standard_normal((m, columns))
    each = np.column_stack([kernels[:, j][lags] @ z[:, j] for j in range(columns)])
    np.testing.assert_allclose(toeplitz_product(kernels, z), each, atol=1e-11)


def test_the_shortfall_is_the_ratio_of_means_in_the_working_model():
    """From the matrices of the definition, with the lag-one correlation as it is estimated."""
    rng, K, bandwidth = np.random.default_rng(1), 60, 4.0
    u = np.array([[0.8 ** abs(i - j) for j in range(K)] for i in range(K)]) @ rng.standard_normal((K, 3))
    information = rng.random((K, 3)) + 0.1
    lags = np.abs(np.subtract.outer(np.arange(K), np.arange(K)))
    W = kernel_weights(K, bandwidth)[lags]

    def ratio(h, rho):
        R = np.sqrt(np.outer(h, h)) * rho**lags
        residual = np.eye(K) - np.outer(h, np.ones(K))
        return R.sum() / np.trace(W @ residual @ R @ residual.T)

    for j, found in enumerate(shortfall(u, information, bandwidth)):
        rho = u[1:, j] @ u[:-1, j] / (u[:, j] @ u[:, j])
        rho, h = min(rho + 2.0 * (1.0 + 3.0 * rho) / K, 0.95), information[:, j] / information[:, j].sum()
        assert found == pytest.approx(min(ratio(h, rho) / ratio(h, 0.0), LARGEST), rel=1e-9)


def test_a_doubt_about_hidden_dependence_is_rare_where_there_is_none():
    rng, K, m = np.random.default_rng(0), 128, 4
    found = 0
    for _ in range(1_000):
        x = rng.standard_normal((K, m))
        x -= x.mean(axis=0)
        steady = stability(x, np.ones((K, m)), np.ones(K))
        found += (
            hidden_dependence(steady.long_variances, np.sqrt(np.square(x).sum(axis=0)), LONG_BATCHES, K, 0.0)
            is not None
        )
    assert found <= 5  # 0.001 of them are expected


@pytest.mark.parametrize(("white", "least", "most"), [(2.0, 15, 20), (0.0, 0, 0)])
def test_a_slow_dependence_under_white_noise_is_doubted(white, least, most):
    """A bandwidth that follows the noise would cover 0.6; one that does not leaves few degrees of freedom."""
    phi, doubted = (0.99, 0) if white else (0.5, 0)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        slow = lfilter([np.sqrt(1.0 - phi**2)], [1.0, -phi], rng.standard_normal((2, 3_000)))[:, 1_000:]
        x = slow[0] + 0.1 * white * rng.standard_normal(2_000)
        y = x + 0.7 * slow[1] + white * rng.standard_normal(2_000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)
            result = LinearRegression().fit(x[:, None], y).inference()
        doubted += result.status == "long-dependence"
    assert least <= doubted <= most
