"""The critical value of the largest t statistic, against the cases with a closed form."""

import numpy as np
import pytest
from scipy import stats

from halfwidth.inference.simultaneous import max_t_quantile


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_one_coefficient_has_its_own_quantile(level):
    assert max_t_quantile(np.eye(1) * 7.0, np.inf, level) == pytest.approx(stats.norm.ppf(0.5 + level / 2), abs=0.01)
    assert max_t_quantile(np.eye(1), 6.0, level) == pytest.approx(stats.t.ppf(0.5 + level / 2, 6), abs=0.03)


def test_independent_coefficients_are_sidaks():
    each = 0.95 ** (1 / 12)
    assert max_t_quantile(np.eye(12), np.inf, 0.95) == pytest.approx(stats.norm.ppf(0.5 + each / 2), abs=0.02)


def test_equal_coefficients_are_one():
    assert max_t_quantile(np.ones((4, 4)), np.inf, 0.95) == pytest.approx(1.96, abs=0.01)


def test_the_law_is_that_of_simulated_t_statistics():
    """Null: 40,000 draws of the largest |t| lie below the value in 95% of the cases, within 3.5 standard errors."""
    rng = np.random.default_rng(3)
    root = rng.standard_normal((5, 5))
    covariance, draws = root @ root.T, 40_000
    z = rng.standard_normal((draws, 5)) @ root.T / np.sqrt(np.diag(covariance))
    t = np.abs(z).max(axis=1) / np.sqrt(rng.chisquare(9, draws) / 9)
    found = np.mean(t <= max_t_quantile(covariance, 9.0, 0.95))
    assert abs(found - 0.95) < 3.5 * np.sqrt(0.95 * 0.05 / draws)
    assert np.mean(t <= stats.t.ppf(0.975, 9)) < 0.9  # the negative control: one at a time does not do
