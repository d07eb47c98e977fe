"""Curved losses where chunks are unlike each other: what dithers show of them, and what far expansions count for."""

from __future__ import annotations

import numpy as np
import pytest

import halfwidth as hw
from halfwidth.equation import Equation, Sums
from halfwidth.equation.result import Jackknifed, rare_below
from halfwidth.learners.auto import careful, reading
from halfwidth.learners.auto.careful_result import with_doubt
from halfwidth.learners.auto.expanded import BURN_IN, FADED, NEAR, flat, late_batches, near_batches, unweighted_degrees
from halfwidth.learners.auto.probes import MOST_LOST, REMEMBERED, STEEP, nonlinearity, trust_in
from halfwidth.problems import problem
from halfwidth.problems.feature_table import stand_in_table

M, DIM = 64, 6


def sigmoid(eta):
    return 1.0 / (1.0 + np.exp(-eta))


class Spells:
    """Logistic labels of the stand-in table, told chunk by chunk; `steps` requests at a time."""

    def __init__(self, seed=0):
        self.rng, self.X, self.at = np.random.default_rng(seed), stand_in_table(), 0
        self.truth = problem("table-logistic").theta_star
        self.learner = hw.Auto(dim=DIM, chunk_rows=M)

    def next(self):
        """A request, its gradients and its Hessian."""
        request = self.learner.ask()
        x = self.X[self.at : self.at + M]
        self.at = (self.at + M) % (len(self.X) - M)
        y = self.rng.random(M) < sigmoid(x @ (0.5 * self.truth + 0.5 * request.theta))
        gradients = np.array([x.T @ (sigmoid(x @ point) - y) for point in request.points])
        p = sigmoid(x @ request.points[1])
        return request, gradients, (x.T * (p * (1.0 - p))) @ x

    def until_dithered(self):
        """The first request of a dithered chunk."""
        while True:
            told = self.next()
            if self.learner._steered.careful and len(told[0].points) == 4:
                return told
            self.learner.tell(*told)
            assert self.learner.n_seen < 20_000


def test_dithered_chunks_are_probed_on_either_side_and_what_is_not_linear_is_summed():
    world = Spells()
    engine = world.learner._steered
    for _ in range(3):
        request, gradients, H = world.until_dithered()
        engine = world.learner._steered
        point, z = engine.steering.point.copy(), request.theta - engine.moving.theta
        np.testing.assert_allclose(request.points, [engine.moving.theta, point, point + z, point - z], rtol=1e-12)
        R, probed, P = engine.store.sums.R.sum(axis=0), engine.moving.probed.copy(), engine.steering.P.copy()
        world.learner.tell(request, gradients, H)
        left = 0.5 * (gradients[2] + gradients[3]) - gradients[1]
        np.testing.assert_allclose(engine.store.sums.R.sum(axis=0) - R, left, rtol=1e-9, atol=1e-9)
        seen = [z @ H @ z, 0.5 * z @ (gradients[2] - gradients[3]), z @ H @ P @ H @ z, left @ P @ left]
        np.testing.assert_allclose(engine.moving.probed, REMEMBERED * probed + seen, rtol=1e-9)
    assert engine.curved


def test_what_a_dither_adds_to_a_response_that_shifts_by_a_share_of_it_is_taken_off():
    """Exact means: labels of the logistic regression at l + k z, dithers z and -z, and rows that are expanded at l."""
    rng = np.random.default_rng(1)
    x, point, k = rng.standard_normal((400, 3)) + np.array([1.0, 0.0, 0.0]), np.array([-1.0, 0.5, -0.3]), 0.6
    added, corrected = np.zeros(3), np.zeros(3)
    for z in 0.5 * rng.choice([-1.0, 1.0], (20, 3)):
        p = sigmoid(x @ point)
        H, g = (x.T * (p * (1 - p))) @ x, x.T @ (p - sigmoid(x @ (point + k * z)))
        ahead, behind = (x.T @ (sigmoid(x @ (point + s * z)) - sigmoid(x @ point)) for s in (1.0, -1.0))
        added += -g - k * H @ z
        corrected += -g - k * H @ z - k**2 * 0.5 * (ahead + behind)
    assert np.abs(added).max() > 20.0
    assert np.abs(corrected).max() < 0.1 * np.abs(added).max()


@pytest.mark.parametrize("loss", ["linear", "logistic", "poisson"])
def test_dithers_show_whether_a_loss_is_curved_and_are_limited_by_it(loss):
    engine = hw.Auto(problem(f"table-{loss}", epsilon=0.5, psi=0.9), seed=4).run(12_000)._steered
    assert engine.careful
    assert engine.curved == (loss != "linear")
    assert bool(engine.steering.usual.any()) == (loss != "linear")
    root = engine._share_root(engine.shares)
    dithered = 0.5 * engine._plain_steps(1)[0] * M * np.sum(root * (engine.mean_hessian() @ root))
    assert nonlinearity(engine.moving.probed) * dithered <= MOST_LOST * (1.0 + 1e-9)


def test_a_share_measured_under_strong_noise_is_not_lost_in_the_curve(monkeypatch):
    """Labels whose noise stays correlated make large dithers, and a curved response is lost in them."""

    def shares():
        world = problem("table-logistic", epsilon=0.5, psi=0.95)
        found = [hw.Auto(world, seed=seed).run(40_000)._steered.response().proportion for seed in range(12)]
        return [(one.share, one.variance) for one in found if one is not None]

    limited = shares()
    mean, error = np.mean([k for k, _ in limited]), np.sqrt(np.mean([v for _, v in limited]) / len(limited))
    assert 0.5 * (1.0 - MOST_LOST) - 2.0 * error < mean < 0.5 + 2.0 * error  # at most that is lost
    own = careful.CarefulSteering._share_root
    monkeypatch.setattr(careful, "MOST_LOST", np.inf)
    monkeypatch.setattr(careful.CarefulSteering, "_share_root", lambda engine, sums: 4.0 * own(engine, sums))
    assert np.mean([k for k, _ in shares()]) < mean - 0.03


def test_a_steep_chunk_counts_for_less():
    usual = np.array([1.0, 2.0, 0.0, 4.0])
    H = M * np.diag([1.0, 2.0, 5.0, 4.0])
    assert trust_in(H, M, usual) == 1.0
    assert trust_in(STEEP * H, M, usual) == 1.0
    assert trust_in(10.0 * H, M, usual) == pytest.approx((STEEP / 10.0) ** 2)
    assert trust_in(10.0 * H, M, np.zeros(4)) == 1.0  # nothing is known yet
    rare = H.copy()
    rare[0, 0] *= 1_000.0
    assert trust_in(rare, M, usual) == 1.0  # a rare column is no steep chunk


def test_what_a_steep_chunk_does_not_count_for_moves_the_next_points_and_is_forgotten():
    world = Spells(3)
    request, gradients, _ = world.until_dithered()
    engine = world.learner._steered
    steep = 40.0 * M * np.diag(np.maximum(np.diag(engine.mean_hessian()), 1e-3))
    engine.steering.usual[:] = np.maximum(np.diag(engine.mean_hessian()), 1e-3)
    before, total, R = engine.store.curvature(), engine.store.sums.b.sum(axis=0), engine.store.sums.R.sum(axis=0)
    trust, own = (STEEP / 40.0) ** 2, steep @ (engine.steering.point - engine.steering.origin) - gradients[1]
    world.learner.tell(request, gradients, steep)
    np.testing.assert_allclose(engine.store.curvature() - before, trust * steep, atol=1e-9)
    np.testing.assert_allclose(engine.store.sums.b.sum(axis=0) - total, trust * own, atol=1e-9)
    left = 0.5 * (gradients[2] + gradients[3]) - gradients[1]
    np.testing.assert_allclose(engine.store.sums.R.sum(axis=0) - R, trust * left, atol=1e-9)
    rest = engine.moving.far_curvature.copy()
    np.testing.assert_allclose(rest, (1.0 - trust) * (1.0 - engine.steering.share[0]) * steep, rtol=0.2)
    engine.steering.usual[:] = 0.0
    world.learner.tell(*world.next())
    np.testing.assert_allclose(engine.moving.far_curvature, REMEMBERED * rest)


def batches(points, H, root, rows=M):
    """Sums of batches, each expanded at its point, of a quadratic loss with this root."""
    K, dim = points.shape
    b = np.einsum("kij,j->ki", H, root)
    none = np.zeros((K, dim))
    return Sums(H, b, rows * points, none.copy(), none.copy(), np.full(K, float(rows)), np.zeros(K))


def test_batches_that_were_expanded_far_from_the_root_count_for_little():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((40, M, 3))
    H, root = np.einsum("kmi,kmj->kij", x, x), np.array([1.0, -1.0, 0.5])
    points = root + 0.01 * rng.standard_normal((40, 3))
    points[:4] += 1.0
    sums, unit = batches(points, H, root), M * 1e-3
    found = near_batches(sums, 0.0, unit)
    lost = unit * np.einsum("ki,kij,kj->k", points - root, H, points - root) / M
    weights = np.minimum(1.0, NEAR / lost) ** 2
    assert (weights[:4] < 0.2).all()
    np.testing.assert_allclose(found.H, weights[:, None, None] * H, rtol=1e-9)
    np.testing.assert_allclose(found.b, weights[:, None] * sums.b, rtol=1e-9)
    assert np.array_equal(found.n, sums.n)
    same = near_batches(sums, 0.0, 0.0)
    assert all(np.array_equal(one, other) for one, other in zip(same, sums, strict=True))


def test_a_far_expansion_no_longer_decides_the_root():
    """Exponential rates: the mean gradient of batches at their own points, most of them near, some far above."""
    rng = np.random.default_rng(3)
    x, root = 0.7 * rng.standard_normal((60, M, 2)) + [1.0, 0.0], np.array([0.3, -0.4])
    points = root + 0.03 * rng.standard_normal((60, 2))
    points[::10] += [1.0, 0.8]
    H = np.array([(r.T * np.exp(r @ at)) @ r for r, at in zip(x, points, strict=True)])
    g = np.array([r.T @ (np.exp(r @ at) - np.exp(r @ root)) for r, at in zip(x, points, strict=True)])
    sums = batches(points, H, root)._replace(b=np.einsum("kij,kj->ki", H, points) - g)
    away = [np.abs(Equation.of(one).solve()[0] - root).max() for one in (sums, near_batches(sums, 0.0, 1.0))]
    assert away[0] > 0.2
    assert away[1] < 0.05


def test_a_column_that_no_row_has_shown_stays_out_of_it():
    H = np.zeros((10, 3, 3))
    H[:, :2, :2] = np.eye(2)
    sums = batches(np.ones((10, 3)), H, np.ones(3))
    found = near_batches(sums, 0.0, 1.0)
    assert np.array_equal(found.H, H)
    assert not flat(sums).any()


def test_the_first_fifth_of_the_rows_is_left_out():
    sums = batches(np.arange(100.0)[:, None], np.ones((100, 1, 1)), np.zeros(1))
    late = late_batches(sums, began=10 * M, rows=110 * M)
    assert len(late.n) == 100 - (BURN_IN * 110 - 10) + 1
    assert late.T[0, 0] / M == BURN_IN * 110 - 10 - 1
    assert len(late_batches(sums, began=0, rows=10**9).n) == 1


def test_a_column_without_curvature_at_the_end_is_doubted():
    H = np.tile(np.eye(3), (40, 1, 1))
    H[20:, 1, 1] = 0.9 * FADED
    H[20:, 2, 2] = 1.1 * FADED
    found = flat(batches(np.zeros((40, 3)), H, np.zeros(3)))
    assert found.tolist() == [False, True, False]
    result = hw.Auto(problem("iid-linear", dim=3), seed=1).run(20_000).result()
    assert with_doubt(result, "not-settled", found).coefficient_status == ("ok", "not-settled", "ok")


def few_large_batches():
    """Sums of 60 batches: the second coefficient shows in 24 of them, and mostly in four."""
    H = np.tile(np.eye(2), (60, 1, 1))
    H[:, 1, 1] = 0.0
    H[::5, 1, 1], H[1::5, 1, 1] = 1.0, 1.0
    H[[0, 20, 40, 50], 1, 1] = 10.0
    return batches(np.zeros((60, 2)), H, np.ones(2))


def jackknifed(sums):
    rng = np.random.default_rng(9)
    residuals = np.sqrt(np.diagonal(sums.H, axis1=1, axis2=2)) * rng.standard_normal(sums.b.shape)
    return Jackknifed.of(Equation.of(sums), residuals - residuals.mean(axis=0), independent=True)


def few(sums, errors, freedom):
    return (unweighted_degrees(sums, errors, freedom) < rare_below(errors.batches)).tolist()


def test_weights_add_no_degrees_of_freedom_to_a_coefficient_that_rests_on_few_batches():
    sums = few_large_batches()
    weights = np.ones(60)
    weights[[0, 20, 40, 50]] = 0.1  # what a root that is off makes of the batches that say so
    weighted = sums._replace(H=weights[:, None, None] * sums.H, b=weights[:, None] * sums.b)
    plain, spread = jackknifed(sums), jackknifed(weighted)
    assert plain.df[1] < 8.0 < spread.df[1]
    assert few(sums, spread.errors, np.inf) == [False, True]
    assert few(weighted, spread.errors, np.inf) == [False, False]  # negative control
    assert few(weighted, spread.errors, 10.0) == [False, True]  # a response leaves ten to each
    result = hw.Auto(problem("iid-linear", dim=2), seed=1).run(20_000).result()
    once = with_doubt(result, "rare", np.array([False, True]))
    assert with_doubt(once, "rare", np.array([False, True])).diagnostics == once.diagnostics  # said once


def test_a_column_that_no_row_has_shown_does_not_rest_on_few_batches():
    sums = few_large_batches()
    hidden = np.zeros((60, 3, 3))
    hidden[:, :2, :2] = sums.H
    wide = batches(np.zeros((60, 3)), hidden, np.ones(3))
    assert few(wide, jackknifed(sums).errors, np.inf) == [False, True, False]


def test_under_an_exponential_a_coefficient_has_the_fewer_degrees_of_freedom_of_both(monkeypatch):
    """The event of the stand-in table; what it is without them is the negative control."""
    learner = hw.Auto(problem("table-poisson", epsilon=0.5), seed=3).run(20_000)
    engine, result = learner._steered, learner.result()
    assert engine.curved
    own = unweighted_degrees(late_batches(engine.store.closed(), engine.began, 20_000), result.errors, result.most_df)
    assert (result.df <= np.maximum(own, 2.0) * (1.0 + 1e-12)).all()
    monkeypatch.setattr(reading, "unweighted_degrees", lambda *_: np.full(DIM, np.inf))
    weighted = learner.result()
    assert (result.df < 0.95 * weighted.df).any()
    np.testing.assert_array_equal(result.df, np.clip(own, 2.0, weighted.df))
    assert result.coefficient_status == weighted.coefficient_status


@pytest.mark.parametrize("loss", ["linear", "logistic", "poisson"])
def test_where_curvature_is_lost_standard_errors_allow_for_a_share_that_was_measured_low(loss, monkeypatch):
    learner = hw.Auto(problem(f"table-{loss}", epsilon=0.5), seed=3).run(20_000)
    allowed, low = learner.result(), learner._steered.response().proportion.low
    larger = learner._steered.response().proportion.shortfall
    assert larger > 1.02
    monkeypatch.setattr(reading, "saturates", lambda probed: False)
    plain = learner.result()
    if loss != "logistic":
        np.testing.assert_array_equal(allowed.covariance, plain.covariance)
        return
    added = allowed.covariance / larger**2 - plain.covariance  # n low^2 slopes slopes', of the root along k
    slopes = np.sqrt(np.diag(added) / plain.n) / low
    np.testing.assert_allclose(np.abs(added), plain.n * low**2 * np.outer(slopes, slopes), rtol=1e-6)
    assert slopes.max() * low > 0.1 * plain.bse.max()


@pytest.mark.parametrize("hessian", [True, False])
def test_told_the_same_rows_it_ends_with_the_same_interval_as_the_compiled_loop(hessian):
    world, X = problem("table-logistic"), stand_in_table()
    y = np.random.default_rng(5).random(len(X)) < sigmoid(X @ world.theta_star)
    rows = np.column_stack([X, y])
    compiled = hw.Auto(world, feedback="detect", gradient_only=not hessian, seed=1).consume(rows)
    told = hw.Auto(dim=DIM, chunk_rows=M, seed=1)
    for at in range(0, len(X) - len(X) % M, M):
        x, request = X[at : at + M], told.ask()
        gradients = [x.T @ (sigmoid(x @ point) - y[at : at + M]) for point in request.points]
        p = sigmoid(x @ request.points[1])
        told.tell(request, gradients, (x.T * (p * (1.0 - p))) @ x if hessian else None)
    assert told._steered.curved
    first, second = compiled.result(), told.result()
    np.testing.assert_allclose(second.params, first.params, rtol=1e-10 if hessian else 1e-6)
    np.testing.assert_allclose(second.bse, first.bse, rtol=1e-10 if hessian else 1e-6)
    assert second.diagnostics.flags == first.diagnostics.flags


def test_a_column_that_is_left_collinear_with_a_constant_is_doubted_with_it():
    """An event in a few rows, standardised: where these rows say nothing any longer, it is a constant but for them."""
    rng = np.random.default_rng(7)
    event = (rng.random((40, M)) < 0.02) * 7.0 - 0.14
    X = np.stack([np.ones((40, M)), rng.standard_normal((40, M)), event], axis=2)
    seen, saturated = (
        batches(np.zeros((40, 3)), np.einsum("kmi,km,kmj->kij", X, w, X), np.zeros(3))
        for w in (np.ones((40, M)), np.where(event > 0.0, 1e-5, 1.0))
    )
    assert flat(seen).tolist() == [False, False, False]
    assert flat(saturated).tolist() == [True, False, True]
