"""`auto` on rows that cannot respond: every row counts, least squares exactly, states, gradients that jump."""

import numpy as np
import pytest
import scipy.optimize
import scipy.special
import statsmodels.api as sm
from numba import njit

from halfwidth import Auto, Problem
from halfwidth.equation import Equation
from halfwidth.equation.wide_errors import WideErrors
from halfwidth.errors import NotIdentified
from halfwidth.learners.auto import at_root, chunk_minimum, difference_widths, given, given_reading, given_root, stores
from halfwidth.learners.auto.field import DifferencedField, JacobianField, StaticField, field_of
from halfwidth.learners.auto.row_sample import RowSample
from halfwidth.learners.warm_start import collect_rows
from halfwidth.problems import problem
from halfwidth.problems.row_losses import LOGISTIC

MODES = pytest.mark.parametrize("gradient_only", [False, True], ids=["auto", "auto-gradient"])


def rows_of(world, n, seed=0):
    rows = np.empty((n, world.row_size))
    collect_rows(world, np.random.default_rng(seed), np.zeros(world.dim), np.array(world.state_0), rows)
    return rows


@MODES
@pytest.mark.parametrize("n", [300, 1_024, 5_001])
def test_a_linear_model_is_least_squares_over_every_row(gradient_only, n):
    world = problem("iid-linear", dim=3)
    rows = rows_of(world, n)
    result = Auto(world, gradient_only=gradient_only).consume(rows).result()
    assert result.n == n
    fit = np.linalg.lstsq(rows[:, :3], rows[:, 3], rcond=None)[0]
    np.testing.assert_allclose(result.params, fit, rtol=1e-8, atol=1e-9)
    assert not result.feedback.detected
    assert result.truncations == ()


@MODES
def test_a_curved_model_from_afar_ends_at_the_offline_fit(gradient_only):
    """Rows sorted by a feature, theta_0 three away: early chunks are expanded far from the fit."""
    world = problem("ar-logistic", dim=3)
    rows = rows_of(world, 9_000)
    rows = rows[np.argsort(rows[:, 0])]
    result = Auto(world, gradient_only=gradient_only, theta_0=[-3.0, 3.0, -3.0]).consume(rows).result()
    assert np.abs((result.params - offline(world, rows)) / result.bse).max() < 0.5


def offline(world, rows):
    """Newton steps over all rows at once, from the problem's own functions."""
    theta = np.zeros(world.dim)
    for _ in range(25):
        total, H, grad, u = np.zeros(world.dim), np.zeros((world.dim,) * 2), np.empty(world.dim), np.empty(world.dim)
        for row in rows:
            world.gradient(theta, row, world.params, grad)
            w, c = world.hessian(theta, row, world.params, u)
            total += grad
            H += w * np.outer(u, u) + c * np.eye(world.dim)
        theta = theta - np.linalg.solve(H, total)
    return theta


@pytest.mark.parametrize("name", ["iid-linear", "ar-logistic", "rotating-game"])
def test_sums_of_pieces_are_those_of_their_rows(name):
    """Pieces of any length, longer and shorter than a block; from Hessians, or by differences from gradients."""
    world = problem(name) if name == "rotating-game" else problem(name, dim=5)
    rows, theta = rows_of(world, 700), np.linspace(-0.5, 0.7, world.dim)
    edges = np.array([0, 1, 3, 133, 700])
    row_g, row_H, u = np.empty((700, world.dim)), np.zeros((700, world.dim, world.dim)), np.empty(world.dim)
    for i, row in enumerate(rows):
        world.gradient(theta, row, world.params, row_g[i])
        if world.hessian is not None:
            w, c = world.hessian(theta, row, world.params, u)
            row_H[i] = w * np.outer(u, u) + c * np.eye(world.dim)
    fields = [DifferencedField(world, np.full(world.dim, 1e-5))]
    if world.hessian is not None:
        fields.append(StaticField(world))
    for field in fields:
        g, H = field.pieces(theta, rows, edges)
        np.testing.assert_allclose(g, np.add.reduceat(row_g, edges[:-1]), rtol=1e-12, atol=1e-12)
        if world.hessian is not None:
            exact = isinstance(field, StaticField)
            sums, tolerance = np.add.reduceat(row_H, edges[:-1]), 1e-12 if exact else 1e-3
            np.testing.assert_allclose(H, sums, rtol=tolerance, atol=tolerance)
            weights = np.linspace(0.5, 2.0, 700)
            diagonal = np.diag(np.tensordot(weights, row_H, axes=1))
            np.testing.assert_allclose(field.curvatures(theta, rows, weights), diagonal, rtol=tolerance)
            weighted = np.add.reduceat(weights[:, None, None] * row_H, edges[:-1])
            found = field.weighted(theta, rows, weights, edges)
            np.testing.assert_allclose(found, weighted, rtol=tolerance, atol=tolerance)
    total, squares = fields[0].moments(theta, rows)
    np.testing.assert_allclose(total, row_g.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(squares, np.square(row_g).sum(axis=0), rtol=1e-12)


def test_weighted_sums_of_a_jacobian_are_those_of_its_rows():
    world = problem("garnet-td", dim=3)
    rows, theta, edges = rows_of(world, 700), np.linspace(-0.5, 0.7, 3), np.array([0, 1, 3, 133, 700])
    field, weights = field_of(world, np.ones(3), differences=False), np.linspace(0.5, 2.0, 700)
    assert isinstance(field, JacobianField)
    each = field.pieces(theta, rows, np.arange(701))[1]
    expected = np.add.reduceat(weights[:, None, None] * each, edges[:-1])
    np.testing.assert_allclose(field.weighted(theta, rows, weights, edges), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(field.curvatures(theta, rows, weights), np.diag(expected.sum(axis=0)), rtol=1e-12)


def wavy_gradient(theta, row, params, grad):
    grad[:] = np.sin(row[:2] @ theta) * row[:2]


def wavy_hessian(theta, row, params, direction):
    direction[:] = row[:2]
    return np.cos(row[:2] @ theta), 0.25


@pytest.mark.parametrize("compiled", [False, True])
def test_rows_that_curve_downwards_are_taken_away(compiled):
    functions = (njit(wavy_gradient), njit(wavy_hessian)) if compiled else (wavy_gradient, wavy_hessian)
    world = Problem(2, functions[0], hessian=functions[1], row_size=2)
    rows, theta = 3.0 * np.random.default_rng(0).standard_normal((300, 2)), np.array([0.5, -1.0])
    weights = np.cos(rows @ theta)
    assert (weights < 0.0).sum() > 100
    _, H = StaticField(world).pieces(theta, rows, np.array([0, 3, 300]))
    for some, found in zip((slice(0, 3), slice(3, 300)), H, strict=True):
        expected = (rows[some].T * weights[some]) @ rows[some] + 0.25 * len(weights[some]) * np.eye(2)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


@njit
def own_gradient(theta, row, params, grad):
    grad[:] = (np.dot(row[:-1], theta) - row[-1]) * row[:-1]


@njit
def own_hessian(theta, row, params, direction):
    direction[:] = row[:-1]
    return 1.0, 0.0


def test_a_loss_known_to_be_quadratic_ends_where_any_loss_does():
    """Nothing is measured of what expansions leave out: the same as where it is measured, and found to be nothing."""
    known = problem("iid-linear", dim=4)
    rows = rows_of(known, 9_000)
    rows[:, 0] += 5.0
    unknown = Problem(4, own_gradient, hessian=own_hessian, row_size=5)
    (one, fast), (other, slow) = (
        (learner, learner.result()) for learner in (Auto(w).consume(rows) for w in (known, unknown))
    )
    assert (one._free.quadratic, one._free.sample.count) == (True, 0)
    assert (other._free.quadratic, other._free.sample.count > 1_024) == (False, True)
    np.testing.assert_allclose(fast.params, slow.params, rtol=1e-10)
    np.testing.assert_allclose(fast.covariance, slow.covariance, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(fast.df, slow.df, rtol=1e-10)
    assert fast.diagnostics.flags == slow.diagnostics.flags == ()


def test_a_rare_column_of_a_quadratic_loss_is_no_separation():
    """The sample of rows may miss all that show it."""
    world = problem("iid-linear", dim=3)
    rows = rows_of(world, 30_000)
    rows[:, 2] = 0.0
    rows[[5_003, 14_001, 28_000], 2] = 1.0
    assert Auto(world).consume(rows).result().coefficient_status == ("ok", "ok", "rare")


def test_chunks_grow_and_do_not_depend_on_how_rows_come():
    world = problem("iid-linear", dim=2)
    rows = rows_of(world, 70_000)
    whole, parts = Auto(world).consume(rows), Auto(world)
    for at in range(0, 70_000, 17_501):
        parts.consume(rows[at : at + 17_501])
    assert whole._free.chunk_rows == 16_384
    assert 512 <= whole._free.store.batches <= 1_024
    np.testing.assert_array_equal(parts.result().covariance, whole.result().covariance)
    fit = np.linalg.lstsq(rows[:, :2], rows[:, 2], rcond=None)[0]
    np.testing.assert_allclose(whole.result().params, fit, rtol=1e-8)


def test_many_columns_take_the_other_jackknife(monkeypatch):
    """Matrices in single precision, their sum in double: least squares as before, and nearly the same errors."""
    world = problem("ar-linear", dim=3)
    rows = rows_of(world, 9_000)
    narrow = Auto(world).consume(rows).result()
    monkeypatch.setattr(stores, "WIDE", 2)
    monkeypatch.setattr(given_reading, "WIDE", 2)
    learner = Auto(world).consume(rows[:5_000])
    wide = Auto.from_state(learner.to_state(), world).consume(rows[5_000:]).result()
    assert isinstance(wide.errors, WideErrors)
    fit = np.linalg.lstsq(rows[:, :3], rows[:, 3], rcond=None)[0]
    np.testing.assert_allclose(wide.params, fit, rtol=1e-8)
    np.testing.assert_allclose(wide.bse, narrow.bse, rtol=0.2)
    assert (wide.df > 20.0).all()
    assert wide.coefficient_status == ("ok", "ok", "ok")
    learner.consume(rows[5_000:])
    np.testing.assert_array_equal(learner.result().covariance, wide.covariance)


def test_a_singular_chunk_moves_nothing_and_is_refused():
    """The same row again and again: one direction is known, and coefficients that share it have no interval."""
    rows = np.tile([1.0, 2.0, 3.0], (2_000, 1))
    result = Auto(problem("iid-linear", dim=2)).consume(rows).result()
    assert np.isnan(result.bse).all()
    assert result.coefficient_status == ("unidentified", "unidentified")


def test_the_sample_keeps_early_rows_and_stands_for_all():
    sample, field = RowSample(2, 1), field_of(problem("iid-linear", dim=1), np.ones(1), differences=False)
    for at in range(0, 200_000, 1_000):
        sample.add(np.full((1_000, 2), float(at)), np.zeros(1), field)
    weights = sample._weights[: sample.count]
    assert sample.count < sample.capacity
    assert weights.sum() == pytest.approx(200_000, rel=0.01)
    np.testing.assert_array_equal(weights[: sample.first], 1.0)


def test_the_sample_keeps_rows_that_alone_know_a_coefficient():
    """A column that is zero but in 40 of 65,000 rows: the sample has half of these, and one in 15 of the others."""
    rng, n = np.random.default_rng(2), 65_000
    rows = np.column_stack([np.ones(n), rng.standard_normal(n), np.zeros(n), rng.standard_normal(n)])
    rare = rng.choice(np.arange(2_000, n), 40, replace=False)
    rows[rare, 2] = 1.0
    sample, field = RowSample(4, 3), field_of(problem("iid-linear", dim=3), np.ones(3), differences=False)
    for at in range(0, n, 1_000):
        sample.add(rows[at : at + 1_000], np.zeros(3), field)
    kept, weights = sample._rows[: sample.count], sample._weights[: sample.count]
    assert (kept[:, 2] == 1.0).sum() >= 15
    assert weights[kept[:, 2] == 1.0].sum() == pytest.approx(40, abs=15)
    assert sample.count < n / 10
    assert weights.sum() == pytest.approx(n, rel=0.03)
    assert sample.count < 0.6 * sample.capacity
    assert weights @ kept[:, 1] ** 2 == pytest.approx(n, rel=0.1)


@njit
def quantile_gradient(theta, row, params, grad):
    d = theta.shape[0]
    eta = 0.0
    for j in range(d):
        eta += theta[j] * row[j]
    for j in range(d):
        grad[j] = ((1.0 if row[d] < eta else 0.0) - params[0]) * row[j]


@pytest.mark.parametrize(
    ("quantile", "n", "status"),
    [(0.5, 1_000, "ok"), (0.9, 5_000, "jumping-gradient"), (0.99, 30_000, "jumping-gradient")],
)
def test_an_extreme_quantile_is_doubted(quantile, n, status):
    """Differences over the few rows beyond it show the density badly: 0.99 of 30,000 rows covered 0.56."""
    rng = np.random.default_rng(2)
    X = np.column_stack([np.ones(n), rng.standard_normal((n, 2))])
    world = Problem(3, quantile_gradient, row_size=4, params=[quantile])
    result = Auto(world).consume(np.column_stack([X, X.sum(axis=1) + rng.standard_normal(n)])).result()
    assert result.status == status


@pytest.mark.parametrize("quantile", [0.5, 0.9])
def test_gradients_that_jump_end_near_the_quantile(quantile):
    from scipy.special import ndtri

    rng, truth = np.random.default_rng(1), np.array([0.5, 1.0, -1.0])
    X = np.column_stack([np.ones(30_000), rng.standard_normal((30_000, 2))])
    y = X @ truth + rng.standard_normal(30_000) - ndtri(quantile)
    world = Problem(3, quantile_gradient, row_size=4, params=[quantile])
    result = Auto(world).consume(np.column_stack([X, y])).result()
    density = np.exp(-0.5 * ndtri(quantile) ** 2) / np.sqrt(2.0 * np.pi)
    oracle = np.sqrt(quantile * (1.0 - quantile) / 30_000) / density
    np.testing.assert_allclose(result.bse, oracle, rtol=0.15)
    assert np.abs((result.params - truth) / result.bse).max() < 3.5
    assert result.status == "ok"


def rare_events(truth, n, seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(n), rng.standard_normal(n)])
    return X, (rng.random(n) < scipy.special.expit(X @ truth)).astype(float)


@MODES
@pytest.mark.parametrize("truth", [(-5.0, 2.0), (-3.0, 2.0), (0.0, 4.0)])
@pytest.mark.parametrize("n", [1_000, 5_000, 20_000])
def test_errors_are_those_at_the_root_however_far_it_is_from_the_start(truth, n, gradient_only):
    X, y = rare_events(truth, n, 1)
    result = Auto(problem("ar-logistic", dim=2), gradient_only=gradient_only).consume(np.column_stack([X, y])).result()
    offline = sm.Logit(y, X).fit(disp=0)
    np.testing.assert_allclose(result.bse / offline.bse, 1.0, atol=0.15)
    assert np.abs((result.params - offline.params) / offline.bse).max() < 0.15
    assert result.coefficient_status == ("ok", "ok")


def test_errors_of_batches_where_they_were_expanded_are_far_too_small(monkeypatch):
    """The negative control; the first chunk is expanded with the whole prior."""
    monkeypatch.setattr(chunk_minimum, "_PULLS", np.inf)
    monkeypatch.setattr(
        given, "at_root", lambda equation, away, *_: Equation(equation.A, equation.residuals(away), equation.rows)
    )
    X, y = rare_events((-5.0, 2.0), 1_000, 1)
    result = Auto(problem("ar-logistic", dim=2)).consume(np.column_stack([X, y])).result()
    assert (result.bse / sm.Logit(y, X).fit(disp=0).bse < 0.5).all()


@pytest.mark.parametrize(("start", "status"), [((0.0, 0.0), "not-settled"), ((-5.0, 2.0), "ok")])
def test_of_many_columns_errors_of_other_places_are_doubted(monkeypatch, start, status):
    monkeypatch.setattr(chunk_minimum, "_PULLS", np.inf)
    for module in (stores, given_reading, at_root, given_root):
        monkeypatch.setattr(module, "WIDE", 1)
    X, y = rare_events((-5.0, 2.0), 3_000, 1)
    result = Auto(problem("ar-logistic", dim=2), theta_0=start).consume(np.column_stack([X, y])).result()
    assert isinstance(result.errors, WideErrors)
    assert result.status == status


def test_a_few_rows_of_rare_events_are_covered():
    world, covered = problem("ar-logistic", dim=2), []
    for seed in range(200):
        X, y = rare_events((-3.0, 2.0), 1_000, seed)
        covered.append(Auto(world).consume(np.column_stack([X, y])).result().interval(np.eye(2)).covers([-3.0, 2.0]))
    assert (np.mean(covered, axis=0) > 0.95 - 2.0 * np.sqrt(0.95 * 0.05 / 200)).all()  # 0.70 and 0.74 where expanded


@MODES
def test_a_column_that_separates_is_doubted_beside_others(gradient_only):
    """The maximum is at infinity in the third coefficient; expanded where its chunk was, it had an error of 0.14."""
    X, y = rare_events((0.0, 1.0), 1_000, 0)
    told = (y == 1.0) & (np.random.default_rng(1).random(1_000) < 0.5)
    rows = np.column_stack([X, told, y])
    result = Auto(problem("ar-logistic", dim=3), gradient_only=gradient_only).consume(rows).result()
    assert result.coefficient_status == ("ok", "ok", "separation")


def test_a_separated_logistic_is_doubted():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5_000, 2))
    rows = np.column_stack([X, (X[:, 0] > 0.0).astype(float)])
    world = problem("ar-logistic", dim=2)
    result = Auto(world).consume(rows).result()
    assert {"separation", "not-settled"} & {result.status, *result.coefficient_status}


def test_a_coefficient_that_flips_is_called_unstable():
    world = problem("iid-linear", dim=2)
    rows = rows_of(world, 20_000)
    rows[10_000:, 2] -= 3.0 * rows[10_000:, 0]
    result = Auto(world).consume(rows).result()
    assert result.coefficient_status == ("unstable", "ok")


def test_under_feedback_a_gradient_that_jumps_is_doubted():
    rng = np.random.default_rng(1)
    rows = np.column_stack([np.ones(8_000), rng.standard_normal((8_000, 2))])
    world = Problem(2, quantile_gradient, row_size=3, params=[0.5])
    result = Auto(world, feedback="detect").consume(rows).result()
    assert "jumping-gradient" in dict(result.diagnostics.flags)


@MODES
@pytest.mark.parametrize("seed", range(6))
def test_columns_that_rounding_cannot_tell_apart_are_never_silently_wrong(gradient_only, seed):
    """A column at 1e6 with a spread of one, beside scales of 1e-6 and 1e6: right, doubted or refused."""
    world = problem("troubled-linear", trouble="scales")
    rows = rows_of(world, 50_000, np.random.SeedSequence(0, spawn_key=(seed, 0)))
    result = Auto(world, gradient_only=gradient_only).consume(rows).result()
    trusted = np.array([result.status == status == "ok" for status in result.coefficient_status])
    away = np.abs(result.params - world.theta_star)[trusted]
    assert (away < 5.0 * result.bse[trusted]).all()


@MODES
@pytest.mark.parametrize(("shift", "n"), [(3e5, 50_000), (1e6, 50_000), (1e6, 300_000), (2e6, 50_000)])
def test_a_shifted_column_is_least_squares_on_the_centred_one(gradient_only, shift, n):
    """Relative to theta_0, the rounding of the sums moved such coefficients by up to 3 standard errors, status ok."""
    rng = np.random.default_rng(1)
    Z = rng.standard_normal((n, 3))
    y = Z @ [1.0, 0.5, -1.0] + rng.standard_normal(n)
    rows = np.column_stack([np.ones(n), Z + np.array([shift, 0.0, 0.0]), y])
    result = Auto(problem("iid-linear", dim=4), gradient_only=gradient_only).consume(rows).result()
    centred = rows[:, 1:4] - [shift, 0.0, 0.0]
    exact = np.linalg.lstsq(centred - centred.mean(axis=0), y - y.mean(), rcond=None)[0]
    assert np.abs((result.params[1:] - exact) / result.bse[1:]).max() < 0.05
    np.testing.assert_allclose(result.bse[1:] * np.sqrt(n), 1.0, rtol=0.15)
    assert result.coefficient_status == ("ok",) * 4


def test_differences_of_the_usual_width_lose_a_shifted_column(monkeypatch):
    """The negative control: a gradient that is not known to be straight is differenced too closely."""
    monkeypatch.setattr(difference_widths, "_NEARLY_STRAIGHT", -1.0)
    world = problem("troubled-linear", trouble="scales")
    result = Auto(world, gradient_only=True).consume(rows_of(world, 20_000)).result()
    assert "ok" not in {result.coefficient_status[0], result.coefficient_status[3]}


def huber_gradient(theta, row, params, grad):
    error = min(max(row[:3] @ theta - row[3], -params[0]), params[0])
    for j in range(3):
        grad[j] = error * row[j]


def huber_rows(n, outliers_from):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((n, 3))
    outliers = (np.arange(n) >= outliers_from) & (rng.random(n) < 0.1)
    return np.column_stack([X, X.sum(axis=1) + rng.standard_normal(n) + 60.0 * outliers * np.exp(X[:, 0])])


@pytest.mark.parametrize("outliers_from", [0, 12_000, 60_000])
def test_a_gradient_that_bends_late_is_seen_to(outliers_from):
    """Huber's: linear in theta until the first outlier comes, and from there on by the sample of all rows."""
    world = Problem(3, huber_gradient, row_size=4, params=[40.0])
    rows = huber_rows(30_000, outliers_from)
    learner = Auto(world).consume(rows[:10_000])
    assert learner._free.widths.straight == (outliers_from > 0)
    again = Auto.from_state(learner.to_state(), problem=world)
    for one in (learner, again):
        one.consume(rows[10_000:])
    assert learner._free.widths.straight == (outliers_from > 30_000)
    result = learner.result()
    np.testing.assert_array_equal(again.result().params, result.params)
    exact = scipy.optimize.root(lambda theta: huber_sum(theta, rows), np.ones(3)).x
    assert np.abs((result.params - exact) / result.bse).max() < 0.05
    assert result.status == "ok"


def huber_sum(theta, rows):
    return np.clip(rows[:, :3] @ theta - rows[:, 3], -40.0, 40.0) @ rows[:, :3]


@pytest.mark.parametrize("shift", [3e5, 1e6, 3e6])
def test_a_shifted_column_of_a_field_that_is_not_known_is_right_or_doubted(shift):
    """Nobody knows that it is linear: sums stay relative to theta_0, and what rounding may have done is told."""
    world, rng, n = Problem(3, own_gradient, row_size=4, hessian=own_hessian), np.random.default_rng(1), 100_000
    Z = rng.standard_normal((n, 2))
    rows = np.column_stack([np.ones(n), Z + np.array([shift, 0.0]), Z.sum(axis=1) + rng.standard_normal(n)])
    centred = rows[:, 1:3] - [shift, 0.0]
    exact = np.linalg.lstsq(centred - centred.mean(axis=0), rows[:, 3] - rows[:, 3].mean(), rcond=None)[0]
    result = Auto(world).consume(rows).result()
    off = np.abs((result.params[1:] - exact) / result.bse[1:]).max()
    assert (result.status == "not-settled") == (shift > 5e5)
    assert off < 0.1 or result.status == "not-settled"
    again = Auto(world, theta_0=result.params).consume(rows).result()
    assert np.abs((again.params[1:] - exact) / again.bse[1:]).max() < 0.05
    assert again.status == "ok"


def test_a_column_lost_in_rounding_is_refused():
    rng = np.random.default_rng(1)
    Z = rng.standard_normal((20_000, 2))
    rows = np.column_stack([np.ones(20_000), Z + np.array([1e8, 0.0]), Z.sum(axis=1) + rng.standard_normal(20_000)])
    result = Auto(problem("iid-linear", dim=3)).consume(rows).result()
    assert result.coefficient_status == ("unidentified", "unidentified", "ok")
    assert abs(result.params[2] - 1.0) < 4.0 * result.bse[2]


@MODES
@pytest.mark.parametrize("seed", [3, 4])
def test_rows_whose_rates_the_root_so_far_overstates_find_their_own_minimum(gradient_only, seed):
    """By e^10: a small share of the first decrement is still much, and gradients there no measure for differences."""
    rng = np.random.default_rng(seed)
    late = rng.standard_normal((6_000, 2)) + np.array([0.0, 6.0])
    x = np.concatenate([rng.standard_normal((2_048, 2)) * [1.0, 0.02], late])
    rows = np.column_stack([np.ones(len(x)), x, rng.poisson(np.exp(0.2 + x @ [0.3, 0.1]))]).astype(float)
    result = Auto(problem("ar-poisson", dim=3), gradient_only=gradient_only).consume(rows).result()
    assert (np.abs(result.params - [0.2, 0.3, 0.1]) < 4.0 * result.bse).all()
    assert (result.bse < 0.03).all()
    assert result.status == "ok"


def test_a_quantile_of_labels_on_dummies_is_refused():
    """No difference of gradients shows any curvature: every direction is unknown, which was a bare ValueError."""
    rng = np.random.default_rng(0)
    rows = np.column_stack([np.ones(8_000), rng.random((8_000, 2)) < 0.5, rng.random(8_000) < 0.5]).astype(float)
    result = Auto(problem("quantile-linear", dim=3)).consume(rows).result()
    assert np.isnan(result.bse).all()
    assert result.diagnostics.coefficient_flags == (("unidentified",),) * 3
    assert result.status == "unidentified"
    assert "no coefficient has an interval" in result.diagnostics.warnings[-1]
    assert len(result.with_facts(("late", "another")).diagnostics.flags) == 2


@pytest.mark.parametrize("shift", [1e7, 1e8])
@pytest.mark.parametrize("constant", [True, False])
def test_a_run_in_which_all_is_lost_in_rounding_is_ill_conditioned(shift, constant):
    """Every coefficient was refused, and the status ok."""
    rng = np.random.default_rng(1)
    Z = rng.standard_normal((20_000, 2))
    X = np.column_stack([np.ones(20_000), Z[:, 0] + shift]) if constant else Z + shift
    result = Auto(problem("iid-linear", dim=2)).consume(np.column_stack([X, Z.sum(axis=1)])).result()
    assert np.isnan(result.bse).all()
    assert [name for name, _ in result.diagnostics.flags] == ["ill-conditioned", "unidentified"]


@MODES
@pytest.mark.parametrize(
    ("scale", "noise", "named"),
    [
        (1.0, 0.0, True),
        (0.0, 1.0, True),
        (1e-160, 1.0, True),
        (1e-152, 1.0, True),
        (1.0, 1.0, False),
        (1e-100, 1.0, False),
        (1e8, 1e-6, False),
    ],
)
def test_rows_without_noise_are_an_exact_fit(gradient_only, scale, noise, named):
    """Intervals of width zero, or of rounding errors, had the status ok."""
    rng = np.random.default_rng(2)
    Z = rng.standard_normal((20_000, 2))
    y = scale * (2.0 + Z @ [1.0, -0.5] + noise * rng.standard_normal(20_000))
    rows = np.column_stack([np.ones(20_000), Z, y])
    result = Auto(problem("iid-linear", dim=3), gradient_only=gradient_only).consume(rows).result()
    assert (result.status == "exact-fit") == named, (result.status, result.bse)


def test_a_gradient_that_writes_nothing_is_refused():
    def returns(theta, row, params, grad):
        return (row[:2] @ theta - row[2]) * row[:2]

    rows = np.random.default_rng(0).standard_normal((3_000, 3))
    with pytest.raises(NotIdentified, match=r"any of 3,000 rows.*last argument"):
        Auto(Problem(2, returns, row_size=3)).consume(rows).result()


def test_equal_rows_and_a_level_without_noise_are_an_exact_fit():
    same = Auto(problem("iid-linear", dim=1)).consume(np.tile([1.0, 2.0], (8_000, 1))).result()
    assert (same.status, same.bse[0]) == ("exact-fit", 0.0)
    rng = np.random.default_rng(3)
    level = rng.random(8_000) < 0.2
    y = np.where(level, 3.0, rng.standard_normal(8_000))
    rows = np.column_stack([1.0 - level, level, y])
    assert Auto(problem("iid-linear", dim=2)).consume(rows).result().status == "exact-fit"


@pytest.mark.parametrize("at", [3, 500])
def test_a_far_row_of_several_columns_is_never_a_confident_wrong_number(at, monkeypatch):
    """Its own direction is known to 1e-8, so that a step which matters is small in every coordinate."""
    rng = np.random.default_rng(1)
    X = np.column_stack([np.ones(20_000), rng.standard_normal((20_000, 2))])
    y = (rng.random(20_000) < 1.0 / (1.0 + np.exp(-X @ [-0.5, 0.5, 1.0]))).astype(float)
    X[at, 1:], y[at] = 1e8, 1.0
    world = Problem(3, **LOGISTIC._asdict(), params=[0.0], row_size=4)
    learner = Auto(world).consume(np.column_stack([X, y]))
    assert learner.result().status == "not-settled"

    def largest(step, inverse, A):
        return float(np.max(np.abs(step) / np.sqrt(np.abs(np.diag(inverse)))))

    monkeypatch.setattr(given_root, "_size", largest)  # the negative control: ok, and 60 standard errors off
    wrong = learner.result()
    assert wrong.status == "ok"
    assert abs(wrong.params[1] - 0.5) > 20 * wrong.bse[1]


def test_curvature_that_overflows_at_the_root_is_doubted_and_no_crash(monkeypatch):
    """SciPy's own error about singular values came out of `result()`."""
    world = problem("troubled-logistic", trouble="rare-column")
    learner = Auto(world).consume(rows_of(world, 3_000))
    d = world.dim
    monkeypatch.setattr(
        RowSample, "turned", lambda *_, **__: iter([(np.zeros(1, dtype=int), np.full((1, d, d), np.inf))])
    )
    root = learner._free.root()
    assert not root.converged
    assert np.isfinite(root.centre).all()


def test_the_summary_says_what_single_coefficients_are_doubted_for():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4_000, 12)) * ([1.0, 1.0] + [0.0] * 10)
    rows = np.column_stack([X, X[:, :2] @ [1.0, 2.0] + rng.standard_normal(4_000)])
    result = Auto(problem("iid-linear", dim=12)).consume(rows).result()
    text = str(result.summary())
    assert "critical value 1.9" in text
    assert "! unidentified: theta[2], theta[3]," in text
    assert "theta[9] and 2 others: the rows do not tell it" in text
    fine = Auto(problem("iid-linear", dim=2)).consume(rows[:, [0, 1, 12]]).result()
    assert "! " not in str(fine.summary()) or fine.diagnostics.coefficient_flags  # negative control
    empty = Auto(problem("iid-linear", dim=2)).consume(np.column_stack([np.zeros((600, 2)), np.ones(600)]))
    with pytest.raises(NotIdentified, match="not all zero"):
        empty.result()
