"""Laws that every watcher obeys, held over one table.

A new estimator is a new row of `ESTIMATORS`: how to build it, which configurations to try, and its slow twin.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.signal import lfilter

import twins
from halfwidth.errors import CannotPool, InputError, NotEnoughData
from halfwidth.inference.scaling_laws import MEAN_SQUARE
from halfwidth.schedules import PowerStep
from halfwidth.watchers import (
    BurnIn,
    ConfidenceSequence,
    EqualBatchMeans,
    Extrapolated,
    FixedBatchMeans,
    FlatTopBatchMeans,
    FunctionalScaling,
    IncreasingBatchMeans,
    OverlappingBatchMeans,
    RandomScaling,
    SpectralVariance,
    Watcher,
)

VIEWS = ("full", "diagonal", "projection")
few_examples = settings(max_examples=8)


def average(thetas, configuration):
    return thetas.mean(axis=0)


@dataclass(frozen=True)
class Estimator:
    """`twin(thetas, configuration)` gives the full covariance and its weight when pooled; `centre` the estimate."""

    make: Callable[..., Watcher]
    configurations: Any
    twin: Any
    usual: Any  # a configuration under which 300 rows are enough
    other: Any = None  # one that cannot be pooled with the usual one
    rows: int = 2  # enough for a covariance, in every configuration
    views: tuple[str, ...] = VIEWS
    semidefinite: bool = True
    pools: bool = True
    centre: Any = average

    def smooth(self, view):
        """Functionals that are no quadratic form know variances only."""
        return view == "diagonal" or "full" not in self.views


step_exponents = st.floats(0.501, 0.9)


@st.composite
def block_plans(draw):
    a = draw(step_exponents)
    stretch = draw(st.none() | st.floats(1.01, 3.0))
    exponent = None if stretch is None else stretch / (1.0 - a)
    return {"step_exponent": a, "block_constant": draw(st.floats(0.5, 5.0)), "block_exponent": exponent}


def overlapping_twin(thetas, configuration):
    beta = configuration.get("block_exponent") or 2.0 / (1.0 - configuration.get("step_exponent", 0.505))
    return twins.overlapping_batch_means(thetas, configuration.get("block_constant", 2.0), beta)


@st.composite
def increasing_plans(draw):
    a, batches = draw(st.floats(0.501, 0.6)), draw(st.integers(2, 4))
    least = int((batches + 1) ** (1.0 / (1.0 - a))) + 1
    return {"step_exponent": a, "batches": batches, "planned_rows": draw(st.integers(least, 2 * least))}


def constants(low, high, **fixed):
    drawn = {"step_exponent": st.floats(0.501, 0.7), "batch_constant": st.floats(low, high)}
    return st.fixed_dictionaries(drawn | {name: st.just(value) for name, value in fixed.items()})


def equal_twin(thetas, configuration):
    return twins.equal_batch_means(
        thetas,
        configuration.get("step_exponent", 0.505),
        configuration.get("batch_constant", 1.0),
        configuration.get("lugsail", False),
    )


def functional_twin(thetas, configuration):
    power = configuration["power"]
    return np.diag(twins.path_functional(thetas, power, MEAN_SQUARE[power])), len(thetas)


def sequence(dim, tightest=1_000, **configuration):
    return ConfidenceSequence(EqualBatchMeans(dim, **configuration), tightest=tightest)


STEP = PowerStep(2.0, 0.7)


def extrapolation(thetas, configuration):
    return twins.extrapolation(thetas, STEP(np.arange(1, len(thetas) + 1)), configuration["batches"])


def burned(dim, share=0.3, first_start=9, batches=4, **configuration):
    return BurnIn(lambda: FixedBatchMeans(dim, batches=batches, **configuration), share=share, first_start=first_start)


def unburned(thetas, configuration):
    return thetas[twins.burned_start(len(thetas), configuration["share"], configuration["first_start"]) :]


ESTIMATORS = {
    "overlapping": Estimator(OverlappingBatchMeans, block_plans(), overlapping_twin, {}, {"step_exponent": 0.6}),
    "increasing": Estimator(
        IncreasingBatchMeans,
        increasing_plans(),
        lambda thetas, configuration: twins.increasing_batch_means(thetas, **configuration),
        {"planned_rows": 300, "batches": 4, "step_exponent": 0.505},
        {"planned_rows": 200},
        rows=120,
    ),
    "equal": Estimator(EqualBatchMeans, constants(0.05, 2.0), equal_twin, {}, {"batch_constant": 2.0}, rows=4),
    "lugsail": Estimator(
        EqualBatchMeans,
        constants(0.05, 1.0, lugsail=True),
        equal_twin,
        {"lugsail": True, "batch_constant": 0.1},
        {"lugsail": False, "batch_constant": 0.1},
        rows=64,
        semidefinite=False,
    ),
    "fixed": Estimator(
        FixedBatchMeans,
        st.fixed_dictionaries({"batches": st.integers(2, 32)}),
        lambda thetas, configuration: twins.fixed_batch_means(thetas, configuration.get("batches", 10)),
        {},
        {"batches": 8},
        rows=32,
    ),
    "flat-top": Estimator(
        FlatTopBatchMeans,
        constants(0.02, 0.12),
        lambda thetas, c: twins.flat_top(thetas, c.get("step_exponent", 0.505), c["batch_constant"]),
        {"batch_constant": 0.1},
        {"batch_constant": 0.2},
        rows=64,
        semidefinite=False,
    ),
    "spectral": Estimator(
        SpectralVariance,
        constants(0.05, 2.0),
        lambda thetas, c: twins.bartlett(thetas, c.get("step_exponent", 0.505), c.get("batch_constant", 1.0)),
        {},
        {"batch_constant": 2.0},
        rows=4,
    ),
    "random-scaling": Estimator(RandomScaling, st.just({}), lambda thetas, _: twins.random_scaling(thetas), {}),
    "functional": Estimator(
        FunctionalScaling,
        st.fixed_dictionaries({"power": st.sampled_from([1, 4, 6])}),
        functional_twin,
        {"power": 4},
        rows=64,
        views=("diagonal", "projection"),
        pools=False,
    ),
    "sequence": Estimator(sequence, constants(0.05, 2.0), equal_twin, {}, rows=4, pools=False),
    "extrapolated": Estimator(
        Extrapolated,
        st.fixed_dictionaries({"batches": st.integers(4, 16), "step": st.just(STEP)}),
        lambda thetas, configuration: (extrapolation(thetas, configuration)[1], 1.0),
        {"batches": 8, "step": STEP},
        rows=32,
        pools=False,
        centre=lambda thetas, configuration: extrapolation(thetas, configuration)[0],
    ),
    "burned": Estimator(
        burned,
        st.fixed_dictionaries(
            {"share": st.floats(0.1, 0.5), "first_start": st.integers(1, 30), "batches": st.integers(2, 6)}
        ),
        lambda thetas, c: twins.fixed_batch_means(unburned(thetas, c), c["batches"]),
        {"share": 0.3, "first_start": 9, "batches": 4},
        rows=60,
        pools=False,
        centre=lambda thetas, c: unburned(thetas, c).mean(axis=0),
    ),
}


def table(keep=lambda estimator: True):
    rows = [
        pytest.param(estimator, view, id=f"{name}-{view}")
        for name, estimator in ESTIMATORS.items()
        for view in estimator.views
        if keep(estimator)
    ]
    return pytest.mark.parametrize(("estimator", "view"), rows)


def estimators(keep):
    kept = {name: estimator for name, estimator in ESTIMATORS.items() if keep(estimator)}
    return pytest.mark.parametrize("estimator", kept.values(), ids=kept)


every_watcher = table()
every_pooling_watcher = table(lambda estimator: estimator.pools)
every_estimator = estimators(lambda estimator: True)
every_full_estimator = estimators(lambda estimator: "full" in estimator.views)
every_semidefinite_estimator = estimators(lambda estimator: "full" in estimator.views and estimator.semidefinite)


@dataclass(frozen=True)
class Run:
    """A trajectory with a configuration; `watcher()` is always a fresh one."""

    estimator: Estimator
    view: str
    configuration: dict
    thetas: np.ndarray
    projection: np.ndarray

    def watcher(self, **changes):
        projection = self.projection if self.view == "projection" else None
        settings = {"view": self.view, "projection": projection, **self.configuration, **changes}
        return self.estimator.make(self.thetas.shape[1], **settings)

    def seen(self, thetas):
        """What the view shows of full quantities in R^dim."""
        return thetas @ self.projection.T if self.view == "projection" else thetas

    def twin(self, thetas):
        covariance, weight = self.estimator.twin(self.seen(thetas), self.configuration)
        return (np.diag(covariance) if self.estimator.smooth(self.view) else covariance), weight

    def centre(self, thetas):
        return self.estimator.centre(self.seen(thetas), self.configuration)


def trajectory(seed, rows, dim):
    """Correlated coordinates that remember their past, of different sizes and places."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((rows, dim)) @ rng.standard_normal((dim, dim))
    memory = rng.uniform(0.0, 0.95)
    return lfilter([1.0], [1.0, -memory], noise, axis=0) + rng.normal(0.0, 3.0, dim)


def usual_run(estimator, view, seed=1, rows=300, dim=3):
    return Run(estimator, view, estimator.usual, trajectory(seed, rows, dim), np.ones((1, dim)))


def assume_positive(run, *trajectories):
    """Estimators with a bias correction refuse a negative variance; the laws are about the others."""
    if not run.estimator.semidefinite:
        for thetas in trajectories:
            assume(np.all(np.diag(run.estimator.twin(run.seen(thetas), run.configuration)[0]) > 0))


@st.composite
def runs(draw, estimator, view, min_rows=2):
    dim = draw(st.integers(1, 6))
    rows = draw(st.integers(max(min_rows, estimator.rows), 500))
    seed = draw(st.integers(0, 2**32 - 1))
    projection = np.random.default_rng([seed, 1]).standard_normal((draw(st.integers(1, 3)), dim))
    configuration = draw(estimator.configurations)
    run = Run(estimator, view, configuration, trajectory(seed, rows, dim), projection)
    assume_positive(run, run.thetas)
    return run


def chunked(data, thetas):
    """The same rows, cut anywhere, empty pieces included."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(thetas)), max_size=8)))
    return np.split(thetas, cuts)


def fed(watcher, *chunks):
    for chunk in chunks:
        watcher.update_many(chunk)
    return watcher


def assert_covariances_agree(found, expected, rtol):
    """Every entry, relative to the standard deviations of its row and column."""
    deviations = np.sqrt(expected if expected.ndim == 1 else np.diag(expected))
    scale = deviations**2 if expected.ndim == 1 else np.outer(deviations, deviations)
    assert found.shape == expected.shape
    assert np.max(np.abs(found - expected) / scale) <= rtol


def assert_same_state(one, other):
    assert one.keys() == other.keys()
    for key, value in one.items():
        np.testing.assert_array_equal(other[key], value, err_msg=key)


@every_watcher
@few_examples
@given(data=st.data())
def test_any_chunking_equals_the_definition(estimator, view, data):
    run = data.draw(runs(estimator, view))
    watcher = fed(run.watcher(), *chunked(data, run.thetas))
    assert watcher.n_seen == len(run.thetas)
    np.testing.assert_allclose(watcher.estimate(), run.centre(run.thetas), rtol=1e-10, atol=1e-10)
    assert_covariances_agree(watcher.covariance(), run.twin(run.thetas)[0], 1e-10)


@every_watcher
@few_examples
@given(data=st.data())
def test_no_digits_are_lost_near_1e8(estimator, view, data):
    run = data.draw(runs(estimator, view, min_rows=10))
    far = run.thetas + 1e8
    watcher = fed(run.watcher(), *chunked(data, far))
    assert_covariances_agree(watcher.covariance(), run.twin(far - 1e8)[0], 1e-6)
    np.testing.assert_allclose(watcher.estimate(), run.centre(far), rtol=1e-13, atol=1e-6)


@every_watcher
def test_long_blocks_equal_the_definition(estimator, view):
    """Blocks longer than any internal buffer."""
    run = Run(estimator, view, estimator.usual, trajectory(5, 15_000, 2), np.array([[1.0, -2.0]]))
    assert_covariances_agree(run.watcher().update_many(run.thetas).covariance(), run.twin(run.thetas)[0], 1e-10)


@every_watcher
@few_examples
@given(data=st.data())
def test_looping_update_equals_update_many(estimator, view, data):
    run = data.draw(runs(estimator, view))
    looped = run.watcher()
    for theta in run.thetas:
        looped.update(theta)
    at_once = run.watcher().update_many(run.thetas)
    assert looped.n_seen == at_once.n_seen
    assert_covariances_agree(looped.covariance(), at_once.covariance(), 1e-10)


@every_watcher
@few_examples
@given(data=st.data(), factor=st.floats(1e-6, 1e6))
def test_covariance_scales_with_the_square(estimator, view, data, factor):
    run = data.draw(runs(estimator, view))
    one = run.watcher().update_many(run.thetas)
    other = run.watcher().update_many(factor * run.thetas)
    assert_covariances_agree(other.covariance(), factor**2 * one.covariance(), 1e-10)


@every_watcher
@few_examples
@given(data=st.data())
def test_each_coordinate_keeps_its_own_scale(estimator, view, data):
    """A coordinate a million times larger takes no digits from the others."""
    run = data.draw(runs(estimator, view))
    scales = 10.0 ** np.linspace(-6, 6, run.thetas.shape[1])
    changes = {"projection": run.projection / scales} if view == "projection" else {}
    found = run.watcher(**changes).update_many(run.thetas * scales)
    expected, _ = run.twin(run.thetas)
    if view == "full":
        expected = expected * np.outer(scales, scales)
    elif view == "diagonal":
        expected = expected * scales**2
    assert_covariances_agree(found.covariance(), expected, 1e-9)


@every_full_estimator
@few_examples
@given(data=st.data())
def test_permuting_coordinates_permutes_the_covariance(estimator, data):
    run = data.draw(runs(estimator, "full"))
    order = np.array(data.draw(st.permutations(range(run.thetas.shape[1]))))
    plain = run.watcher().update_many(run.thetas).covariance()
    permuted = run.watcher().update_many(run.thetas[:, order]).covariance()
    assert_covariances_agree(permuted, plain[np.ix_(order, order)], 1e-10)


@every_full_estimator
@few_examples
@given(data=st.data())
def test_views_show_the_same_covariance(estimator, data):
    run = data.draw(runs(estimator, "full"))
    projected_run = Run(estimator, "projection", run.configuration, run.thetas, run.projection)
    assume_positive(projected_run, run.thetas)
    full = run.watcher().update_many(run.thetas).covariance()
    diagonal = run.watcher(view="diagonal").update_many(run.thetas).covariance()
    projected = run.watcher(view="projection", projection=run.projection).update_many(run.thetas).covariance()
    assert_covariances_agree(diagonal, np.diag(full), 1e-10)
    assert_covariances_agree(projected, run.projection @ full @ run.projection.T, 1e-10)


@every_semidefinite_estimator
@few_examples
@given(data=st.data())
def test_covariance_is_symmetric_and_positive_semidefinite(estimator, data):
    covariance = (run := data.draw(runs(estimator, "full"))).watcher().update_many(run.thetas).covariance()
    np.testing.assert_array_equal(covariance, covariance.T)
    eigenvalues = np.linalg.eigvalsh(covariance)
    assert eigenvalues[0] >= -1e-10 * eigenvalues[-1]


@every_watcher
@few_examples
@given(data=st.data())
def test_a_restored_state_continues_identically(estimator, view, data):
    run = data.draw(runs(estimator, view))
    cut = data.draw(st.integers(0, len(run.thetas)))
    watcher = run.watcher().update_many(run.thetas[:cut])
    restored = type(watcher).from_state(watcher.to_state())
    assert_same_state(watcher.to_state(), restored.to_state())
    watcher.update_many(run.thetas[cut:])
    restored.update_many(run.thetas[cut:])
    assert_same_state(watcher.to_state(), restored.to_state())
    np.testing.assert_array_equal(watcher.covariance(), restored.covariance())


@every_watcher
def test_a_state_is_plain_and_its_own(estimator, view):
    run = usual_run(estimator, view, 1, 300)
    watcher = run.watcher().update_many(run.thetas)
    before = watcher.covariance()
    state = watcher.to_state()
    assert {"kind", "version"} <= state.keys()
    assert all(isinstance(value, (str, int, float, list, np.ndarray, type(None))) for value in state.values())
    for value in state.values():
        if isinstance(value, np.ndarray):
            value += 1
    np.testing.assert_array_equal(watcher.covariance(), before)
    watcher.update_many(run.thetas[:1])
    np.testing.assert_array_equal(
        watcher.covariance(), run.watcher().update_many(run.thetas).update_many(run.thetas[:1]).covariance()
    )
    assert watcher.n_seen == 301


@every_watcher
@pytest.mark.parametrize("change", [{"kind": "other"}, {"version": -1}])
def test_a_foreign_state_is_refused(estimator, view, change):
    run = usual_run(estimator, view)
    watcher = run.watcher().update_many(run.thetas)
    with pytest.raises(InputError, match="state"):
        type(watcher).from_state(watcher.to_state() | change)


@every_watcher
def test_a_state_with_an_array_of_another_shape_is_refused(estimator, view):
    run = usual_run(estimator, view)
    watcher = run.watcher().update_many(run.thetas)
    state = watcher.to_state()
    names = [name for name, value in state.items() if isinstance(value, np.ndarray) and "projection" not in name]
    assert names
    for name in names:
        with pytest.raises(InputError, match="state"):
            type(watcher).from_state(state | {name: np.zeros((7, 7, 7))})


def independent(run, data, how_many):
    """Trajectories for the same configuration, each with its own length."""
    seeds = data.draw(st.lists(st.integers(0, 2**32 - 1), min_size=how_many, max_size=how_many))
    least = max(run.estimator.rows, 80)
    lengths = data.draw(st.lists(st.integers(least, least + 80), min_size=how_many, max_size=how_many))
    pieces = [trajectory(seed, n, run.thetas.shape[1]) for seed, n in zip(seeds, lengths, strict=True)]
    assume_positive(run, *pieces)
    return pieces


@every_pooling_watcher
@few_examples
@given(data=st.data())
def test_pooling_weights_by_definition(estimator, view, data):
    run = data.draw(runs(estimator, view))
    pieces = independent(run, data, 2)
    pooled = run.watcher().update_many(pieces[0]).pool(run.watcher().update_many(pieces[1]))
    (one, w1), (two, w2) = (run.twin(piece) for piece in pieces)
    assert pooled.n_seen == sum(map(len, pieces))
    np.testing.assert_allclose(pooled.estimate(), run.seen(np.vstack(pieces).mean(axis=0)), rtol=1e-10, atol=1e-10)
    assert_covariances_agree(pooled.covariance(), (w1 * one + w2 * two) / (w1 + w2), 1e-10)


@every_pooling_watcher
@few_examples
@given(data=st.data())
def test_pooling_is_associative_and_commutative(estimator, view, data):
    run = data.draw(runs(estimator, view))
    a, b, c = (run.watcher().update_many(piece) for piece in independent(run, data, 3))
    left, right, other = a.pool(b).pool(c), a.pool(b.pool(c)), c.pool(b).pool(a)
    for pooled in (right, other):
        assert pooled.n_seen == left.n_seen
        np.testing.assert_allclose(pooled.estimate(), left.estimate(), rtol=1e-10, atol=1e-10)
        assert_covariances_agree(pooled.covariance(), left.covariance(), 1e-10)
    restored = type(left).from_state(left.to_state())
    assert_same_state(restored.to_state(), left.to_state())


@every_pooling_watcher
def test_pooled_laws_do_not_depend_on_the_order(estimator, view):
    run = usual_run(estimator, view, 1, 300)
    a, b, c = (run.watcher().update_many(trajectory(s, 400 + 300 * s, 3)) for s in range(3))
    left, other = a.pool(b).pool(c).law(), c.pool(b.pool(a)).law()
    assert left.quantile(0.95) == pytest.approx(other.quantile(0.95), rel=1e-12)
    assert left.degrees_of_freedom > max(w.law().degrees_of_freedom for w in (a, b, c))


@every_pooling_watcher
def test_a_pooled_watcher_is_not_updated_and_leaves_its_parts_alone(estimator, view):
    run = usual_run(estimator, view, 1, 300)
    a, b = run.watcher().update_many(run.thetas), run.watcher().update_many(run.thetas[::-1])
    before = a.to_state()
    pooled = a.pool(b)
    with pytest.raises(CannotPool, match="not updated"):
        pooled.update_many(run.thetas)
    with pytest.raises(CannotPool, match="not updated"):
        pooled.update(run.thetas[0])
    assert_same_state(before, a.to_state())
    assert a.update_many(run.thetas).n_seen == 600


@every_pooling_watcher
def test_what_cannot_be_joined_raises(estimator, view):
    run = usual_run(estimator, view, 1, 300)
    watcher = run.watcher().update_many(run.thetas)
    wider = usual_run(estimator, view, dim=4)
    other_view = {"view": "full" if view == "diagonal" else "diagonal", "projection": None}
    others = [
        wider.watcher().update_many(wider.thetas),
        run.watcher(**other_view).update_many(run.thetas),
        "no watcher",
    ]
    if estimator.other is not None:
        others.append(run.watcher(**estimator.other).update_many(run.thetas))
    for other in others:
        with pytest.raises(CannotPool, match="cannot pool"):
            watcher.pool(other)
    with pytest.raises(NotEnoughData, match=r"pooling needs at least \d+ rows; 0 were seen"):
        watcher.pool(run.watcher())


@estimators(lambda estimator: estimator.pools)
def test_different_projections_cannot_be_joined(estimator):
    thetas = trajectory(1, 300, 3)
    one, two = (
        estimator.make(3, view="projection", projection=p, **estimator.usual).update_many(thetas)
        for p in (np.ones((1, 3)), np.eye(3))
    )
    with pytest.raises(CannotPool):
        one.pool(two)


@table(lambda estimator: not estimator.pools)
def test_what_has_no_joint_law_is_never_pooled(estimator, view):
    run = usual_run(estimator, view)
    one, two = (run.watcher().update_many(trajectory(seed, 300, 3)) for seed in (1, 2))
    with pytest.raises(CannotPool, match="cannot pool"):
        one.pool(two)


@every_watcher
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("seen", [0, 100])
def test_a_bad_row_leaves_the_state_as_it_was(estimator, view, bad, seen):
    run = usual_run(estimator, view, 2, 200)
    watcher = run.watcher().update_many(run.thetas[:seen])
    before = watcher.to_state()
    rows = run.thetas.copy()
    rows[150, 2] = bad
    with pytest.raises(InputError, match=f"row 150 of this call has {bad} in coordinate 2"):
        watcher.update_many(rows)
    with pytest.raises(InputError, match="finite"):
        watcher.update(rows[150])
    assert_same_state(before, watcher.to_state())


@every_watcher
@pytest.mark.parametrize("shape", [(3,), (5, 2), (5, 4), (2, 5, 3), ()])
def test_a_wrong_shape_leaves_the_state_as_it_was(estimator, view, shape):
    run = usual_run(estimator, view, 2, 200)
    watcher = run.watcher().update_many(run.thetas)
    before = watcher.to_state()
    with pytest.raises(InputError, match=r"thetas must have shape \(m, 3\)"):
        watcher.update_many(np.zeros(shape))
    assert_same_state(before, watcher.to_state())


@every_watcher
def test_too_few_rows_say_how_many_are_needed(estimator, view):
    run = usual_run(estimator, view, 2, 200)
    watcher = run.watcher()
    with pytest.raises(NotEnoughData, match=r"an estimate needs at least \d+ rows; 0 were seen"):
        watcher.estimate()
    watcher.update(run.thetas[0])
    with pytest.raises(NotEnoughData, match=r"a covariance needs at least \d+ rows; 1 were seen"):
        watcher.covariance()
    for critical in ("calibrated", "normal"):
        with pytest.raises(NotEnoughData, match=r"needs at least \d+ rows; 1 were seen"):
            watcher.interval(critical=critical)


@every_watcher
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"level": 0.0}, "level must lie strictly between 0 and 1"),
        ({"level": 1.0}, "level must lie strictly"),
        ({"level": float("nan")}, "level must lie strictly"),
        ({"level": "high"}, "level must lie strictly"),
        ({"level": True}, "level must lie strictly"),
        ({"critical": "t"}, "critical must be 'calibrated' or 'normal'; got 't'"),
        ({"direction": np.ones(7)}, "direction must be finite, of shape"),
        ({"direction": [[[1.0]]]}, "direction must be finite, of shape"),
    ],
)
def test_a_bad_question_is_refused(estimator, view, arguments, message):
    run = usual_run(estimator, view, 2, 500)
    watcher = run.watcher().update_many(run.thetas)
    with pytest.raises(InputError, match=message):
        watcher.interval(**arguments)


@every_estimator
@pytest.mark.parametrize(
    ("dim", "settings", "message"),
    [
        (0, {}, "dim must be an integer of at least 1"),
        (2.0, {}, "dim must be an integer"),
        (2, {"view": "half"}, "view must be 'full', 'diagonal' or 'projection'"),
        (2, {"view": "projection"}, "projection must be given exactly when view='projection'"),
        (2, {"projection": np.eye(2)}, "projection must be given exactly when"),
        (2, {"view": "projection", "projection": np.eye(3)}, r"projection must be a finite array of shape \(p, 2\)"),
        (2, {"view": "projection", "projection": [1.0, 2.0]}, "projection must be a finite array"),
        (2, {"view": "projection", "projection": np.zeros((0, 2))}, "projection must be a finite array"),
        (2, {"view": "projection", "projection": [[np.nan, 1.0]]}, "projection must be a finite array"),
    ],
)
def test_a_bad_view_is_refused(estimator, dim, settings, message):
    with pytest.raises(InputError, match=message):
        estimator.make(dim, **estimator.usual | settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"step_exponent": 0.5}, "1/2 < a < 1"),
        ({"block_exponent": 2.0}, r"exceed 1/\(1-a\)"),
        ({"block_constant": 0.01}, "strictly increase"),
    ],
)
def test_a_bad_block_plan_is_refused(settings, message):
    with pytest.raises(InputError, match=message):
        OverlappingBatchMeans(2, **settings)


@every_watcher
def test_the_state_does_not_grow_with_the_stream(estimator, view):
    run = Run(estimator, view, estimator.usual, np.zeros((0, 5)), np.ones((2, 5)))
    rng = np.random.default_rng(0)

    def size(watcher):
        return sum(np.asarray(value).nbytes for value in watcher.to_state().values() if value is not None)

    watcher = run.watcher().update_many(rng.standard_normal((1_000, 5)))
    small = size(watcher)
    for _ in range(10):
        watcher.update_many(rng.standard_normal((20_000, 5)))
    assert size(watcher) == small


@every_estimator
def test_a_projection_never_allocates_a_square_of_the_dimension(estimator):
    dim = 20_000  # a square of it would take 3.2 GB
    watcher = estimator.make(dim, view="projection", projection=np.ones((1, dim)), **estimator.usual)
    watcher.update_many(np.random.default_rng(0).standard_normal((200, dim)))
    assert watcher.covariance().size == 1
    assert max(np.asarray(value).size for value in watcher.to_state().values() if value is not None) == dim


@every_watcher
@few_examples
@given(data=st.data())
def test_the_callers_arrays_are_left_alone(estimator, view, data):
    run = data.draw(runs(estimator, view))
    given_rows = run.thetas.copy()
    watcher = run.watcher().update_many(run.thetas)
    covariance = watcher.covariance()
    covariance += 1.0
    watcher.estimate()[:] = 0.0
    np.testing.assert_array_equal(run.thetas, given_rows)
    assert_covariances_agree(watcher.covariance(), run.twin(run.thetas)[0], 1e-10)
