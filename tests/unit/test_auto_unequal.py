"""What batches' Hessians say of batch means: held to definitions, and to streams told chunk by chunk."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numba import njit

import halfwidth as hw
from halfwidth.learners.auto import reading
from halfwidth.learners.auto.feedback import Response
from halfwidth.learners.auto.feedback_status import MOST_WANDER
from halfwidth.learners.auto.unequal import WIDE, degrees_of_freedom, neighbours, wander
from halfwidth.problems.row_losses import POISSON

M, ROWS, TRUTH = 64, 30_000, np.array([-0.5, 0.7, 0.4])


def squares(X):
    """Hessians of batches of rows (K, rows, d)."""
    return np.einsum("kmi,kmj->kij", X, X)


def responding(J):
    return Response(J, kept=1.0, evidence=10.0)


def test_degrees_of_freedom_are_those_of_independent_scores():
    H = squares(np.random.default_rng(0).standard_normal((40, M, 3)) * np.linspace(0.3, 2.0, 40)[:, None, None])
    inverse = np.linalg.inv(H.sum(axis=0))
    for j, found in enumerate(degrees_of_freedom(H)):
        shares = np.array([inverse[j] @ one @ inverse[j] for one in H])
        assert found == pytest.approx(shares.sum() ** 2 / np.square(shares).sum())
    assert degrees_of_freedom(np.tile(np.eye(2), (12, 1, 1))) == pytest.approx([12.0, 12.0])
    with_absent = np.zeros((40, 4, 4))
    with_absent[np.ix_(range(40), [0, 1, 3], [0, 1, 3])] = H
    shown = np.array([True, True, False, True])
    np.testing.assert_allclose(degrees_of_freedom(with_absent, shown), degrees_of_freedom(H), rtol=1e-12)


def test_a_coefficient_has_the_batches_that_tell_it_from_the_others():
    X = np.random.default_rng(1).standard_normal((40, M, 3))
    X[:, :, 2] = X[:, :, 1]
    X[[3, 17, 30], :, 2] += np.random.default_rng(2).standard_normal((3, M))
    H = squares(X)
    np.testing.assert_array_less(degrees_of_freedom(H)[1:], 3.5)
    assert degrees_of_freedom(H)[0] > 30.0
    wide = np.zeros((40, WIDE + 1, WIDE + 1))
    wide[:, range(WIDE + 1), range(WIDE + 1)] = 1.0
    wide[4:, 7, 7] = 0.0
    found = degrees_of_freedom(wide)
    assert found[7] == pytest.approx(4.0)
    assert np.delete(found, 7) == pytest.approx(40.0)
    assert degrees_of_freedom(np.tile(np.ones((2, 2)), (9, 1, 1))) == pytest.approx([9.0, 9.0])  # singular


def seasonal(period):
    """Hessians of batches of an intercept and a column that is the season itself, plus a bit."""
    rng, k = np.random.default_rng(3), np.arange(60 * M).reshape(60, M)
    season = np.sin(2.0 * np.pi * k / period)
    return squares(np.stack([np.ones(k.shape), season + 0.1 * rng.standard_normal(k.shape)], axis=2))


def test_rows_that_change_slowly_are_told_from_rows_that_vary():
    rows, k = np.full(60, float(M)), 0.7
    H = seasonal(period=20 * M)
    J = -k * H.mean(axis=0) / M
    mean = H.sum(axis=0) / rows.sum()
    L = np.linalg.cholesky(mean)
    apart = [np.linalg.solve(L, np.linalg.solve(L, one / M).T) - np.eye(2) for one in H]
    expected = k**2 * sum(one @ other.T for one, other in pairwise(apart)) / 59
    found = wander(H, rows, responding(J))
    assert found == pytest.approx(np.linalg.eigvalsh(0.5 * (expected + expected.T)).max())
    assert found > MOST_WANDER
    units = np.array([1e6, 1e-4])
    scaled = wander(H * units[:, None] * units, rows, responding(J * units[:, None] * units))
    assert scaled == pytest.approx(found)
    shuffled = np.random.default_rng(4).permutation(H)  # negative control: as unlike, in no order
    assert wander(shuffled, rows, responding(J)) < 0.3 * found
    assert wander(seasonal(period=M), rows, responding(J)) < 0.01
    assert wander(H, rows, Response(J, kept=0.0, evidence=0.0)) == 0.0
    assert wander(-H, rows, responding(J)) == 0.0  # nothing has been shown that curves upwards
    assert wander(np.tile([[1.0, 3.0], [3.0, 1.0]], (60, 1, 1)), rows, responding(J)) == np.inf
    with np.errstate(all="ignore"):
        assert wander(1e-300 * H, rows, responding(J)) == np.inf  # squares leave the range


def told(X, k, seed, own=False):
    """The result of linear rows that respond by k of theta, asked and told or with thetas of one's own."""
    rng, learner, theta = np.random.default_rng(seed), hw.Auto(dim=3, chunk_rows=M, seed=seed), np.zeros(3)
    for at in range(0, len(X) - M + 1, M):
        x = X[at : at + M]
        request = None if own else learner.ask()
        deployed = theta if request is None else request.theta
        y = x @ ((1.0 - k) * TRUTH + k * deployed) + rng.standard_normal(M)
        if request is None:
            errors = x @ theta - y
            learner.tell(theta=theta, gradients=errors[:, None] * x, hessian=x.T @ x)
            theta = theta - 0.2 / np.sqrt(1.0 + at / M) * (x.T @ errors) / M
        else:
            learner.tell(request, [x.T @ (x @ point - y) for point in request.points], x.T @ x)
    return learner.result()


@pytest.mark.parametrize("own", [False, True])
def test_a_column_in_a_few_spells_is_rare_and_the_others_are_not(own):
    rng, k = np.random.default_rng(5), np.arange(ROWS)
    X = np.column_stack([np.ones(ROWS), rng.standard_normal(ROWS), ((k + 20) % 9_000 < 20).astype(float)])
    assert told(X, 0.0, 1, own).coefficient_status == ("ok", "ok", "rare")
    X[:, 2] = rng.random(ROWS) < 0.05
    assert told(X, 0.0, 1, own).coefficient_status == ("ok", "ok", "ok")  # negative control


def test_a_response_of_rows_that_change_slowly_is_doubted():
    rng, k = np.random.default_rng(6), np.arange(ROWS)
    z = rng.standard_normal(ROWS)
    X = np.column_stack([np.ones(ROWS), z, z + 0.02 * np.sin(2.0 * np.pi * k / 5_000)])
    assert told(X, -1.0, 2).status == "rows-changed"  # covered 0.80 of the time
    assert told(X, 0.0, 2).status == "ok"  # negative control: nothing responds
    X[:, 2] = z + 0.02 * rng.standard_normal(ROWS)
    assert told(X, -1.0, 2).status == "ok"  # negative control: rows are alike


def test_neighbours_are_compared_in_units_in_which_the_mean_hessian_is_the_identity():
    """Slow twin, batch by batch; and the rows of a season, which are alike next to each other."""
    rng = np.random.default_rng(5)
    X, rows = rng.standard_normal((50, M, 2)) @ [[2.0, 1.0], [0.0, 0.1]], np.full(50, float(M))
    H = squares(X)
    values, vectors = np.linalg.eigh(H.sum(axis=0))
    root = vectors / np.sqrt(values) @ vectors.T
    away = [50.0 * root @ one @ root - np.eye(2) for one in H]
    twin = sum(np.sum(a * b) for a, b in pairwise(away)) / sum(np.sum(a * a) for a in away)
    assert neighbours(H, rows) == pytest.approx(twin)
    assert abs(twin) < 3.0 / np.sqrt(50.0)
    assert neighbours(seasonal(20 * M), np.full(60, float(M))) > 0.5
    assert neighbours(np.tile(np.eye(2), (9, 1, 1)), np.ones(9)) == 1.0  # nothing differs
    assert neighbours(np.tile(-np.eye(2), (9, 1, 1)), np.ones(9)) == 1.0


@njit
def draw_crossed(rng, theta, state, params, row):
    """Counts with the log mean x'(0.5, 1, -1) + 0.8 (theta_1 - 1) x_2."""
    row[0], row[1], row[2] = 1.0, rng.standard_normal(), rng.standard_normal()
    eta = 0.5 + row[1] - row[2] + 0.8 * (theta[1] - 1.0) * row[2]
    row[3] = rng.poisson(np.exp(min(eta, 20.0)))


def test_a_response_that_was_looked_for_in_proportion_where_rows_are_alike_is_doubted(monkeypatch):
    """Far from the root steps are clipped. Another response passed for none, up to 16 standard errors off."""
    world = hw.Problem(3, POISSON.gradient, draw_crossed, row_size=4, hessian=POISSON.hessian)
    learners = [hw.Auto(world, seed=seed).run(20_000) for seed in (0, 41, 45, 58)]
    assert all(learner._steered.careful for learner in learners)
    results = [learner.result() for learner in learners]
    assert {result.status for result in results} == {"feedback-undecided"}
    away = [np.abs((result.params - [0.5, 1.0, -1.0]) / result.bse).max() for result in results]
    monkeypatch.setattr(reading, "_alike", lambda _: False)  # negative control
    assert {learner.result().status for learner in learners} == {"ok"}
    assert max(away) > 5.0
