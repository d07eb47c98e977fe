"""`auto` and `auto-gradient`: held to a slow twin, exact where exactness is promised, and honest about themselves."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

import auto_twin
from halfwidth import Auto, FixedBatchMeans, OverlappingBatchMeans, Problem
from halfwidth.equation import Sums
from halfwidth.errors import Diverged, InputError, NotEnoughData, NotIdentified
from halfwidth.inference import Diagnostics
from halfwidth.inference.batch_result import BatchesResult, in_pairs
from halfwidth.inference.student_law import StudentLaw
from halfwidth.learners.auto import status
from halfwidth.learners.auto.dither import Dither
from halfwidth.learners.auto.facts import Facts
from halfwidth.learners.auto.feedback import Response, regress
from halfwidth.learners.auto.instrument import Instrument
from halfwidth.learners.auto.moments import FeedbackNotes, Moments
from halfwidth.learners.warm_start import collect_rows
from halfwidth.methods import Setting, method
from halfwidth.problems import problem

MODES = pytest.mark.parametrize("gradient_only", [False, True], ids=["auto", "auto-gradient"])
LINEAR = problem("iid-linear", dim=3)


def rows_of(world, n, seed=0, theta=None):
    rows = np.empty((n, world.row_size))
    theta = np.zeros(world.dim) if theta is None else theta
    collect_rows(world, np.random.default_rng(seed), theta, np.array(world.state_0), rows)
    return rows


def assert_identical(one, other):
    first, second = one.result(), other.result()
    assert one.n_seen == other.n_seen
    np.testing.assert_array_equal(one.theta, other.theta)
    np.testing.assert_array_equal(first.params, second.params)
    np.testing.assert_array_equal(first.covariance, second.covariance)
    assert first.diagnostics == second.diagnostics


@MODES
@pytest.mark.parametrize(
    ("name", "settings", "n"),
    [
        ("seed-linear", {"dim": 2}, 8_000),
        ("seed-logistic", {"dim": 2}, 9_100),
        ("ar-logistic", {"dim": 3}, 8_000),
        ("swap-game", {"rho": 0.9}, 12_000),
        ("swap-game", {"rho": 0.8}, 30_000),
    ],
)
def test_auto_is_its_definition(name, settings, n, gradient_only):
    world = problem(name, **settings)
    rng, state = np.random.default_rng(4), np.array(world.state_0)

    def draw(theta, count):
        rows = np.empty((count, world.row_size))
        collect_rows(world, rng, theta, state, rows)
        return rows

    learner = Auto(world, gradient_only=gradient_only, seed=4).run(n)
    dither = Dither(world.dim, learner._key)
    twin = (auto_twin.GradientTwin if gradient_only else auto_twin.Twin)(
        world, draw, n, lambda chunk: dither.signs(chunk // 128)[chunk % 128]
    )
    result = learner.result()
    K = len(twin.influences)
    # The regression's ridge of 1e-9, which the twin has not, times the gain.
    np.testing.assert_allclose(learner.theta, twin.theta, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(result.params, twin.params, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(result.influences, twin.influences, rtol=1e-6, atol=1e-9)
    expected = result.n * K / (K - 1) * twin.influences.T @ twin.influences * twin.inflation
    np.testing.assert_allclose(result.covariance, expected, rtol=1e-6, atol=1e-9)
    assert result.law.nu == pytest.approx(1 / (1 / (K - 1) + 4 / twin.renewals))
    assert result.n == 64 * len(twin.chunks)
    assert any("respond to theta" in note for note in result.diagnostics.notes) == bool(twin.J.any())
    assert (name == "swap-game") <= bool(twin.J.any())
    assert learner._steered.settled == twin.settled == (n == 30_000)


@MODES
@pytest.mark.parametrize("name", ["seed-logistic", "performative-mean"])
@settings(max_examples=6)
@given(cuts=st.lists(st.integers(0, 6_500), max_size=6))
def test_pieces_of_any_size_give_the_same_bits(name, gradient_only, cuts):
    world = problem(name, dim=2)
    whole = Auto(world, gradient_only=gradient_only, seed=1).run(6_500)
    pieces = Auto(world, gradient_only=gradient_only, seed=1)
    for size in np.diff([0, *sorted(cuts), 6_500]):
        pieces.run(int(size))
        if pieces.n_seen > 3_100:
            pieces.result()
    assert_identical(whole, pieces)


@MODES
def test_consuming_rows_is_running_on_them(gradient_only):
    rows = rows_of(LINEAR, 5_000, seed=3)
    drawn = Auto(LINEAR, gradient_only=gradient_only, seed=3).run(5_000)
    consumed = (
        Auto(LINEAR, gradient_only=gradient_only, feedback="detect", seed=3).consume(rows[:777]).consume(rows[777:])
    )
    np.testing.assert_allclose(consumed.theta, drawn.theta, rtol=1e-12)
    np.testing.assert_allclose(consumed.result().params, drawn.result().params, rtol=1e-12)
    np.testing.assert_allclose(consumed.result().covariance, drawn.result().covariance, rtol=1e-9, atol=1e-12)


def test_rows_that_do_not_fill_a_chunk_wait():
    rows = rows_of(LINEAR, 5_120 + 63)
    full, more = (Auto(LINEAR, feedback="detect").consume(rows[:n]) for n in (5_120, 5_120 + 63))
    assert (full.n_seen, more.n_seen) == (5_120, 5_183)
    np.testing.assert_array_equal(full.theta, more.theta)
    np.testing.assert_array_equal(full.result().params, more.result().params)
    assert "63 waiting" in more.result().summary()


@MODES
@pytest.mark.parametrize("factor", [4.0, 2.0**-20])
def test_the_answer_scales_with_the_targets(gradient_only, factor):
    rows = rows_of(LINEAR, 5_000)
    plain = Auto(LINEAR, gradient_only=gradient_only).consume(rows).result()
    scaled = Auto(LINEAR, gradient_only=gradient_only).consume(rows * [1.0, 1.0, 1.0, factor]).result()
    np.testing.assert_allclose(scaled.params, factor * plain.params, rtol=1e-7, atol=1e-9 * factor)
    np.testing.assert_allclose(scaled.covariance, factor**2 * plain.covariance, rtol=1e-5, atol=1e-9 * factor**2)


def test_a_parameter_far_from_zero_loses_no_digits():
    rows = rows_of(LINEAR, 5_000)
    near = Auto(LINEAR).consume(rows).result()
    shift = 2.0**27
    rows[:, 3] += rows[:, :3].sum(axis=1) * shift
    far = Auto(LINEAR, theta_0=np.full(3, shift)).consume(rows).result()
    np.testing.assert_allclose(far.params - shift, near.params, atol=2e-7)
    np.testing.assert_allclose(far.bse, near.bse, rtol=1e-5)


@pytest.mark.parametrize("dim", [1, 3, 30])
def test_without_feedback_the_centre_is_least_squares_after_the_start(dim):
    world = problem("iid-linear", dim=dim)
    rows = rows_of(world, 12_345)
    m = 64 if dim <= 24 else 128
    learner = Auto(world, feedback="detect").consume(rows)
    result = learner.result()
    assert any("no significant feedback" in note for note in result.diagnostics.notes)
    used = rows[2_048 : 12_345 // m * m]
    assert result.n == len(used)
    fit = np.linalg.lstsq(used[:, :dim], used[:, dim], rcond=None)[0]
    np.testing.assert_allclose(result.params, fit, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("name", "settings"), [("swap-game", {"rho": 0.9}), ("performative-mean", {})])
def test_where_all_rows_share_a_hessian_differences_lose_nothing(name, settings):
    """At any number of chunks, whether or not the last one made differences."""
    world = problem(name, **settings)
    told, differenced = Auto(world, seed=3), Auto(world, gradient_only=True, seed=3)
    for n in (12_000, 64, 64, 64, 3_000):
        one, other = told.run(n).result(), differenced.run(n).result()
        np.testing.assert_allclose(other.params, one.params, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(other.covariance, one.covariance, rtol=1e-9, atol=1e-12)


def test_feedback_is_seen_where_there_is_some_and_rarely_elsewhere():
    def seen(world, seed):
        return Auto(world, seed=seed).run(12_000).result().feedback

    swap = [seen(problem("swap-game", rho=0.9), seed) for seed in range(10)]
    assert sum(feedback.detected for feedback in swap) >= 8
    assert np.mean([feedback.strength for feedback in swap]) == pytest.approx(0.9, abs=0.2)
    assert sum(seen(problem("iid-linear", dim=2), seed).detected for seed in range(40)) <= 2
    assert sum(seen(problem("ar-linear", dim=2), seed).detected for seed in range(40)) <= 2


def slope_errors(moving, d=2, m=64, step=0.1, chunks=400, runs=300):
    """Relative errors of H + J as d^2 numbers, and R: H = I, J = -I/2, and theta takes steps along (H + J)^-1.

    In a tenth of the steps the linearisation point moves from `moving` to theta* = origin = 0.
    """
    rng, A, errors = np.random.default_rng(5), 0.5, []
    for _ in range(runs):
        notes, theta = FeedbackNotes(d), 0.3 * rng.standard_normal(d)
        for chunk in range(chunks):
            point = np.full(d, moving if chunk < chunks // 10 else 0.0)
            noise = rng.standard_normal(d) / np.sqrt(m)
            page = notes.blank()
            page.gradient[0], page.offset[0] = m * (point - 0.5 * theta + noise), theta - point
            notes.note(np.array([step]), point, m * point)
            theta = theta - step / A * (A * theta + noise)
        errors.append((np.eye(d) + regress(notes.moments(), np.eye(d), m).J) / A - np.eye(d))
    return np.array(errors), step * chunks


@pytest.mark.parametrize("moving", [0.0, -1.0])
def test_the_slope_is_not_biased_and_its_error_is_known(moving):
    errors, R = slope_errors(moving)
    assert errors.var() == pytest.approx(2.0 / R, rel=0.25)
    assert np.abs(errors.mean(axis=0)).max() < 4.0 * np.sqrt(2.0 / R / len(errors))
    assert 4.0 * np.sqrt(2.0 / R / len(errors)) < (2 + 3.0) / R  # without the correction it would be biased by this


def test_a_slope_is_rejected_when_only_its_shrunk_form_is_singular():
    """H + J_raw = -0.2 is far from singular, H + kept J with kept = 5/6 is not; both climb."""
    x = np.linspace(-1.0, 1.0, 201)
    noise = np.tile([1.0, -1.0, 0.0], 67)
    late = np.random.default_rng(0).standard_normal(201)

    def seen(slope, size):
        y = (slope * x + size * noise)[:, None]
        moments = Moments.none(1).plus(y, np.column_stack([x, late]), np.zeros((201, 2)), np.full(201, 1e6))
        return regress(moments, np.eye(1), 1)

    sizes = np.geomspace(0.5, 20.0, 400)
    found = [seen(-1.2, size) for size in sizes]
    near = min(found, key=lambda response: abs(1.0 - 1.2 * (1.0 - 1.0 / response.evidence)))
    assert near.evidence == pytest.approx(6.0, rel=0.05)
    assert near.rejected
    assert not near.J.any()
    assert found[0].rejected  # well seen: steps along H + J would climb
    assert seen(-0.8, 0.5).J[0, 0] == pytest.approx(-0.8, abs=0.05)


def test_an_unsure_slope_costs_degrees_of_freedom():
    J = -0.5 * np.eye(2)
    assert Response(J, 0.9, 9.0, freedom=25.0).degrees_of_freedom(47) == pytest.approx(1 / (1 / 46 + 1 / 25))
    assert Response(0.0 * J, 0.0, 1.0).degrees_of_freedom(47) == pytest.approx(46.0)


def test_what_the_slope_takes_from_batch_means_is_given_back():
    """White noise and AR(0.9) thetas: least squares removes a share of the batches' noise that V and T foretell."""
    rng, d, m, chunks, batches, runs = np.random.default_rng(6), 4, 10, 480, 24, 600
    x = np.zeros((runs, chunks, d))
    for at in range(1, chunks):
        x[:, at] = 0.9 * x[:, at - 1] + rng.standard_normal((runs, d))
    x -= x.mean(axis=1, keepdims=True)
    g = np.sqrt(m) * rng.standard_normal((runs, chunks))
    V = m * np.einsum("rci,rcj->rij", x, x)
    slope = np.linalg.solve(V, np.einsum("rci,rc->ri", x, g)[..., None])[..., 0]
    left = (g - m * np.einsum("rci,ri->rc", x, slope)).reshape(runs, batches, -1).sum(axis=2)
    shown = np.square(left).sum(axis=1) / (m * chunks)  # 1, had the slope been known
    T = m * x.reshape(runs, batches, -1, d).sum(axis=2)
    n, none = np.full(batches, m * chunks / batches), np.zeros((batches, 0))
    taken = np.array(
        [
            Response(np.eye(d), 0.9, 9.0, spread=V_r).taken(Sums(none, none, T_r, none, none, n, none))
            for V_r, T_r in zip(V, T, strict=True)
        ]
    )
    error = shown.std() / math.sqrt(runs)
    assert abs((shown / (1.0 - taken)).mean() - 1.0) < 3.3 * error
    assert shown.mean() < 1.0 - 5.0 * error  # without it
    assert Response(np.eye(d), 0.9, 9.0).taken(Sums(none, none, T[0], none, none, n, none)) == 0.0  # a slow response


def test_without_a_hessian_auto_falls_back_and_says_so():
    bare = replace(LINEAR, hessian=None)
    fallen, asked = Auto(bare, seed=2).run(6_000).result(), Auto(LINEAR, gradient_only=True, seed=2).run(6_000).result()
    np.testing.assert_array_equal(fallen.params, asked.params)
    np.testing.assert_array_equal(fallen.covariance, asked.covariance)
    assert (fallen.method, asked.method) == ("auto", "auto-gradient")
    assert "as the problem has no Hessian" in fallen.summary()
    assert "as the problem has no Hessian" not in asked.summary()
    assert "curvature: the problem's Hessian" in Auto(LINEAR).run(6_000).result().summary()


@MODES
def test_functions_of_your_own_run_through_the_same_steps(gradient_only):
    def gradient(theta, row, params, grad):
        grad[:] = (row[:2] @ theta - row[2]) * row[:2]

    def hessian(theta, row, params, direction):
        direction[:] = row[:2]
        return 1.0, 0.0

    world = problem("iid-linear", dim=2)
    rows = rows_of(world, 4_000)
    built_in = Auto(world, gradient_only=gradient_only).consume(rows).result()
    for wrap in (lambda function: function,) if gradient_only else (lambda function: function, njit):
        own = Problem(2, wrap(gradient), hessian=wrap(hessian), row_size=3)
        result = Auto(own, gradient_only=gradient_only).consume(rows).result()
        np.testing.assert_allclose(result.params, built_in.params, rtol=1e-9)
        np.testing.assert_allclose(result.covariance, built_in.covariance, rtol=1e-7)


def test_watchers_see_the_deployed_trajectory():
    watcher = FixedBatchMeans(3)
    learner = Auto(LINEAR, watchers=[watcher]).run(5_000)
    assert watcher.n_seen == learner.n_iterates == 5_000
    np.testing.assert_array_equal(learner.deployed, learner.theta)
    np.testing.assert_allclose(watcher.estimate(), learner.theta_bar, rtol=1e-12)
    np.testing.assert_array_equal(learner.result(watcher).params, watcher.estimate())


@pytest.mark.parametrize("feedback", ["none", "detect"])
def test_memory_does_not_grow_with_the_stream(feedback):
    def size(thing):
        if isinstance(thing, np.ndarray):
            return thing.nbytes
        if isinstance(thing, (tuple, list)):
            return sum(map(size, thing))
        known = type(thing).__module__.startswith("halfwidth") and hasattr(thing, "__dict__")
        return sum(map(size, vars(thing).values())) if known else 0

    learner = Auto(problem("iid-linear", dim=2), feedback=feedback).run(80_000)  # where chunks are at their largest
    small = size(learner)
    learner.run(60_000)
    assert size(learner) == small > 0


def test_too_few_rows_are_refused_with_what_is_needed():
    with pytest.raises(NotEnoughData, match="needs at least 256 rows; 255 were seen"):
        Auto(LINEAR).consume(rows_of(LINEAR, 255)).result()
    learner = Auto(LINEAR).run(3_071)
    with pytest.raises(NotEnoughData, match="needs at least 3072 rows; 3071 were seen"):
        learner.result()
    early = learner.run(1).result()
    assert early.status == "few-batches"
    assert learner.run(10_000).result().status == "ok"


@MODES
@pytest.mark.parametrize("feedback", ["none", "detect"])
def test_non_finite_gradients_end_in_advice(gradient_only, feedback):
    def gradient(theta, row, params, grad):
        grad[0] = theta[0] - row[0] if row[0] < 10.0 else np.nan

    def hessian(theta, row, params, direction):
        direction[0] = 0.0
        return 0.0, 1.0

    rows = np.random.default_rng(0).standard_normal((3_000, 1))
    rows[1_500] = 11.0
    world = Problem(1, gradient, hessian=hessian, row_size=1)
    with pytest.raises(Diverged, match=r"at row (1,536|2,048).*rows up to it; scale the columns"):
        Auto(world, gradient_only=gradient_only, feedback=feedback).consume(rows)


@MODES
@pytest.mark.parametrize("feedback", ["none", "detect"])
def test_a_direction_that_never_shows_is_refused_and_the_others_are_given(gradient_only, feedback):
    rows = rows_of(LINEAR, 5_000) * [1.0, 0.0, 1.0, 1.0]
    learner = Auto(LINEAR, gradient_only=gradient_only, feedback=feedback).consume(rows)
    result = learner.result()
    assert result.coefficient_status == ("ok", "unidentified", "ok")
    np.testing.assert_array_equal(np.isnan(result.interval().lower), [False, True, False])
    np.testing.assert_array_equal(np.isnan(result.bse), [False, True, False])
    assert result.params[1] == 0.0  # it stays at theta_0
    alone = Auto(problem("iid-linear", dim=2), gradient_only=gradient_only, feedback=feedback)
    expected = alone.consume(rows[:, [0, 2, 3]]).result()
    np.testing.assert_allclose(result.params[[0, 2]], expected.params, atol=1e-9 if feedback == "none" else 1e-4)
    assert result.interval([1.0, 0.0, -1.0]).width > 0.0
    with pytest.raises(NotIdentified):
        result.interval([1.0, 1.0, 0.0])
    assert learner.theta[1] == 0.0


@pytest.mark.parametrize("feedback", ["none", "detect"])
def test_a_column_that_shows_late_is_learned_from_then_on(feedback):
    rows = rows_of(LINEAR, 20_000)
    rows[:8_000, 3] -= rows[:8_000, 1] * LINEAR.theta_star[1]
    rows[:8_000, 1] = 0.0
    result = Auto(LINEAR, feedback=feedback).consume(rows).result()
    assert np.abs((result.params - LINEAR.theta_star) / result.bse).max() < 4.0


def test_problems_without_a_sampler_want_rows():
    with pytest.raises(InputError, match="no sampler"):
        Auto(replace(LINEAR, sample=None)).run(10)


def test_rows_that_never_mix_are_warned_of():
    """Each coordinate is an AR(1) with a correlation time of 10,000 rows, half of the stream."""
    from scipy.signal import lfilter

    noise = np.random.default_rng(0).standard_normal((6, 20_000, 2))
    streams = lfilter([1e-4], [1.0, 1e-4 - 1.0], noise, axis=1)
    mean = problem("performative-mean", dim=2)

    def doubted(rows):
        try:
            return Auto(mean, feedback="detect").consume(rows).result().status != "ok"
        except NotEnoughData:  # theta ran after the noise, and was taken back late
            return True

    assert sum(map(doubted, streams)) >= 4
    free = [Auto(mean).consume(rows).result() for rows in streams]
    assert all(result.status == "long-dependence" for result in free)


def test_feedback_that_cancels_the_hessian_is_warned_of():
    swap = problem("swap-game", rho=0.99)
    found = [dict(Auto(swap, seed=seed).run(20_000).result().diagnostics.flags) for seed in range(12)]
    assert all({"near-singular", "feedback-rejected", "short-batches"} & set(flags) for flags in found)


def made_up(influences, n=1_000):
    K, dim = influences.shape
    covariance = n * K / (K - 1) * influences.T @ influences
    return BatchesResult(np.zeros(dim), covariance, n, StudentLaw(K - 1.0), "auto", Diagnostics(1.0), None, influences)


def slow(T, N):
    return Instrument(T, N, N, N, False)


def facts(**changes):
    usual = {
        "n_seen": 50_000,
        "burn_in": 2_048,
        "began": 2_048,
        "chunk_rows": 64,
        "batch_rows": 1_024,
        "curvature": "the problem's Hessian",
        "response": Response(np.zeros((2, 2)), 0.0, 1.0),
        "clipped_share": 0.0,
        "bent": 0.0,
        "restarts": 0,
    }
    return Facts(**usual | changes)


@pytest.mark.parametrize(
    ("flag", "changes", "words"),
    [
        ("few-batches", {"n_seen": 4_000}, "feed more than 6,144 rows"),
        ("few-batches", {"n_seen": 19_200, "burn_in": 12_000}, "feed more than 36,000 rows"),
        ("clipped-steps", {"clipped_share": 0.25}, "25% of the steps"),
        ("not-settled", {"bent": 0.4}, "linearisation point"),
        ("not-settled", {"restarts": 2, "began": 20_000}, "began at row 20,000"),
        ("near-singular", {"response": Response(np.eye(2), 0.9, 9.0, 12.0, renewals=20.0)}, "amplified 12 times"),
        ("feedback-undecided", {"response": Response(np.eye(2), 0.9, 9.0, 2.0)}, "declare feedback='none'"),
        ("feedback-rejected", {"response": Response(np.eye(2), 0.0, 9.0, 20.0, True)}, "20 times"),
        ("feedback-rejected", {"response": Response(np.eye(2), 0.0, 9.0, 2.0, True)}, "uphill"),
        ("curved-response", {"shifted": True}, "noisier"),
        ("rows-changed", {"drift": 1.3}, "measured (1.3 times"),
        ("not-settled", {"truncations": (26_000,), "began": 27_000}, "as late as row 26,000, and 23,000 of 50,000"),
        ("slow-feedback", {"response": Response(np.eye(2), 0.9, 9.0, 2.0, instrument=slow(3.0, 60.0))}, "3.0 of 60"),
    ],
)
def test_each_warning_has_its_reason(flag, changes, words):
    calm = made_up(np.random.default_rng(0).standard_normal((40, 2)))
    assert status.flags(facts(), calm) == ()
    ((name, text),) = status.flags(facts(**changes), calm)
    assert name == flag
    assert words in text


def test_doubts_have_limits():
    calm = made_up(np.random.default_rng(0).standard_normal((40, 2)))
    assert status.flags(facts(truncations=(20_000,), began=21_000), calm) == ()
    fast = Response(np.eye(2), 0.9, 9.0, 2.0, instrument=slow(6.0, 60.0))
    assert status.flags(facts(response=fast), calm) == ()
    noise = Response(np.zeros((2, 2)), 0.0, 9.0, instrument=Instrument(1.0, 60.0, 60.0, 60.0, True))
    steps = {"clipped_share": 0.3, "response": noise}  # they enter the equation of a curved loss only
    assert "clipped-steps" in dict(status.flags(facts(**steps, quadratic=False), calm))
    assert "clipped-steps" not in dict(status.flags(facts(**steps), calm))
    assert "feedback-undecided" not in dict(status.flags(facts(response=noise), calm))
    assert "feedback-undecided" in dict(status.flags(facts(response=noise, truncations=(3_000,)), calm))


@pytest.mark.parametrize(("name", "quadratic"), [("performative-mean", True), ("seed-logistic", False)])
@pytest.mark.parametrize("gradient_only", [False, True])
def test_it_is_seen_whether_a_loss_is_quadratic(name, quadratic, gradient_only):
    learner = Auto(problem(name, dim=2), gradient_only=gradient_only, seed=0).run(12_000)
    assert learner._steered.quadratic() == quadratic


def test_batches_that_do_not_differ_are_named():
    """Noise that cancels within every chunk leaves an interval of no width, and no division by it."""
    influences = np.random.default_rng(0).standard_normal((40, 2))
    influences[:, 1] = 0.0
    assert [name for name, _ in status.flags(facts(), made_up(influences))] == ["exact-fit"]
    assert [name for name, _ in status.flags(facts(hidden=(1,)), made_up(influences))] == ["unidentified"]
    for size in (0.0, 1e-170):  # squares underflow
        assert [name for name, _ in status.flags(facts(), made_up(size * influences))] == ["exact-fit"]


def test_restarts_are_told():
    calm = made_up(np.random.default_rng(0).standard_normal((40, 2)))
    assert status.notes(facts(restarts=2), calm)[-1].startswith("estimation restarted 2 times")


def test_longer_batches_are_taken_where_they_say_more():
    """Pairs of equal batches: twice the variance, in the first coordinate only."""
    rng = np.random.default_rng(1)
    pairs = np.abs(rng.standard_normal(20)) * np.tile([1.0, -1.0], 10)
    x = np.column_stack([np.repeat(pairs, 2), rng.standard_normal(40)])
    result = made_up(x)
    wider = result.inflations(np.eye(2))
    expected = np.sqrt(20 / 19 * np.sum((2.0 * pairs) ** 2) / (40 / 39 * np.sum(x[:, 0] ** 2)))
    expected *= StudentLaw(19.0).quantile(0.95) / StudentLaw(39.0).quantile(0.95)
    assert wider[0] == pytest.approx(expected)
    assert wider[1] == 1.0
    plain = np.sqrt(np.diag(result.covariance) / result.n)
    np.testing.assert_allclose(result.bse, wider * plain)
    np.testing.assert_allclose(result.interval().half_width, result.law.quantile(0.95) * result.bse)
    one = result.interval([1.0, 0.0])
    assert one.half_width == pytest.approx(result.interval().half_width[0])
    assert "longer ones for 1 of 2 coordinates" in "".join(status.notes(facts(), result))


def test_an_odd_batch_joins_the_first_pair():
    np.testing.assert_array_equal(in_pairs(np.array([1.0, 2.0, 4.0])), [7.0])
    np.testing.assert_array_equal(in_pairs(np.array([1.0, 2.0, 4.0, 8.0])), [3.0, 12.0])


def test_the_methods_choose_their_own_steps():
    settings = [Setting(), Setting(eta=3.0, burn_in=0.2, watched_rows=4_000)]
    for name in ("auto", "auto-gradient"):
        one, other = (method(name).learn(LINEAR, setting, 7).run(5_000).result() for setting in settings)
        np.testing.assert_array_equal(one.params, other.params)
        assert one.method == name


@pytest.mark.parametrize("gradient_only", [False, True])
@pytest.mark.parametrize("feedback", ["none", "detect"])
@pytest.mark.parametrize("at", [0, 100, 640, 2111, 3071])
def test_a_call_with_a_bad_row_is_refused_whole(gradient_only, at, feedback):
    world = problem("ar-linear", dim=3)
    rows = np.random.default_rng(0).standard_normal((4000, 4))
    spoilt = rows.copy()
    spoilt[at, 2] = np.inf
    learner = Auto(world, gradient_only=gradient_only, feedback=feedback)
    with pytest.raises(InputError, match=f"row {at} of this call has inf in column 2. No row of the call"):
        learner.consume(spoilt)
    assert learner.n_seen == 0
    clean = Auto(world, gradient_only=gradient_only, feedback=feedback).consume(rows)
    resumed = learner.consume(rows[:at]).consume(rows[at:])
    np.testing.assert_array_equal(resumed.theta, clean.theta)
    np.testing.assert_allclose(resumed.theta_bar, clean.theta_bar, rtol=1e-12)
    np.testing.assert_array_equal(resumed.result().covariance, clean.result().covariance)


def test_the_average_is_the_same_with_and_without_watchers():
    alone = Auto(problem("seed-linear", dim=3), seed=1).run(5000)
    watcher = OverlappingBatchMeans(3)
    watched = Auto(problem("seed-linear", dim=3), seed=1, watchers=[watcher]).run(5000)
    np.testing.assert_array_equal(alone.theta, watched.theta)
    np.testing.assert_allclose(alone.theta_bar, watched.theta_bar, rtol=1e-12)
    np.testing.assert_allclose(watcher.estimate(), watched.theta_bar, rtol=1e-12)


def test_rare_events_are_not_estimated_on_the_way_to_them():
    """Theta has five to go while decrements are noise; estimation that began at row 2,048 ended 1.2 errors off."""
    world, z = problem("ar-logistic", dim=2), []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X = np.column_stack([np.ones(40_000), rng.standard_normal(40_000)])
        y = rng.random(40_000) < 1.0 / (1.0 + np.exp(5.0 - 2.0 * X[:, 1]))
        result = Auto(world, feedback="detect", seed=seed).consume(np.column_stack([X, y])).result()
        z.append((result.params - [-5.0, 2.0]) / result.bse)
    assert np.abs(np.mean(z, axis=0)).max() < 0.25 + 2.5 / np.sqrt(30)
    assert (np.abs(z) < 4.0).all()


def test_a_watcher_of_theta_that_takes_no_steps_is_doubted():
    """Theta is the root of the rows before it, and theta_0 at first: an average of that covered one in twenty."""
    rows = rows_of(LINEAR, 20_000)
    for feedback, doubt in (("none", "no-steps"), ("detect", "ok")):
        watcher = OverlappingBatchMeans(LINEAR.dim)
        learner = Auto(LINEAR, watchers=[watcher], feedback=feedback).consume(rows)
        assert learner.result(watcher=watcher).status == doubt
        assert learner.result().status == "ok"
