"""Laws that every watcher obeys, held over one table.

A new estimator is a new row of `ESTIMATORS`: how to build it, which configurations to try, and its slow twin.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twins
from halfwidth.errors import CannotPool, InputError, NotEnoughData
from halfwidth.watchers import OverlappingBatchMeans, Watcher


@dataclass(frozen=True)
class Estimator:
    """`twin(thetas, configuration)` gives the full covariance and its weight when pooled."""

    watcher: type[Watcher]
    configurations: Any
    twin: Any


@st.composite
def block_plans(draw):
    a = draw(st.floats(0.501, 0.9))
    stretch = draw(st.none() | st.floats(1.01, 3.0))
    exponent = None if stretch is None else stretch / (1.0 - a)
    return {"step_exponent": a, "block_constant": draw(st.floats(0.5, 5.0)), "block_exponent": exponent}


def overlapping_twin(thetas, configuration):
    beta = configuration["block_exponent"] or 2.0 / (1.0 - configuration["step_exponent"])
    return twins.overlapping_batch_means(thetas, configuration["block_constant"], beta)


ESTIMATORS = {"overlapping": Estimator(OverlappingBatchMeans, block_plans(), overlapping_twin)}
VIEWS = ("full", "diagonal", "projection")
TABLE = [pytest.param(estimator, view, id=f"{name}-{view}") for name, estimator in ESTIMATORS.items() for view in VIEWS]
every_watcher = pytest.mark.parametrize(("estimator", "view"), TABLE)
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)


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
        return self.estimator.watcher(self.thetas.shape[1], **settings)

    def seen(self, thetas):
        """What the view shows of full quantities in R^dim."""
        return thetas @ self.projection.T if self.view == "projection" else thetas

    def twin(self, thetas):
        covariance, weight = self.estimator.twin(thetas, self.configuration)
        if self.view == "diagonal":
            return np.diag(covariance), weight
        return (self.projection @ covariance @ self.projection.T if self.view == "projection" else covariance), weight


def trajectory(seed, rows, dim):
    """Correlated coordinates that remember their past, of different sizes and places."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((rows, dim)) @ rng.standard_normal((dim, dim))
    memory = rng.uniform(0.0, 0.95)
    for k in range(1, rows):
        noise[k] += memory * noise[k - 1]
    return noise + rng.normal(0.0, 3.0, dim)


@st.composite
def runs(draw, estimator, view, min_rows=2, max_rows=250):
    dim = draw(st.integers(1, 6))
    rows = draw(st.integers(min_rows, max_rows))
    seed = draw(st.integers(0, 2**32 - 1))
    projection = np.random.default_rng([seed, 1]).standard_normal((draw(st.integers(1, 3)), dim))
    configuration = draw(estimator.configurations)
    return Run(estimator, view, configuration, trajectory(seed, rows, dim), projection)


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
@given(data=st.data())
def test_any_chunking_equals_the_definition(estimator, view, data):
    run = data.draw(runs(estimator, view))
    watcher = fed(run.watcher(), *chunked(data, run.thetas))
    assert watcher.n_seen == len(run.thetas)
    np.testing.assert_allclose(watcher.estimate(), run.seen(run.thetas.mean(axis=0)), rtol=1e-10, atol=1e-10)
    assert_covariances_agree(watcher.covariance(), run.twin(run.thetas)[0], 1e-10)


@every_watcher
@given(data=st.data())
def test_no_digits_are_lost_near_1e8(estimator, view, data):
    run = data.draw(runs(estimator, view, min_rows=10))
    far = run.thetas + 1e8
    watcher = fed(run.watcher(), *chunked(data, far))
    assert_covariances_agree(watcher.covariance(), run.twin(far - 1e8)[0], 1e-6)
    np.testing.assert_allclose(watcher.estimate(), run.seen(far.mean(axis=0)), rtol=1e-14, atol=1e-6)


@every_watcher
def test_long_blocks_equal_the_definition(estimator, view):
    """Blocks longer than any internal buffer."""
    configuration = {"step_exponent": 0.505, "block_constant": 2.0, "block_exponent": None}
    run = Run(estimator, view, configuration, trajectory(5, 15_000, 2), np.array([[1.0, -2.0]]))
    assert_covariances_agree(run.watcher().update_many(run.thetas).covariance(), run.twin(run.thetas)[0], 1e-10)


@every_watcher
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
@given(data=st.data(), factor=st.floats(1e-6, 1e6))
def test_covariance_scales_with_the_square(estimator, view, data, factor):
    run = data.draw(runs(estimator, view))
    one = run.watcher().update_many(run.thetas)
    other = run.watcher().update_many(factor * run.thetas)
    assert_covariances_agree(other.covariance(), factor**2 * one.covariance(), 1e-10)


@every_watcher
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


@every_estimator
@given(data=st.data())
def test_permuting_coordinates_permutes_the_covariance(estimator, data):
    run = data.draw(runs(estimator, "full"))
    order = np.array(data.draw(st.permutations(range(run.thetas.shape[1]))))
    plain = run.watcher().update_many(run.thetas).covariance()
    permuted = run.watcher().update_many(run.thetas[:, order]).covariance()
    assert_covariances_agree(permuted, plain[np.ix_(order, order)], 1e-10)


@every_estimator
@given(data=st.data())
def test_views_show_the_same_covariance(estimator, data):
    run = data.draw(runs(estimator, "full"))
    full = run.watcher().update_many(run.thetas).covariance()
    diagonal = run.watcher(view="diagonal").update_many(run.thetas).covariance()
    projected = run.watcher(view="projection", projection=run.projection).update_many(run.thetas).covariance()
    assert_covariances_agree(diagonal, np.diag(full), 1e-10)
    assert_covariances_agree(projected, run.projection @ full @ run.projection.T, 1e-10)


@every_estimator
@given(data=st.data())
def test_covariance_is_symmetric_and_positive_semidefinite(estimator, data):
    covariance = (run := data.draw(runs(estimator, "full"))).watcher().update_many(run.thetas).covariance()
    np.testing.assert_array_equal(covariance, covariance.T)
    eigenvalues = np.linalg.eigvalsh(covariance)
    assert eigenvalues[0] >= -1e-10 * eigenvalues[-1]


@every_watcher
@given(data=st.data())
def test_a_restored_state_continues_identically(estimator, view, data):
    run = data.draw(runs(estimator, view))
    cut = data.draw(st.integers(0, len(run.thetas)))
    watcher = run.watcher().update_many(run.thetas[:cut])
    restored = estimator.watcher.from_state(watcher.to_state())
    assert_same_state(watcher.to_state(), restored.to_state())
    watcher.update_many(run.thetas[cut:])
    restored.update_many(run.thetas[cut:])
    assert_same_state(watcher.to_state(), restored.to_state())
    np.testing.assert_array_equal(watcher.covariance(), restored.covariance())


@every_watcher
def test_a_state_is_plain_and_its_own(estimator, view):
    run = Run(estimator, view, {}, trajectory(1, 300, 3), np.ones((1, 3)))
    watcher = run.watcher().update_many(run.thetas)
    before = watcher.covariance()
    state = watcher.to_state()
    assert {"kind", "version"} <= state.keys()
    assert all(isinstance(value, (str, int, float, list, np.ndarray, type(None))) for value in state.values())
    for value in state.values():
        if isinstance(value, np.ndarray):
            value += 1.0
    watcher.update_many(run.thetas[:1])
    np.testing.assert_array_equal(
        watcher.covariance(), run.watcher().update_many(run.thetas).update_many(run.thetas[:1]).covariance()
    )
    assert not np.array_equal(before, watcher.covariance())


@every_watcher
@pytest.mark.parametrize("change", [{"kind": "other"}, {"version": -1}, {"scatter": np.zeros((7, 7))}])
def test_a_foreign_state_is_refused(estimator, view, change):
    run = Run(estimator, view, {}, trajectory(1, 300, 3), np.ones((1, 3)))
    state = run.watcher().update_many(run.thetas).to_state()
    with pytest.raises(InputError, match="state"):
        estimator.watcher.from_state(state | change)


def independent(run, data, how_many, min_rows=2):
    """Trajectories for the same configuration, each with its own length."""
    seeds = data.draw(st.lists(st.integers(0, 2**32 - 1), min_size=how_many, max_size=how_many))
    lengths = data.draw(st.lists(st.integers(min_rows, 120), min_size=how_many, max_size=how_many))
    return [trajectory(seed, n, run.thetas.shape[1]) for seed, n in zip(seeds, lengths, strict=True)]


@every_watcher
@given(data=st.data())
def test_pooling_weights_by_definition(estimator, view, data):
    run = data.draw(runs(estimator, view))
    pieces = independent(run, data, 2)
    pooled = run.watcher().update_many(pieces[0]).pool(run.watcher().update_many(pieces[1]))
    (one, w1), (two, w2) = (run.twin(piece) for piece in pieces)
    assert pooled.n_seen == sum(map(len, pieces))
    np.testing.assert_allclose(pooled.estimate(), run.seen(np.vstack(pieces).mean(axis=0)), rtol=1e-10, atol=1e-10)
    assert_covariances_agree(pooled.covariance(), (w1 * one + w2 * two) / (w1 + w2), 1e-10)


@every_watcher
@given(data=st.data())
def test_pooling_is_associative_and_commutative(estimator, view, data):
    run = data.draw(runs(estimator, view))
    a, b, c = (run.watcher().update_many(piece) for piece in independent(run, data, 3, min_rows=80))
    left, right, other = a.pool(b).pool(c), a.pool(b.pool(c)), c.pool(b).pool(a)
    for pooled in (right, other):
        assert pooled.n_seen == left.n_seen
        np.testing.assert_allclose(pooled.estimate(), left.estimate(), rtol=1e-10, atol=1e-10)
        assert_covariances_agree(pooled.covariance(), left.covariance(), 1e-10)
    restored = estimator.watcher.from_state(left.to_state())
    assert_same_state(restored.to_state(), left.to_state())


@every_watcher
def test_pooled_laws_do_not_depend_on_the_order(estimator, view):
    run = Run(estimator, view, {}, trajectory(1, 300, 3), np.ones((1, 3)))
    a, b, c = (run.watcher().update_many(trajectory(s, 400 + 300 * s, 3)) for s in range(3))
    left, other = a.pool(b).pool(c).law(), c.pool(b.pool(a)).law()
    assert left.quantile(0.95) == pytest.approx(other.quantile(0.95), rel=1e-12)
    assert left.degrees_of_freedom > max(w.law().degrees_of_freedom for w in (a, b, c))


@every_watcher
def test_a_pooled_watcher_is_not_updated_and_leaves_its_parts_alone(estimator, view):
    run = Run(estimator, view, {}, trajectory(1, 300, 3), np.ones((1, 3)))
    a, b = run.watcher().update_many(run.thetas), run.watcher().update_many(run.thetas[::-1])
    before = a.to_state()
    pooled = a.pool(b)
    with pytest.raises(CannotPool, match="not updated"):
        pooled.update_many(run.thetas)
    with pytest.raises(CannotPool, match="not updated"):
        pooled.update(run.thetas[0])
    assert_same_state(before, a.to_state())
    assert a.update_many(run.thetas).n_seen == 600


@every_watcher
def test_what_cannot_be_joined_raises(estimator, view):
    run = Run(estimator, view, {}, trajectory(1, 300, 3), np.ones((1, 3)))
    watcher = run.watcher().update_many(run.thetas)
    wider = Run(estimator, view, {}, trajectory(1, 300, 4), np.ones((1, 4)))
    other_view = {"view": "full" if view == "diagonal" else "diagonal", "projection": None}
    for other in (
        wider.watcher().update_many(wider.thetas),
        run.watcher(step_exponent=0.6).update_many(run.thetas),
        run.watcher(**other_view).update_many(run.thetas),
        "not a watcher",
    ):
        with pytest.raises(CannotPool, match="cannot pool"):
            watcher.pool(other)
    with pytest.raises(NotEnoughData, match="pooling needs at least 2 rows; 0 were seen"):
        watcher.pool(run.watcher())


@every_estimator
def test_different_projections_cannot_be_joined(estimator):
    thetas = trajectory(1, 300, 3)
    one, two = (
        estimator.watcher(3, view="projection", projection=p).update_many(thetas) for p in (np.ones((1, 3)), np.eye(3))
    )
    with pytest.raises(CannotPool):
        one.pool(two)


@every_watcher
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("seen", [0, 100])
def test_a_bad_row_leaves_the_state_as_it_was(estimator, view, bad, seen):
    run = Run(estimator, view, {}, trajectory(2, 200, 3), np.ones((1, 3)))
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
    run = Run(estimator, view, {}, trajectory(2, 200, 3), np.ones((1, 3)))
    watcher = run.watcher().update_many(run.thetas)
    before = watcher.to_state()
    with pytest.raises(InputError, match=r"thetas must have shape \(m, 3\)"):
        watcher.update_many(np.zeros(shape))
    assert_same_state(before, watcher.to_state())


@every_watcher
def test_too_few_rows_say_how_many_are_needed(estimator, view):
    run = Run(estimator, view, {}, trajectory(2, 200, 3), np.ones((1, 3)))
    watcher = run.watcher()
    with pytest.raises(NotEnoughData, match="an estimate needs at least 1 rows; 0 were seen"):
        watcher.estimate()
    watcher.update(run.thetas[0])
    with pytest.raises(NotEnoughData, match="a covariance needs at least 2 rows; 1 were seen"):
        watcher.covariance()
    watcher.update(run.thetas[1])
    for critical in ("calibrated", "normal"):
        with pytest.raises(NotEnoughData, match=r"an interval needs at least .* rows; 2 were seen"):
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
    run = Run(estimator, view, {}, trajectory(2, 500, 3), np.ones((1, 3)))
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
        estimator.watcher(dim, **settings)


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
    run = Run(estimator, view, {}, np.zeros((0, 5)), np.ones((2, 5)))
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
    watcher = estimator.watcher(dim, view="projection", projection=np.ones((1, dim)))
    watcher.update_many(np.random.default_rng(0).standard_normal((200, dim)))
    assert watcher.covariance().shape == (1, 1)
    assert max(np.asarray(value).size for value in watcher.to_state().values() if value is not None) == dim


@every_watcher
@settings(max_examples=15)
@given(data=st.data())
def test_the_callers_arrays_are_left_alone(estimator, view, data):
    run = data.draw(runs(estimator, view, max_rows=50))
    given_rows = run.thetas.copy()
    watcher = run.watcher().update_many(run.thetas)
    covariance = watcher.covariance()
    covariance += 1.0
    watcher.estimate()[:] = 0.0
    np.testing.assert_array_equal(run.thetas, given_rows)
    assert_covariances_agree(watcher.covariance(), run.twin(run.thetas)[0], 1e-10)
