"""The jackknife of equations whose matrices are not symmetric."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, t

from halfwidth.equation import Equation
from halfwidth.equation.errors import jackknife_errors
from halfwidth.equation.field_errors import field_errors

TURN = np.array([[0.0, 2.0, 0.0], [-2.0, 0.0, 1.0], [0.0, -1.0, 0.0]])


def batches(rng, K=40, rows=64, turn=0.0, rare=0):
    """H_b + n_b turn T, and the noise of a linear equation whose root is zero; the last column may be rare."""
    u = rng.standard_normal((K, rows, 3))
    if rare:
        u[rare:, :, 2] = 0.0
    e = rng.standard_normal((K, rows))
    A = np.einsum("bri,brj->bij", u, u) + rows * turn * TURN
    return Equation(A, np.einsum("bri,br->bi", u, e), np.full(K, float(rows)))


def test_symmetric_matrices_give_the_symmetric_jackknife():
    equation = batches(np.random.default_rng(0), rare=6)
    residuals = equation.residuals(equation.solve()[0])
    information = equation.A.sum(axis=0)
    one, other = jackknife_errors(equation, residuals, information), field_errors(equation, residuals)
    every = np.concatenate([np.eye(3), [[1.0, -1.0, 2.0]]])
    assert other.bandwidth == pytest.approx(one.bandwidth)
    for name in ("influences", "information", "shares"):
        np.testing.assert_allclose(
            getattr(other.along(every).deleted, name), getattr(one.along(every).deleted, name), rtol=1e-8, atol=1e-12
        )
    np.testing.assert_allclose(other.degrees_of_freedom(every), one.degrees_of_freedom(every), rtol=1e-8)
    np.testing.assert_allclose(other.covariance(every), one.covariance(every), rtol=1e-8)
    assert other.degrees_of_freedom(every)[2] < 8.0 < other.degrees_of_freedom(every)[0]


def test_influences_are_exact_deletions_of_a_batch():
    equation = batches(np.random.default_rng(1), K=6, turn=0.3)
    root = equation.solve()[0]
    found = field_errors(equation, equation.residuals(root)).along(np.eye(3)).deleted.influences
    for b in range(6):
        kept = np.arange(6) != b
        without = np.linalg.solve(equation.A[kept].sum(axis=0), equation.B[kept].sum(axis=0))
        np.testing.assert_allclose(found[b], root - without, rtol=1e-9, atol=1e-12)


def test_a_direction_known_from_one_batch_is_lone():
    equation = batches(np.random.default_rng(3), K=8, rare=1)
    found = field_errors(equation, equation.residuals(equation.solve()[0]))
    assert found.along(np.eye(3)).deleted.lone.tolist() == [False, False, True]


def coverage(symmetrised, runs=600):
    hits = []
    for seed in range(runs):
        equation = batches(np.random.default_rng(seed), K=30, turn=0.6)
        residuals = equation.residuals(equation.solve()[0])
        if symmetrised:
            information = equation.A.sum(axis=0)
            errors = jackknife_errors(equation, residuals, 0.5 * (information + information.T))
        else:
            errors = field_errors(equation, residuals)
        half = np.sqrt(np.diag(errors.covariance(np.eye(3)))) * t.ppf(0.975, errors.degrees_of_freedom(np.eye(3)))
        hits.append(np.abs(equation.solve()[0]) <= half)
    return int(np.sum(hits, axis=0).min()), int(np.sum(hits, axis=0).max()), runs


def test_intervals_of_a_rotating_field_cover():
    fewest, most, runs = coverage(symmetrised=False)
    assert fewest >= binom.ppf(0.001, runs, 0.94)
    assert most <= binom.ppf(0.999, runs, 0.97)


def test_negative_control_a_symmetrised_jackknife_is_wrong_there():
    _, most, runs = coverage(symmetrised=True)
    assert most > binom.ppf(0.999, runs, 0.97)
