"""Chunks that are unlike each other: when the engine is careful, that it covers, resumes, and is told the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import halfwidth as hw
from halfwidth.equation import Equation
from halfwidth.errors import BadState
from halfwidth.learners.auto import steered
from halfwidth.learners.auto.careful_result import _with_far, careful_result
from halfwidth.learners.auto.proportional import Proportion
from halfwidth.learners.auto.reading import batch_means_result
from halfwidth.problems import problem


def coefficients(world, result):
    """Of each coefficient: whether it is ok, and whether it is covered."""
    flags = result.diagnostics.coefficient_flags or ((),) * world.dim
    ok = np.array([result.status == "ok" and not own for own in flags])
    covered = [
        good and result.interval(one).lower <= truth <= result.interval(one).upper
        for good, one, truth in zip(ok, np.eye(world.dim), world.theta_star, strict=True)
    ]
    return ok, np.array(covered)


@pytest.mark.parametrize(("loss", "epsilon"), [("linear", 0.5), ("logistic", 0.5), ("logistic", 0.0), ("poisson", 0.5)])
def test_features_in_spells_are_covered(loss, epsilon):
    """The stand-in table: a trend, a season, an autoregression and a rare event; responses follow forecasts."""
    world = problem(f"table-{loss}", epsilon=epsilon)
    ok = covered = detected = 0
    for seed in range(10):
        result = hw.Auto(world, seed=seed).run(50_000).result()
        found = coefficients(world, result)
        ok, covered, detected = ok + found[0].sum(), covered + found[1].sum(), detected + result.feedback.detected
    assert ok >= 0.6 * 10 * world.dim
    assert covered / ok >= 0.95 - 3.3 * np.sqrt(0.95 * 0.05 / ok)
    assert detected >= 9 if epsilon else detected <= 1
    assert any("of each chunk's own Hessian" in note for note in result.diagnostics.notes)
    np.testing.assert_allclose(result._trail().params[-1], result.params)
    assert len(repr(result)) < 5_000


def test_where_chunks_are_alike_it_is_not_careful():
    for world in (problem("performative-mean", dim=3), problem("ar-linear", dim=20), problem("seed-logistic", dim=20)):
        learner = hw.Auto(world, seed=1).run(20_000)
        assert not learner._steered.careful


def test_the_first_steps_of_a_wide_problem_say_nothing_about_chunks(monkeypatch):
    """With fewer rows than two or three for a coefficient the mean Hessian is nearly singular: any step overshoots."""
    wide = problem("iid-linear", dim=256)
    assert not hw.Auto(wide, seed=2).run(20 * 128)._steered.careful
    monkeypatch.setattr(steered, "KNOWN_ROWS", 0.0)
    assert hw.Auto(wide, seed=2).run(20 * 128)._steered.careful


def test_it_begins_again_where_steps_are_clipped_and_stays_careful():
    learner = hw.Auto(problem("table-linear", epsilon=0.5), seed=3).run(4_000)
    engine = learner._steered
    assert engine.careful
    assert engine.clipped == 0
    assert not engine.plan(1).steps.any()


def test_resumed_in_the_middle_of_a_session_it_ends_with_the_same_bits():
    world = problem("table-logistic", epsilon=0.5)
    whole = hw.Auto(world, seed=5).run(4_096)
    while whole._steered.dither.root is None and whole.n_seen < 12_000:
        whole.run(64)
    assert whole._steered.careful
    assert whole._steered.dither.root is not None
    again = hw.Auto.from_state(whole.to_state(), problem=world)
    for learner in (whole, again):
        learner.run(18_000)
    assert np.array_equal(whole.result().params, again.result().params)
    np.testing.assert_array_equal(whole.result().covariance, again.result().covariance)


@pytest.mark.parametrize(
    "damage",
    [
        lambda engine: engine["shares"].update(before=np.array([0.5, -1.0, 0.0, 0.0, 0.0])),
        lambda engine: engine["shares"]["dithered"].__setitem__((0, 2), -1.0),
        lambda engine: engine.update(settled=False),
    ],
)
def test_a_state_that_cannot_be_is_refused(damage):
    world = problem("table-linear", epsilon=0.5)
    state = hw.Auto(world, seed=3).run(4_000).to_state()
    damage(state["parts"]["engine"])
    with pytest.raises(BadState, match="shares with variances of at least 0"):
        hw.Auto.from_state(state, problem=world)


def test_it_decides_the_same_however_it_is_cut_into_calls():
    """Another session, refresh or chunk would show in the third digit; compiled code may round the last one apart."""
    world = problem("table-linear", epsilon=0.5)
    whole, cut = hw.Auto(world, seed=5).run(40_000), hw.Auto(world, seed=5)
    for rows in (1_100, 3_333, 20_000, 9_567, 64, 5_936):
        cut.run(rows)
    for name in ("k", "chunks", "began", "next_refresh", "next_feedback", "batch_rows"):
        assert getattr(whole._steered, name) == getattr(cut._steered, name)
    assert (whole._steered.shares.began, whole._steered.shares.chunks) == (
        cut._steered.shares.began,
        cut._steered.shares.chunks,
    )
    np.testing.assert_allclose(cut.result().params, whole.result().params, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(cut.result().covariance, whole.result().covariance, rtol=1e-9, atol=1e-12)


def test_the_slope_of_a_vague_share_is_bounded():
    for share, variance in ((0.5, 1.0), (0.0, 0.25**2), (-2.0, 100.0)):
        assert Proportion(share, variance, 0.0, 0.0).steepening == pytest.approx(2.0)
    assert Proportion(0.5, 0.0, 0.0, 0.0).steepening == 1.0
    k, s = 0.3, 0.1
    rise = 1.0 / (1.0 - k - 2.0 * s) - 1.0 / (1.0 - k)
    assert Proportion(k, s * s, 0.0, 0.0).steepening == pytest.approx(rise / (2.0 * s) * (1.0 - k) ** 2)


def test_a_share_that_was_measured_low_is_taken_as_larger_by_a_tenth_or_by_its_error():
    known = ((0.5, 0.2, 0.05), (0.5, 0.03, 0.03), (-0.5, 0.1, 0.0), (0.0, 0.1, 0.0), (0.9, 0.2, 0.05))
    for share, error, above in known:
        expected = (1.0 - share) / (1.0 - share - above)
        assert Proportion(share, error**2, 0.0, 0.0).shortfall == pytest.approx(expected)


@pytest.mark.parametrize("loss", ["linear", "logistic"])
def test_the_error_of_the_share_is_that_of_moving_it(loss):
    engine = hw.Auto(problem(f"table-{loss}", epsilon=0.5), seed=3).run(30_000)._steered
    response = engine.response()
    sums, k, step = engine.store.closed(), response.share, 1e-4

    def root(share):
        return Equation.of(sums, share=share).solve()[0]

    slope = (root(k + step) - root(k - step)) / (2.0 * step)
    equation = Equation.of(sums, share=k)
    plain = batch_means_result(equation, sums, engine.steering.origin, response, "auto", (), engine.m)
    known = replace(response, proportion=replace(response.proportion, variance=0.0))
    with_error, without = (careful_result(equation, sums, None, plain, one) for one in (response, known))
    added = with_error.covariance - without.covariance
    left, error = 1.0 - k, np.sqrt(response.proportion.variance)
    steeper = left / (left - 2.0 * error)  # 1 / (1 - k), from k to two standard errors above it
    expected = plain.n * (steeper * error) ** 2 * np.outer(slope, slope)
    given = ~np.isnan(added)  # the rare event has no interval
    assert given.sum() >= 25
    np.testing.assert_allclose(added[given], expected[given], rtol=1e-4, atol=1e-6 * np.abs(expected).max())


def test_the_jackknife_has_more_batches_than_there_are_batch_means():
    """Where dependence outlasts a batch, and one batch knows much about the rare event, they are merged."""
    learner = hw.Auto(problem("table-linear", epsilon=0.5), seed=3).run(30_000)
    errors, sums = learner.result().errors, learner._steered.store.closed()
    assert len(sums.n) > 100
    assert errors.batches == len(sums.n) // errors.merged
    notes = learner.result().diagnostics.notes
    assert any(
        note.startswith(f"batches: {errors.batches} of {64 * errors.merged:,} rows, covariances over") for note in notes
    )


def test_rows_that_stay_alike_for_a_thousand_rows_are_doubted():
    """Batch means of 64 passed as independent here, and such intervals covered 0.91."""
    world = problem("ar-linear", dim=3, phi=0.999, psi=0.999)
    learner = hw.Auto(world, seed=3).run(50_000)
    assert learner._steered.careful
    assert "long-dependence" in dict(learner.result().diagnostics.flags)


def test_columns_of_other_sizes_are_no_excursions():
    """Spells whose rows are ten times as large, and no response: nothing is forgotten."""
    rng = np.random.default_rng(0)
    size = np.repeat(np.exp(rng.standard_normal(100)), 400)
    X = (np.repeat(rng.standard_normal((100, 3)), 400, axis=0) + 0.1 * rng.standard_normal((40_000, 3))) * size[:, None]
    y = X.sum(axis=1) + rng.standard_normal(40_000)
    learner, at = hw.Auto(dim=3, chunk_rows=64), 0
    while at + 64 <= len(X):
        request = learner.ask()
        x, t = X[at : at + 64], y[at : at + 64]
        learner.tell(request, np.array([(x @ point - t) @ x for point in request.points]), x.T @ x)
        at += 64
    assert learner._steered.careful
    result = learner.result()
    assert result.truncations == ()
    assert np.abs((result.params - 1.0) / result.bse).max() < 5.0


def test_far_from_the_root_a_coefficient_rests_on_the_kind_of_response():
    plain = hw.Auto(problem("table-linear", epsilon=0.5), seed=3).run(30_000).result()
    se, none = plain.bse, np.zeros((6, 6))
    slopes = np.where(np.arange(len(se)) == 1, 14.5 * se, 13.5 * se)
    doubted = _with_far(plain, slopes, none, 0.5)
    assert "not-settled" in doubted.diagnostics.coefficient_flags[1]
    assert not any("not-settled" in flags for flags in doubted.diagnostics.coefficient_flags[2:5])
    by_the_share = np.diag(0.5 * plain.n * se**2)  # half of the variance is that of the share: less is left without it
    flags = _with_far(plain, slopes, by_the_share, 0.5).diagnostics.coefficient_flags
    assert all("not-settled" in own for own in flags[1:5])
    assert all("not-settled" in own for own in _with_far(plain, slopes, none, 0.0).diagnostics.coefficient_flags[1:5])


def test_a_share_that_is_not_sure_is_allowed_for():
    """Features and noise that stay correlated over 100 rows: dithers end before k is sure, and intervals are wider."""
    world, ok, covered, shares = problem("ar-linear", dim=3, phi=0.99, psi=0.99), 0, 0, []
    for seed in range(30):
        learner = hw.Auto(world, seed=seed).run(50_000)
        shares.append(learner._steered.response().proportion)
        result = learner.result()
        found = coefficients(world, result)
        ok, covered = ok + found[0].sum(), covered + found[1].sum()
        sure = replace(shares[-1], variance=0.0)
        assert sure.vague is False
    assert np.mean([share.unsure for share in shares]) > 0.5
    assert not any(share.vague for share in shares)
    assert ok >= 0.9 * 30 * 3
    assert covered / ok >= 0.95 - 3.3 * np.sqrt(0.95 * 0.05 / ok)
    assert replace(shares[0], share=0.8).vague


def test_gradients_alone_show_the_same():
    world = problem("table-logistic", epsilon=0.5)
    result = hw.Auto(world, seed=2, gradient_only=True).run(50_000).result()
    ok, covered = coefficients(world, result)
    assert ok.sum() >= 3
    assert covered.sum() >= ok.sum() - 1


def test_standard_errors_are_as_uncertain_as_one_less_the_share():
    """Simulated: 1 / (1 - k)^2 with k normal, its mean, and the degrees of freedom that its variance stands for."""
    engine = hw.Auto(problem("table-linear", epsilon=0.5), seed=3).run(30_000)._steered
    response, sums = engine.response(), engine.store.closed()
    k, error = response.share, np.sqrt(response.proportion.variance)
    drawn = (1.0 - np.random.default_rng(1).normal(k, 0.2 * error, 200_000)) ** -2 * (1.0 - k) ** 2
    freedom = 25.0 * response.freedom
    assert drawn.mean() - 1.0 == pytest.approx(1.5 / freedom, rel=0.1)
    assert 2.0 / drawn.var() == pytest.approx(freedom, rel=0.1)

    equation = Equation.of(sums, share=k)
    plain = batch_means_result(equation, sums, engine.steering.origin, response, "auto", (), engine.m)
    nothing_added = replace(response, proportion=replace(response.proportion, variance=0.0))
    known = replace(nothing_added, freedom=np.inf)
    found, before = (careful_result(equation, sums, None, plain, one) for one in (nothing_added, known))
    given = before.df >= 2.0
    np.testing.assert_allclose(1.0 / found.df[given], 1.0 / before.df[given] + 1.0 / response.freedom, rtol=1e-12)
    np.testing.assert_allclose(found.bse[given], before.bse[given] * np.sqrt(1.0 + 1.5 / response.freedom), rtol=1e-12)
    assert np.array_equal(np.isnan(found.bse), np.isnan(before.bse))


def test_a_vague_share_refuses_no_coefficient():
    engine = hw.Auto(problem("table-linear", epsilon=0.5), seed=3).run(30_000)._steered
    response, sums = engine.response(), engine.store.closed()
    equation = Equation.of(sums, share=response.share)
    plain = batch_means_result(equation, sums, engine.steering.origin, response, "auto", (), engine.m)
    found, vague = (
        careful_result(equation, sums, None, plain, one) for one in (response, replace(response, freedom=0.5))
    )
    given = found.df >= 2.0
    assert np.all(vague.df[given] == 2.0)
    assert np.all(vague.conf_int()[given] @ [-1.0, 1.0] > found.conf_int()[given] @ [-1.0, 1.0])
