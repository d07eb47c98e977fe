"""Laws that every learner obeys, held over one table.

A new learner is a new row of `LEARNERS`: how to build it, and which of the symmetries it promises.
"""

import pickle
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfwidth import PowerStep, learners, watchers
from halfwidth.errors import BadState, InputError, NotEnoughData
from halfwidth.learners.base import Learner
from halfwidth.learners.own_result import OwnResult
from halfwidth.learners.warm_start import collect_rows, warm_theta
from halfwidth.problems import problem
from halfwidth.state.checkpoint import read_checkpoint, write_checkpoint
from halfwidth.watchers.wrapping_watcher import WrappingWatcher
from recorder import Recorder

DIM = 3
WORLD = problem("iid-linear", dim=DIM)
STEP = PowerStep(0.5, 0.6)


@dataclass(frozen=True)
class Kind:
    learner: type[Learner]
    options: dict[str, Any] = field(default_factory=dict)
    scales: bool = True
    """Rows with c y instead of y end in c theta."""
    permutes: bool = True
    """Rows with permuted features end in the permuted theta."""
    average: bool = True
    """The estimate stays near the average of the iterates."""


LEARNERS = {
    "plain": Kind(learners.SGD),
    "capped": Kind(learners.CappedSGD),
    "truncated": Kind(learners.TruncatedSGD, scales=False),
    "implicit": Kind(learners.ImplicitSGD),
    "zeroth-order": Kind(learners.ZerothOrderSGD),
    "zeroth-order-2": Kind(learners.ZerothOrderSGD, {"probes": 2}, permutes=False),
    "local": Kind(learners.LocalSGD, {"workers": 3, "every": 7}),
    "bootstrap": Kind(learners.MultiplierBootstrap, {"copies": 40}),
    "bootstrap-block": Kind(learners.MultiplierBootstrap, {"copies": 5, "block": 13}),
    "bootstrap-cheap": Kind(learners.MultiplierBootstrap, {"copies": 5, "rule": "cheap"}),
    "bootstrap-percentile": Kind(learners.MultiplierBootstrap, {"copies": 5, "rule": "percentile"}),
    "bootstrap-minibatch": Kind(learners.MiniBatchBootstrap, {"copies": 5, "batch": 9}),
    "plug-in": Kind(learners.PlugIn),
    "plug-in-longrun": Kind(learners.PlugIn, {"long_run": True}),
    "one-step": Kind(learners.OneStep),
    "renewable-newton": Kind(learners.ChunkedNewton, average=False),
    "higrad": Kind(learners.HiGrad, {"shared": (60, 45)}),
    "parallel-runs": Kind(learners.ParallelRuns),
    "hull": Kind(learners.HullOfRuns),
    "richardson-romberg": Kind(learners.RichardsonRomberg),
    "trajectory-regression": Kind(learners.TrajectoryRegression),
    "plus-minus": Kind(learners.PlusMinus, {"pilot_rows": 100}, scales=False, average=False),
    "online-debiasing": Kind(learners.OnlineDebiasing, {"pilot_rows": 100, "planned_rows": 400}, average=False),
}
every_learner = pytest.mark.parametrize("kind", LEARNERS.values(), ids=LEARNERS)
own_results = pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, id=name) for name, kind in LEARNERS.items() if issubclass(kind.learner, OwnResult)],
)


def test_every_learner_is_in_the_table():
    """`Auto` takes no step: `test_auto_laws.py` has a table of its ways to get rows."""
    public = [getattr(learners, name) for name in learners.__all__]
    kinds = {kind for kind in public if isinstance(kind, type) and issubclass(kind, Learner)} - {Learner}
    assert kinds == {kind.learner for kind in LEARNERS.values()} | {learners.Auto}


def fresh(kind, *, world=WORLD, seed=3, **options):
    return kind.learner(world, step=STEP, watchers=[Recorder(DIM)], seed=seed, **kind.options, **options)


def given_rows(n, seed=3):
    """The rows that a learner with this seed draws from the world, which does not look at theta."""
    rows = np.empty((n, DIM + 1))
    collect_rows(WORLD, np.random.default_rng(seed), np.zeros(DIM), np.empty(0), rows)
    return rows


def assert_same_steps(one, other):
    """Bit for bit in every iterate."""
    assert (one.n_seen, one.n_iterates) == (other.n_seen, other.n_iterates)
    np.testing.assert_array_equal(one.theta, other.theta)
    np.testing.assert_array_equal(one.watchers[0].thetas, other.watchers[0].thetas)


def assert_same_run(one, other):
    """Bit for bit in every iterate; results to the rounding of sums over differently cut chunks."""
    assert_same_steps(one, other)
    np.testing.assert_allclose(one.theta_bar, other.theta_bar, rtol=1e-12, atol=1e-13)
    first, second = one.result(), other.result()
    assert (first.n, first.method, first.law.name) == (second.n, second.method, second.law.name)
    np.testing.assert_allclose(first.params, second.params, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(first.covariance, second.covariance, rtol=1e-7, atol=1e-12)


@every_learner
@settings(max_examples=5)
@given(
    cuts=st.lists(st.integers(0, 900), max_size=4), start=st.sampled_from([{}, {"warm_start": 57}, {"burn_in": 133}])
)
def test_running_in_pieces_is_running_in_one_go(kind, cuts, start):
    whole = fresh(kind, **start).run(900)
    pieces = fresh(kind, **start)
    for size in np.diff([0, *sorted(cuts), 900]):
        pieces.run(int(size))
    assert_same_run(whole, pieces)


@every_learner
@pytest.mark.parametrize("warm_start", [0, 40])
def test_consuming_rows_is_running_on_them(kind, warm_start):
    drawn = fresh(kind, warm_start=warm_start).run(700)
    assert_same_run(drawn, fresh(kind, warm_start=warm_start).consume(given_rows(700)))


@every_learner
def test_plain_python_functions_run_through_the_same_steps(kind):
    interpreted = replace(
        WORLD,
        gradient=lambda *arguments: WORLD.gradient(*arguments),
        loss=lambda *arguments: WORLD.loss(*arguments),
    )
    rows = given_rows(400)
    compiled, slow = (fresh(kind, world=world).consume(rows) for world in (WORLD, interpreted))
    np.testing.assert_allclose(slow.watchers[0].thetas, compiled.watchers[0].thetas, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(slow.result().covariance, compiled.result().covariance, rtol=1e-6, atol=1e-9)


@every_learner
def test_watchers_see_the_deployed_trajectory(kind):
    learner = fresh(kind).run(800)
    seen = learner.watchers[0]
    assert seen.n_seen == learner.n_iterates == 800
    np.testing.assert_array_equal(seen.thetas[-1], learner.theta)
    np.testing.assert_array_equal(learner.deployed, learner.theta)
    np.testing.assert_allclose(seen.estimate(), learner.theta_bar, rtol=1e-12)
    watched = learner.result(seen)
    np.testing.assert_allclose(watched.params, learner.theta_bar, rtol=1e-12)
    np.testing.assert_array_equal(watched.covariance, seen.covariance())


@pytest.mark.parametrize("name", [name for name, kind in LEARNERS.items() if kind.scales])
def test_theta_scales_with_the_targets(name):
    kind, rows = LEARNERS[name], given_rows(700)
    plain = fresh(kind).consume(rows).result()
    scaled = fresh(kind).consume(rows * np.append(np.ones(DIM), 4.0)).result()
    np.testing.assert_allclose(scaled.params, 4.0 * plain.params, rtol=1e-8)
    np.testing.assert_allclose(scaled.covariance, 16.0 * plain.covariance, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", [name for name, kind in LEARNERS.items() if kind.permutes])
def test_permuted_features_give_the_permuted_theta(name):
    kind, rows, order = LEARNERS[name], given_rows(700), np.array([2, 0, 1])
    plain = fresh(kind).consume(rows).result()
    permuted = fresh(kind).consume(rows[:, np.append(order, DIM)]).result()
    np.testing.assert_allclose(permuted.params, plain.params[order], rtol=1e-8)
    np.testing.assert_allclose(permuted.covariance, plain.covariance[np.ix_(order, order)], rtol=1e-6, atol=1e-9)


@every_learner
def test_memory_does_not_grow_with_the_stream(kind):
    def arrays(value):
        if isinstance(value, np.ndarray):
            return value.nbytes
        if isinstance(value, (tuple, list)):
            return sum(arrays(item) for item in value)
        kept = type(value).__module__.startswith("halfwidth.learners")
        return sum(arrays(item) for item in vars(value).values()) if kept else 0

    learner = fresh(kind, warm_start=10)
    learner.watchers = ()
    learner.run(1_000)
    small = sum(arrays(value) for value in vars(learner).values())
    learner.run(60_000)
    assert sum(arrays(value) for value in vars(learner).values()) == small > 0


@every_learner
def test_a_warm_start_begins_where_the_buffer_leads(kind):
    learner = fresh(kind, warm_start=200).run(150)
    assert (learner.n_seen, learner.n_iterates, learner.watchers[0].n_seen) == (150, 0, 0)
    np.testing.assert_array_equal(learner.deployed, np.zeros(DIM))
    start = warm_theta(WORLD, STEP, np.zeros(DIM), given_rows(200))
    learner.run(650)
    assert (learner.n_seen, learner.n_iterates, learner.watchers[0].n_seen) == (800, 600, 600)
    warm = fresh(kind, theta_0=start).consume(given_rows(800)[200:])
    np.testing.assert_array_equal(learner.watchers[0].thetas, warm.watchers[0].thetas)
    np.testing.assert_allclose(learner.result().covariance, warm.result().covariance, rtol=1e-7, atol=1e-12)


@every_learner
def test_burn_in_is_walked_and_forgotten(kind):
    whole, burned = fresh(kind).run(1_197), fresh(kind, burn_in=405).run(1_197)
    assert (burned.n_seen, burned.n_iterates, burned.watchers[0].n_seen) == (1_197, 792, 792)
    if kind.learner is not learners.HiGrad:  # whose tree begins after the burn-in
        np.testing.assert_array_equal(burned.watchers[0].thetas, whole.watchers[0].thetas[405:])
    np.testing.assert_allclose(burned.theta_bar, burned.watchers[0].thetas.mean(axis=0), rtol=1e-12)
    result = burned.result()
    assert result.n == 792
    if kind.average:
        # Far from the start nothing but the averages that begin there can move the estimate away from them.
        np.testing.assert_allclose(result.params, burned.theta_bar, atol=0.05)


@own_results
def test_burn_in_forgets_a_bad_start(kind):
    near, far = (fresh(kind, burn_in=2_000, theta_0=start).run(4_000).result() for start in (np.zeros(DIM), [9, -9, 9]))
    np.testing.assert_allclose(far.covariance, near.covariance, atol=0.25 * np.abs(near.covariance).max())


@own_results
def test_own_results_are_symmetric_positive_and_complete(kind):
    result = fresh(kind).run(3_000).result()
    assert result.covariance.shape == (DIM, DIM)
    np.testing.assert_array_equal(result.covariance, result.covariance.T)
    assert np.linalg.eigvalsh(result.covariance)[0] > 0
    many, one = result.interval(np.eye(DIM)), result.interval([1.0, 0.0, 0.0])
    np.testing.assert_allclose(many.lower, result.interval().lower, rtol=1e-12)
    assert (one.lower, one.upper) == pytest.approx((many.lower[0], many.upper[0]))
    assert one.upper - one.lower < result.interval([1.0, 0.0, 0.0], level=0.968).width + 1e-15
    assert "theta[2]" in result.summary()


@own_results
def test_too_few_rows_are_refused_with_what_is_needed(kind):
    with pytest.raises(NotEnoughData, match="needs at least"):
        fresh(kind).result()


def assert_equal_states(one, other):
    """Bit for bit, wherever the numbers are."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_equal_states(one[key], other[key])
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for first, second in zip(one, other, strict=True):
            assert_equal_states(first, second)
    elif isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tobytes() == other.tobytes()
    else:
        assert one == other


@every_learner
@pytest.mark.parametrize(
    ("cut", "start"), [(0, {}), (421, {}), (31, {"warm_start": 57}), (301, {"warm_start": 57, "burn_in": 133})]
)
def test_a_run_that_is_resumed_from_its_state_goes_on_with_the_same_bits(kind, cut, start, tmp_path):
    """The state travels through a checkpoint file; the resumed run equals the same run cut at the same place."""
    learner = fresh(kind, **start).run(cut)
    write_checkpoint(tmp_path / "state", learner.to_state())
    resumed = kind.learner.from_state(read_checkpoint(tmp_path / "state"), WORLD)
    assert_equal_states(resumed.to_state(), learner.to_state())
    rows = given_rows(700)
    for run in (learner, resumed):
        run.run(400)
        run.consume(rows[:300])
    assert_equal_states(resumed.to_state(), learner.to_state())
    np.testing.assert_array_equal(resumed.result().covariance, learner.result().covariance)


@every_learner
def test_a_pickled_learner_goes_on_with_the_same_bits(kind):
    learner = fresh(kind).run(421)
    copied = pickle.loads(pickle.dumps(learner))
    assert_same_steps(copied.run(300), learner.run(300))
    assert_equal_states(copied.to_state(), learner.to_state())


@every_learner
def test_a_state_of_another_problem_or_learner_is_refused(kind):
    state = fresh(kind).run(100).to_state()
    with pytest.raises(BadState, match=r"state\.problem\.params must be that of the problem given"):
        kind.learner.from_state(state, problem("iid-linear", dim=DIM, noise=2.0))
    with pytest.raises(BadState, match=r"state\.kind must be"):
        kind.learner.from_state(state | {"kind": "another"}, WORLD)
    with pytest.raises(BadState, match=r"state\.theta must"):
        kind.learner.from_state(state | {"theta": np.full(DIM, np.nan)}, WORLD)
    with pytest.raises(BadState, match=r"state\.kept must name"):
        kind.learner.from_state(state | {"kept": {"odd": 1}}, WORLD)


@every_learner
@pytest.mark.parametrize("warm_start", [0, 40])
def test_a_call_with_a_row_that_is_not_finite_is_refused_whole(kind, warm_start):
    rows = given_rows(600)
    for bad, value in ((23, np.nan), (411, np.inf)):
        broken = rows.copy()
        broken[bad, 1] = value
        learner = fresh(kind, warm_start=warm_start)
        before = learner.to_state()
        with pytest.raises(InputError, match=f"row {bad} of this call has {value} in column 1. No row of the call"):
            learner.consume(broken)
        assert_equal_states(learner.to_state(), before)
        assert_same_steps(learner.consume(rows), fresh(kind, warm_start=warm_start).consume(rows))


def refuses_a_long_call(learner):
    """A bad row in the last chunk of a long call; the learner and the very objects that watch it stay as they were."""
    attached, before = learner.watchers, learner.to_state()
    rows = np.tile(given_rows(1_000, seed=4), (20, 1))
    rows[17_003, 1] = np.nan
    with pytest.raises(
        InputError, match=r"row 17003 of this call has nan in column 1\. No row of the call was learned$"
    ):
        learner.consume(rows)
    assert all(one is other for one, other in zip(learner.watchers, attached, strict=True))
    assert_equal_states(learner.to_state(), before)


@every_learner
@pytest.mark.parametrize("start", [{}, {"warm_start": 300}, {"burn_in": 18_000}])
def test_a_long_call_with_a_late_bad_row_is_refused_whole(kind, start):
    def watched():
        attached = [watcher(DIM) for watcher in (watchers.OverlappingBatchMeans, watchers.EqualBatchMeans)]
        return kind.learner(WORLD, step=STEP, watchers=attached, seed=3, **kind.options, **start)

    rows = given_rows(500)
    learner, other = watched().consume(rows[:200]), watched().consume(rows[:200])
    refuses_a_long_call(learner)
    assert_equal_states(learner.consume(rows[200:]).to_state(), other.consume(rows[200:]).to_state())


WATCHERS = {
    "overlapping": watchers.OverlappingBatchMeans,
    "overlapping-diagonal": lambda dim: watchers.OverlappingBatchMeans(dim, view="diagonal"),
    "overlapping-projection": lambda dim: watchers.OverlappingBatchMeans(
        dim, view="projection", projection=np.ones((1, dim))
    ),
    "equal": watchers.EqualBatchMeans,
    "fixed": watchers.FixedBatchMeans,
    "increasing": lambda dim: watchers.IncreasingBatchMeans(dim, planned_rows=5_000),
    "flat-top": watchers.FlatTopBatchMeans,
    "spectral": watchers.SpectralVariance,
    "random-scaling": watchers.RandomScaling,
    "functional-scaling": lambda dim: watchers.FunctionalScaling(dim, power=1.0, view="diagonal"),
    "extrapolated": lambda dim: watchers.Extrapolated(dim, step=STEP),
    "burn-in": lambda dim: watchers.BurnIn(lambda: watchers.EqualBatchMeans(dim)),
    "sequence": lambda dim: watchers.ConfidenceSequence(watchers.EqualBatchMeans(dim)),
}


def test_every_kind_of_watcher_is_in_the_table():
    kinds = {getattr(watchers, name) for name in watchers.__all__} - {watchers.Watcher}
    assert kinds == {type(make(DIM)) for make in WATCHERS.values()}


@pytest.mark.parametrize("make", WATCHERS.values(), ids=WATCHERS)
@pytest.mark.parametrize("seen", [0, 700])
def test_every_watcher_of_a_refused_call_stays_as_it_was(make, seen):
    rows = given_rows(1_000)
    watcher, other = make(DIM), make(DIM)
    inner = watcher.reported if isinstance(watcher, WrappingWatcher) else watcher
    learner, untouched = (learners.SGD(WORLD, watchers=[w]).consume(rows[:seen]) for w in (watcher, other))
    inner_before = inner.to_state()
    refuses_a_long_call(learner)
    assert_equal_states(inner.to_state(), inner_before)
    assert_equal_states(learner.consume(rows[seen:]).to_state(), untouched.consume(rows[seen:]).to_state())
    assert_equal_states(watcher.to_state(), other.to_state())


@every_learner
def test_run_and_consume_give_the_learner_back(kind):
    learner = fresh(kind)
    assert learner.run(3) is learner
    assert learner.consume(given_rows(2)) is learner
