"""The bandwidth under noise that hides a slow dependence: against its definition, and by what it does to intervals."""

import warnings

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import norm

import halfwidth.equation.errors
from halfwidth.equation.equation import Equation
from halfwidth.equation.field_errors import field_errors
from halfwidth.inference.autoregressive_bias import shortfall
from halfwidth.inference.batch_result import in_pairs
from halfwidth.inference.longrun import andrews_bandwidth
from halfwidth.inference.slow_dependence import LEVEL, Reach, excess, less_a_step, of_sums, reach
from halfwidth.models import FitWarning, LinearRegression


def autoregression(rng, phi, shape, burn_in=1_000):
    """Of variance one, along the first axis."""
    fresh = np.sqrt(1.0 - phi**2) * rng.standard_normal((shape[0] + burn_in, *shape[1:]))
    return lfilter([1.0], [1.0, -phi], fresh, axis=0)[burn_in:]


def slow_under_noise(rng, shape, share=0.5, phi=0.99):
    return np.sqrt(share) * autoregression(rng, phi, shape) + np.sqrt(1.0 - share) * rng.standard_normal(shape)


def first_order(influences):
    """The control: Andrews' bandwidth for the batches themselves."""
    return Reach(min(andrews_bandwidth(influences), len(influences) / 4.0), 0)


@pytest.mark.parametrize("k", [2, 16])
@pytest.mark.parametrize("rho", [0.0, 0.4, 0.95])
def test_sums_of_an_autoregression_have_this_correlation(rho, k):
    covariance = rho ** np.abs(np.subtract.outer(np.arange(2 * k), np.arange(2 * k)))
    expected = covariance[:k, k:].sum() / covariance[:k, :k].sum()
    assert of_sums(np.array([rho]), k)[0] == pytest.approx(expected, abs=1e-12)


def slow_twin(z):
    """`reach` by loops over coordinates and sums of whole groups; K is a power of two."""
    K, d = z.shape
    levels = [level for level in range(1, 12) if K / 2**level >= 32]
    limit = norm.isf(LEVEL / (len(levels) * d))
    found = [(min(andrews_bandwidth(z), K / 4), 0)]
    steady = np.empty_like(z)
    for a in range(d):
        partial = [abs(sum(z[: i + 1, a] - z[:, a].mean())) for i in range(K)]
        cut = int(np.argmax(partial)) + 1
        steady[:cut, a] = z[:cut, a] - z[:cut, a].mean()
        steady[cut:, a] = z[cut:, a] - z[cut:, a].mean() if cut < K else 0.0

    def beyond(x, level):
        sums = np.array([x[i : i + 2**level].sum(axis=0) for i in range(0, K, 2**level)])
        t = []
        for a in range(d):
            rho = min(max(sum(x[1:, a] * x[:-1, a]) / sum(x[:, a] ** 2), 0.0), 0.97)
            rho = of_sums(np.array([rho]), 2**level)[0]
            terms = [u * (v - rho * u) for u, v in zip(sums[:-1, a], sums[1:, a], strict=True)]
            t.append(sum(terms) / np.sqrt(sum(term**2 for term in terms)))
        return max(t) > limit, sums

    if any(beyond(z, level)[0] for level in levels):
        for level in levels:
            slow, sums = beyond(steady, level)
            if slow:
                found.append((min(2**level * andrews_bandwidth(sums), K / 8), level))
    return max(found, key=lambda one: one[0])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("share", [0.0, 0.2, 0.5])
def test_the_bandwidth_is_that_of_the_definition(share, seed):
    z = slow_under_noise(np.random.default_rng(seed), (512, 2), share, 0.97)
    z[256:] += 0.2 * seed
    z -= z.mean(axis=0)
    found = reach(z)
    assert found == pytest.approx(slow_twin(z), rel=1e-9)
    if share == 0.5:
        assert found.level > 0
        assert found.bandwidth > 1.5 * first_order(z).bandwidth


MADE = {
    "independent": lambda rng, shape: rng.standard_normal(shape),
    "heavy-tailed": lambda rng, shape: rng.standard_t(3, shape),
    "volatile": lambda rng, shape: rng.standard_normal(shape) * np.exp(0.7 * autoregression(rng, 0.95, (shape[0], 1))),
    "autoregression": lambda rng, shape: autoregression(rng, 0.7, shape),
    "sums of one": lambda rng, shape: (
        autoregression(rng, 0.9, (4 * shape[0], shape[1])).reshape(-1, 4, shape[1]).sum(1)
    ),
    "alternating": lambda rng, shape: -np.diff(rng.standard_normal((shape[0] + 1, shape[1])), axis=0),
    "a step": lambda rng, shape: rng.standard_normal(shape) + np.where(np.arange(shape[0]) < 100, 1.0, -1.0)[:, None],
}


@pytest.mark.parametrize("made", MADE)
def test_without_a_slow_part_nothing_changes(made):
    """In 1% of 400 runs at most; ten or more have a chance of 0.01 at that rate. At 0.05 twenty would be."""
    rng, longer = np.random.default_rng(3), 0
    for _ in range(400):
        z = MADE[made](rng, (256, 3))
        z = z - z.mean(axis=0)
        found = reach(z)
        longer += found.level > 0
        assert found.level > 0 or found == first_order(z)
    assert longer < 10


def test_a_column_of_zeros_and_a_few_batches_are_as_before():
    z = np.column_stack([np.random.default_rng(0).standard_normal(63), np.zeros(63)])
    assert reach(z) == first_order(z)
    assert reach(np.zeros((256, 2))) == Reach(0.0, 0)
    assert excess(np.zeros((40, 2)), np.zeros(2)).tolist() == [0.0, 0.0]
    assert not less_a_step(np.repeat([[1.0], [3.0]], 20, axis=0)).any()


def test_the_shortfall_is_that_of_the_sums():
    u = slow_under_noise(np.random.default_rng(1), (256, 2))
    information = np.random.default_rng(2).random((256, 2)) + 0.1
    quarters = in_pairs(in_pairs(u)), in_pairs(in_pairs(information))
    expected = shortfall(*quarters, 5.0)
    np.testing.assert_array_equal(shortfall(u, information, 20.0, 2), expected)
    assert (expected > shortfall(u, information, 20.0)).all()


def test_fields_without_a_loss_have_the_same_bandwidth():
    residuals = slow_under_noise(np.random.default_rng(5), (512, 2), 0.3, 0.97)
    residuals -= residuals.mean(axis=0)
    A = np.tile([[2.0, 1.0], [-1.0, 1.0]], (512, 1, 1))
    errors = field_errors(Equation(A, residuals, np.ones(512)), residuals)
    expected = reach(residuals @ np.linalg.inv(A.sum(axis=0)).T)
    assert expected.level > 0
    assert (errors.bandwidth, errors.level) == pytest.approx(tuple(expected), rel=1e-9)


def covered(runs):
    """How many intervals of two slopes hold the truth: features and noise half AR(0.98), half white, 2,000 rows."""
    inside = 0
    for seed in range(runs):
        rng = np.random.default_rng([9, seed])
        X, y = slow_under_noise(rng, (2_000, 2), phi=0.98), slow_under_noise(rng, (2_000,), phi=0.98)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)
            low, high = np.asarray(LinearRegression().fit(X, y).inference().conf_int())[1:].T
        inside += int(((low <= 0.0) & (high >= 0.0)).sum())
    return inside


def test_intervals_cover_under_a_slow_dependence_that_noise_hides(monkeypatch):
    """Of 240 intervals; the control, which follows the noise, is far below."""
    assert 0.90 * 240 <= covered(120) <= 0.985 * 240
    monkeypatch.setattr(halfwidth.equation.errors, "reach", first_order)
    assert covered(120) < 0.85 * 240
