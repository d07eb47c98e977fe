"""Plain, capped and truncated SGD, held to slow twins on the same random numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twins
from halfwidth import CappedSGD, ConstantStep, OverlappingBatchMeans, PowerStep, Problem, Threshold, TruncationSets
from halfwidth.errors import Diverged, InputError
from halfwidth.kernels.rows import finite_rows
from halfwidth.learners import LEARNERS, SGD, Learner, TruncatedSGD
from halfwidth.learners.undo import Before
from halfwidth.problems import problem
from halfwidth.state.compare import first_difference
from halfwidth.watchers import BurnIn
from halfwidth.watchers.base import Watcher
from recorder import Recorder

FAMILY = {name: LEARNERS[name] for name in ("plain", "truncated", "capped")}
STEPS = PowerStep(2.0, 0.505)(np.arange(1, 401))


def recorded(learner_class, built_in, seed=0, steps=400, eta=2.0, **settings):
    recorder = Recorder(built_in.dim)
    learner = learner_class(built_in, step=PowerStep(eta, 0.505), watchers=[recorder], seed=seed, **settings)
    learner.run(steps)
    return learner, recorder.thetas


WORLDS = [
    ("seed-linear", twins.SeedLinearWorld, twins.linear_gradient, lambda theta, row: row[:-1] @ row[:-1]),
    (
        "seed-logistic",
        twins.SeedLogisticWorld,
        twins.logistic_gradient,
        lambda theta, row: row[:-1] @ row[:-1] / 4 + 0.01,
    ),
]


@pytest.mark.parametrize(("name", "world", "gradient", "curvature"), WORLDS, ids=[w[0] for w in WORLDS])
@pytest.mark.parametrize("dim", [1, 3])
def test_plain_and_capped_sgd_are_their_definitions(name, world, gradient, curvature, dim):
    built_in = problem(name, dim=dim)
    for learner_class, eta, cap in ((SGD, 0.5, None), (CappedSGD, 5.0, curvature)):
        draw = world(np.random.default_rng(3), np.linspace(0.0, 1.0, dim)).draw
        expected, capped = twins.sgd(gradient, draw, np.zeros(dim), eta * STEPS / 2.0, cap)
        learner, thetas = recorded(learner_class, built_in, seed=3, eta=eta)
        np.testing.assert_allclose(thetas, expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(learner.theta, expected[-1], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(learner.theta_bar, expected.mean(axis=0), rtol=1e-9, atol=1e-9)
        if cap is not None:
            assert 0 < capped < 400
            assert learner.result().diagnostics.capped_share == capped / 400


@pytest.mark.parametrize(("radius", "scale"), [(1.2, 10.0), (10.0, 0.8), (0.7, 0.9)])
@pytest.mark.parametrize("growth", [(0.01, "linear"), (1.05, "geometric")])
def test_truncated_sgd_is_algorithm_1(radius, scale, growth):
    """Tight sets and thresholds, so that both reasons for a truncation occur."""
    dim, (rate, kind) = 3, growth
    world = twins.SeedLinearWorld(np.random.default_rng(4), np.linspace(0.0, 1.0, dim))
    expected, hits = twins.truncated_sgd(
        twins.linear_gradient,
        world,
        np.full(dim, 0.1),
        STEPS,
        threshold=lambda k: np.inf if k == 0 else scale * k**-0.3,
        radius=lambda q: radius + rate * q if kind == "linear" else radius * rate**q,
    )
    learner, thetas = recorded(
        TruncatedSGD,
        problem("seed-linear", dim=dim),
        seed=4,
        theta_0=np.full(dim, 0.1),
        threshold=Threshold(scale, 0.3),
        sets=TruncationSets(radius, rate, kind),
    )
    assert len(hits) > 3
    assert learner.truncated_at == hits
    assert learner.truncations == len(hits)
    np.testing.assert_allclose(thetas, expected, rtol=1e-9, atol=1e-9)
    facts = learner.result().diagnostics
    assert (facts.truncations, list(facts.truncated_at)) == (len(hits), hits)


def test_truncations_are_located_across_chunks():
    sets, threshold = TruncationSets(1.2, 0.001), Threshold(1.0)
    whole, thetas = recorded(TruncatedSGD, problem("seed-linear", dim=3), steps=9_000, sets=sets, threshold=threshold)
    at_start = np.flatnonzero((thetas == 0.0).all(axis=1)) + 1
    assert at_start[-1] > 4_096
    assert whole.truncations == len(at_start)
    assert whole.truncated_at == at_start[:1_000].tolist()


def test_truncated_sgd_survives_a_gradient_that_is_not_a_number():
    def gradient(theta, row, params, grad):
        grad[0] = row[0]

    def sample(rng, theta, state, params, row):
        state[0] += 1.0
        row[0] = np.inf if state[0] == 5.0 else 0.01

    learner = TruncatedSGD(Problem(1, gradient, sample, row_size=1, state_0=[0.0]), step=ConstantStep(1.0)).run(20)
    assert learner.truncated_at == [5, 10, 15, 20]
    assert learner.theta.tolist() == [0.0]


@pytest.mark.parametrize("name", FAMILY)
@settings(max_examples=15)
@given(cuts=st.lists(st.integers(0, 6_000), max_size=5), seed=st.integers(0, 2**32))
def test_running_in_pieces_is_running_in_one_go(name, cuts, seed):
    """Bit for bit: the iterates do not know where chunks end. Chunks hold up to 4,096 rows."""
    built_in = problem("seed-linear", dim=2)
    whole = FAMILY[name](built_in, watchers=[OverlappingBatchMeans(2)], seed=seed).run(6_000)
    pieces = FAMILY[name](built_in, watchers=[OverlappingBatchMeans(2)], seed=seed)
    for steps in np.diff([0, *sorted(cuts), 6_000]):
        pieces.run(int(steps))
    assert pieces.n_seen == whole.n_seen == pieces.watchers[0].n_seen
    np.testing.assert_array_equal(pieces.theta, whole.theta)
    np.testing.assert_allclose(pieces.theta_bar, whole.theta_bar, rtol=1e-12)
    np.testing.assert_allclose(pieces.watchers[0].covariance(), whole.watchers[0].covariance(), rtol=1e-10)


@pytest.mark.parametrize("name", FAMILY)
def test_consuming_rows_is_running_on_the_same_rows(name):
    built_in = problem("iid-linear", dim=2)
    rng = np.random.default_rng(9)
    rows = np.empty((5_000, 3))
    for row in rows:
        noise = rng.standard_normal()
        row[:2] = rng.standard_normal(), rng.standard_normal()
        row[2] = noise + row[1]
    drawn = FAMILY[name](built_in, watchers=[OverlappingBatchMeans(2)], seed=9).run(5_000)
    given_rows = FAMILY[name](built_in, watchers=[OverlappingBatchMeans(2)]).consume(rows[:700]).consume(rows[700:])
    np.testing.assert_allclose(given_rows.theta, drawn.theta, rtol=1e-12)
    np.testing.assert_allclose(given_rows.theta_bar, drawn.theta_bar, rtol=1e-12)
    np.testing.assert_allclose(
        given_rows.watchers[0].covariance(), drawn.watchers[0].covariance(), rtol=1e-9, atol=1e-12
    )


def test_the_same_seed_gives_the_same_run_whatever_form_it_has():
    built_in = problem("seed-logistic", dim=2)
    one, two, three, other = (
        SGD(built_in, seed=seed).run(500).theta for seed in (5, np.random.default_rng(5), np.random.SeedSequence(5), 6)
    )
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, three)
    assert not np.array_equal(one, other)


def test_the_average_near_1e8_keeps_its_digits():
    far = problem("iid-linear", dim=2, theta_r=[1e8, 1e8], theta_0=[1e8, 1e8])
    recorder = Recorder(2)
    learner = SGD(far, watchers=[recorder]).run(10_000)
    np.testing.assert_allclose(learner.theta_bar - 1e8, (recorder.thetas - 1e8).mean(axis=0), rtol=0, atol=1e-6)


def test_any_number_of_watchers_see_the_same_iterates():
    watchers = [Recorder(2), OverlappingBatchMeans(2, view="diagonal"), OverlappingBatchMeans(2)]
    learner = SGD(problem("iid-linear", dim=2), watchers=watchers).run(3_000)
    np.testing.assert_allclose(watchers[1].covariance(), np.diag(watchers[2].covariance()), rtol=1e-9)
    np.testing.assert_array_equal(watchers[0].thetas[-1], learner.theta)
    assert learner.result(watchers[2]).n == 3_000
    with pytest.raises(InputError, match="watcher must be named"):
        learner.result()


def test_divergence_raises_with_advice_and_leaves_the_watchers_untouched():
    watcher = OverlappingBatchMeans(5)

    def explodes_in_the_second_chunk(k):
        return np.where(k > 20_000, 2.0, 0.01)

    learner = SGD(problem("iid-linear", dim=5), step=explodes_in_the_second_chunk, watchers=[watcher])
    with pytest.raises(Diverged, match=r"theta is not finite at row 20,\d+; take smaller steps.*CappedSGD"):
        learner.run(30_000)
    assert watcher.n_seen == learner.n_seen == 16_000
    assert np.isfinite(watcher.covariance()).all()
    np.testing.assert_array_equal(
        watcher.covariance(),
        SGD(problem("iid-linear", dim=5), step=ConstantStep(0.01), watchers=[OverlappingBatchMeans(5)])
        .run(16_000)
        .watchers[0]
        .covariance(),
    )
    with pytest.raises(Diverged):
        learner.run(10)


def test_divergence_names_its_row():
    def gradient(theta, row, params, grad):
        grad[0] = row[0]

    rows = np.zeros((50, 1))
    rows[36] = 1e308
    watcher = OverlappingBatchMeans(1)
    learner = SGD(Problem(1, gradient, row_size=1), step=ConstantStep(1e10), watchers=[watcher])
    with pytest.raises(Diverged, match="at row 37;"), np.errstate(over="ignore"):
        learner.consume(rows)
    assert watcher.n_seen == 0


def test_a_constant_step_is_flagged_as_outside_the_theory():
    learner = SGD(problem("iid-linear", dim=2), step=ConstantStep(0.05), watchers=[OverlappingBatchMeans(2)])
    result = learner.run(50_000).result()
    assert "outside-theory" in dict(result.diagnostics.flags)
    assert "PowerStep" in " ".join(result.diagnostics.warnings)


def test_any_callable_is_a_schedule():
    learner = SGD(problem("iid-linear", dim=2), step=lambda k: 0.5 * k**-0.6)
    same = SGD(problem("iid-linear", dim=2), step=PowerStep(0.5, 0.6))
    np.testing.assert_allclose(learner.run(300).theta, same.run(300).theta, rtol=1e-12)


def test_the_deployed_theta_is_the_current_iterate_and_a_copy():
    learner = SGD(problem("performative-mean", dim=2)).run(10)
    np.testing.assert_array_equal(learner.deployed, learner.theta)
    learner.deployed[:] = 7.0
    assert learner.theta[0] != 7.0


def test_before_any_row_the_average_is_the_start():
    learner = SGD(problem("iid-linear", dim=2), theta_0=[1.0, 2.0]).run(0)
    assert learner.theta_bar.tolist() == [1.0, 2.0]
    assert learner.n_seen == 0


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda p: SGD(p, watchers=[OverlappingBatchMeans(3)]), "watchers must have dim 2"),
        (lambda p: SGD(p, theta_0=[1.0]), "theta_0 must be 2 finite numbers"),
        (lambda p: SGD(p, theta_0=[np.nan, 0.0]), "theta_0 must be 2 finite numbers"),
        (lambda p: SGD(p).run(-1), "steps must be an integer of at least 0"),
        (lambda p: SGD(p).run(1.5), "steps must be an integer"),
        (lambda p: SGD(p).consume(np.zeros((5, 2))), r"rows must have shape \(m, 3\)"),
        (lambda p: SGD(p).consume(np.zeros(3)), r"rows must have shape \(m, 3\)"),
        (lambda p: SGD(p).consume([[0.0, 0.0, 0.0], [0.0, np.nan, 0.0]]), "row 1 of this call has nan in column 1"),
        (lambda p: SGD(Problem(1, p.gradient, row_size=2)).run(5), "has no sampler: give rows to consume"),
    ],
)
def test_bad_input_is_refused(ask, message):
    with pytest.raises(InputError, match=message):
        ask(problem("iid-linear", dim=2))


@pytest.mark.parametrize("kind", [SGD, CappedSGD, TruncatedSGD])
@pytest.mark.parametrize("phases", [{}, {"warm_start": 3}, {"burn_in": 3}, {"warm_start": 3, "burn_in": 4}])
@pytest.mark.parametrize("at", [0, 2, 5, 20])
def test_a_call_with_a_bad_row_is_refused_whole(kind, phases, at):
    rows = np.random.default_rng(0).standard_normal((40, 3))
    spoilt = rows.copy()
    spoilt[at, 1] = np.nan
    spoilt[at + 1, 0] = np.inf
    watcher = OverlappingBatchMeans(2)
    learner = kind(problem("iid-linear", dim=2), watchers=[watcher], **phases)
    learner.consume(rows[:10])
    with pytest.raises(InputError, match=rf"row {at} of this call has nan in column 1\. No row of the call"):
        learner.consume(spoilt)
    clean = kind(problem("iid-linear", dim=2), **phases).consume(rows[:10])
    np.testing.assert_array_equal(learner.theta, clean.theta)
    np.testing.assert_array_equal(learner.theta_bar, clean.theta_bar)
    assert learner.n_seen == 10
    assert watcher.n_seen == learner.n_iterates
    resumed = learner.consume(rows[10:])
    np.testing.assert_allclose(resumed.theta_bar, kind(problem("iid-linear", dim=2), **phases).consume(rows).theta_bar)


@pytest.fixture
def taken_back(monkeypatch):
    """Counts the calls that were begun and taken back."""
    counted = []

    class Counting(Before):
        def put_back(self, learner):
            counted.append(learner.n_seen)
            super().put_back(learner)

    monkeypatch.setattr("halfwidth.learners.base.Before", Counting)
    return counted


class QuietSGD(SGD):
    """A loop of its own might look at nothing."""


@pytest.mark.parametrize(
    ("learner", "options", "rows", "expected"),
    [
        (SGD, {}, 20_000, [16_000]),
        (CappedSGD, {"watchers": [OverlappingBatchMeans(2)]}, 20_000, [16_000]),
        (SGD, {}, 16_000, []),  # one chunk
        (SGD, {"warm_start": 5}, 20_000, []),
        (SGD, {"watchers": [Recorder(2)]}, 20_000, []),  # it may do more than change itself
        (SGD, {"watchers": [BurnIn(lambda: OverlappingBatchMeans(2))]}, 20_000, []),
        (TruncatedSGD, {}, 20_000, []),
        (QuietSGD, {}, 20_000, []),
    ],
)
def test_only_long_calls_of_what_can_be_put_back_are_taken_back(taken_back, learner, options, rows, expected):
    given_rows = np.random.default_rng(0).standard_normal((rows, 3))
    given_rows[-1, 2] = -np.inf
    run = learner(problem("iid-linear", dim=2), **options)
    with pytest.raises(
        InputError, match=rf"rows must be finite; row {rows - 1} of this call has -inf in column 2\. No"
    ):
        run.consume(given_rows)
    assert (taken_back, run.n_seen) == (expected, 0)
    assert all(watcher.n_seen == 0 for watcher in run.watchers)


def test_many_dimensions_are_looked_at_first(taken_back):
    """A copy of d^2 numbers for a few rows would cost more."""
    for rows, times in ((19_000, 0), (19_200, 1)):
        given_rows = np.zeros((rows, 301))
        given_rows[-1, 0] = np.nan
        with pytest.raises(InputError, match=f"row {rows - 1} of this call has nan"):
            SGD(problem("iid-linear", dim=300)).consume(given_rows)
        assert len(taken_back) == times


def test_plain_python_functions_are_looked_at_first(taken_back):
    world = problem("iid-linear", dim=2)
    own = Problem(2, lambda *arguments: world.gradient(*arguments), row_size=3)
    rows = np.full((17_000, 3), 1e308)
    rows[-1, 0] = np.nan
    with pytest.raises(InputError, match="row 16999 of this call has nan"):
        SGD(own).consume(rows)
    assert taken_back == []


def test_a_bad_row_is_named_also_after_the_iterates_diverged(taken_back):
    rows = np.random.default_rng(0).standard_normal((20_000, 3))
    learner = SGD(problem("iid-linear", dim=2), step=ConstantStep(50.0))
    before = learner.to_state()["theta"]
    rows[-1, 1] = np.nan
    with pytest.raises(InputError, match="row 19999 of this call has nan") as refused:
        learner.consume(rows)
    assert refused.value.__suppress_context__
    assert (taken_back, learner.n_seen) == ([0], 0)
    np.testing.assert_array_equal(learner.theta, before)
    rows[-1, 1] = 0.0
    with pytest.raises(Diverged):
        learner.consume(rows)


@pytest.mark.parametrize("huge", [1.7e308, -1e305])
def test_finite_numbers_whose_sum_overflows_are_learned(huge):
    """The last columns are not read by the gradient."""
    world = problem("iid-linear", dim=2)
    rows = np.random.default_rng(0).standard_normal((20_000, 5))
    wide = Problem(2, world.gradient, row_size=5, params=world.params)
    expected = SGD(wide).consume(rows).theta
    rows[50:19_000, 3:] = huge
    learner = SGD(wide).consume(rows)
    np.testing.assert_array_equal(learner.theta, expected)
    state = learner.to_state()
    rows[19_500, 4] = np.nan
    with pytest.raises(InputError, match="row 19500 of this call has nan in column 4"):
        learner.consume(rows)
    np.testing.assert_array_equal(learner.to_state()["theta"], state["theta"])


def test_watchers_whose_sums_overflowed_are_put_back_too(taken_back):
    rows = np.random.default_rng(0).standard_normal((20_000, 3)) * [1.0, 1.0, 1e200]
    with np.errstate(all="ignore"):
        learner = SGD(problem("iid-linear", dim=2), watchers=[OverlappingBatchMeans(2)]).consume(rows)
        before = learner.to_state()
        assert not np.isfinite(before["watchers"][0]["scatter"]).all()
        rows[-1, 0] = np.nan
        with pytest.raises(InputError, match="row 19999 of this call has nan"):
            learner.consume(rows)
    assert taken_back == [36_000]
    assert first_difference(learner.to_state(), before) is None


@pytest.mark.parametrize("huge", [1.0, 1e308])
def test_the_first_row_that_is_not_finite_is_found(huge):
    rows = np.full((100, 3), huge)
    assert finite_rows(rows[:0]) == 0
    assert finite_rows(rows) == 100
    for row, column, value in ((99, 2, np.nan), (40, 0, -np.inf), (40, 1, np.inf), (0, 0, np.nan)):
        rows[row, column] = value
        assert finite_rows(rows) == row


def test_the_contracts_are_abstract():
    with pytest.raises(TypeError, match="abstract"):
        Learner(problem("iid-linear", dim=2))
    with pytest.raises(TypeError, match="abstract"):
        Watcher()


def test_a_gradient_that_is_returned_instead_of_written_is_noticed():
    def returns(theta, row, params, grad):
        return theta - row

    def sample(rng, theta, state, params, row):
        row[0] = rng.standard_normal()

    with pytest.raises(Diverged, match="must be written into its last argument"):
        SGD(Problem(1, returns, sample, row_size=1)).run(10)


def test_a_run_without_a_watcher_says_so():
    with pytest.raises(InputError, match="no watcher is attached: give the learner"):
        SGD(problem("iid-linear", dim=2)).run(10).result()
