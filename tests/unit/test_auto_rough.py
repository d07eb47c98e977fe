"""Gradients that jump, on given rows: what expansions leave out on average."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

from halfwidth import problem
from halfwidth.equation import BatchStore
from halfwidth.learners.auto.field import field_of
from halfwidth.learners.auto.rough_expansions import mean_left_out


def quantile_case(tau, rows=400_000):
    """Rows, a store whose root has the covariance V, V, and n T / 2 at the truth, of standard normal noise."""
    world = problem("quantile-linear", tau=tau, dim=3)
    rng = np.random.default_rng(5)
    X = np.column_stack([np.ones(rows), rng.standard_normal((rows, 2))])
    slopes = world.theta_star - np.array([norm.ppf(tau), 0.0, 0.0])
    store, influences = BatchStore(3, 1, 128), 0.006 * rng.standard_normal((64, 3))
    influences -= influences.mean(axis=0)
    store.add(np.arange(65), influences, np.tile(np.eye(3) / 64.0, (64, 1, 1)))
    # g = x (1{y < x'theta} - tau), and the density of y - x'theta* at 0 has the slope phi'(q) = -q phi(q).
    slope = -norm.ppf(tau) * norm.pdf(norm.ppf(tau))
    half = 0.5 * slope * np.einsum("ni,nj,nk->ijk", X, X, X)
    return world, np.column_stack([X, X @ slopes + rng.standard_normal(rows)]), store, influences.T @ influences, half


@pytest.mark.parametrize("tau", [0.5, 0.9])
def test_the_mean_left_out_is_its_definition(tau):
    """For the signs that are drawn; at the median it is nothing: the density is flat there."""
    world, rows, store, V, half = quantile_case(tau)
    field = field_of(world, np.full(3, 0.05), differences=True)
    values, vectors = np.linalg.eigh(V)
    signs = 2.0 * np.random.default_rng(64).integers(0, 2, (2, 3)) - 1.0
    moves = signs @ (vectors * np.sqrt(values)).T
    expected = np.einsum("ijk,jk->i", half, moves.T @ moves / 2.0)
    noise = 45.0  # three times that of jumps, sqrt(n f |z|) / 9 with |z| about a quarter
    assert np.abs(mean_left_out(field, rows, world.theta_star, store) - expected).max() < noise
    assert (np.abs(expected).max() > 5 * noise) == (tau == 0.9)


def test_moves_have_the_covariance_of_the_root():
    """Over all signs, (L e)(L e)' is V on average."""
    V = quantile_case(0.9, rows=10)[3]
    values, vectors = np.linalg.eigh(V)
    signs = np.array(list(product([-1.0, 1.0], repeat=3)))
    moves = signs @ (vectors * np.sqrt(values)).T
    np.testing.assert_allclose(moves.T @ moves / len(signs), V, rtol=1e-9, atol=1e-12)


def test_signs_are_a_function_of_the_number_of_rows():
    world, rows, store, *_ = quantile_case(0.9, rows=1_000)
    field = field_of(world, np.full(3, 0.05), differences=True)
    first, again = (mean_left_out(field, rows, world.theta_star, store) for _ in range(2))
    np.testing.assert_array_equal(first, again)
