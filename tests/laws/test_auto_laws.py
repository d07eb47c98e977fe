"""The laws of `test_learner_laws.py` for `auto`, which takes no step, warm start or burn-in: a table of its own.

A row of the table is a way in which rows come, and whether a Hessian and feedback are looked at.
"""

from dataclasses import replace

import numpy as np
import pytest

from halfwidth import Auto, OverlappingBatchMeans
from halfwidth.errors import BadState, InputError
from halfwidth.learners.auto import given
from halfwidth.learners.warm_start import collect_rows
from halfwidth.problems import problem
from halfwidth.state.checkpoint import read_checkpoint, write_checkpoint
from halfwidth.state.compare import first_difference

WORLDS = {
    "run": (problem("swap-game", rho=0.9), {}),
    "run-gradient": (problem("seed-logistic", dim=3), {"gradient_only": True}),
    "run-none": (problem("iid-linear", dim=2), {"feedback": "none"}),
    "consume": (problem("ar-logistic", dim=2), {}),
    "consume-gradient": (problem("ar-logistic", dim=2), {"gradient_only": True}),
    "consume-detect": (problem("ar-linear", dim=2), {"feedback": "detect", "chunk_rows": 32}),
}
table = pytest.mark.parametrize("way", WORLDS)
N = 9_000


def rows_of(world):
    rows = np.empty((N, world.row_size))
    collect_rows(world, np.random.default_rng(2), np.zeros(world.dim), np.array(world.state_0), rows)
    return rows


def fresh(way):
    world, options = WORLDS[way]
    return Auto(world, seed=7, watchers=[OverlappingBatchMeans(world.dim)], **options)


def go_on(learner, way, first, end):
    if way.startswith("run"):
        return learner.run(end - first)
    return learner.consume(rows_of(WORLDS[way][0])[first:end])


def assert_same(one, other):
    assert one.n_seen == other.n_seen
    np.testing.assert_array_equal(one.theta, other.theta)
    np.testing.assert_allclose(one.theta_bar, other.theta_bar, rtol=1e-12, atol=1e-14)
    first, second = one.result(), other.result()
    np.testing.assert_array_equal(first.params, second.params)
    np.testing.assert_array_equal(first.covariance, second.covariance)
    assert first.diagnostics == second.diagnostics


@table
@pytest.mark.parametrize("at", [0, 100, 2_111, 5_000])
def test_a_resumed_run_ends_with_the_same_bits(way, at, tmp_path):
    whole = go_on(fresh(way), way, 0, N)
    part = go_on(fresh(way), way, 0, at)
    write_checkpoint(tmp_path / "state", part.to_state())
    resumed = Auto.from_state(read_checkpoint(tmp_path / "state"), WORLDS[way][0])
    assert_same(go_on(resumed, way, at, N), whole)


@table
def test_pieces_are_the_whole(way):
    pieces = fresh(way)
    for first, end in ((0, 777), (777, 3_840), (3_840, 6_001), (6_001, N)):
        go_on(pieces, way, first, end)
    assert_same(pieces, go_on(fresh(way), way, 0, N))


@pytest.mark.parametrize("way", [way for way in WORLDS if way.startswith("consume")])
@pytest.mark.parametrize("seen", [0, 3_000])
def test_a_long_call_with_a_late_bad_row_is_refused_whole(way, seen):
    learner, other = (go_on(fresh(way), way, 0, seen) if seen else fresh(way) for _ in range(2))
    watcher, before = learner.watchers[0], learner.to_state()
    rows = np.tile(rows_of(WORLDS[way][0]), (17, 1))
    rows[150_000, 1] = np.inf
    with pytest.raises(InputError, match=r"row 150000 of this call has inf in column 1\. No row of the call"):
        learner.consume(rows)
    assert learner.watchers[0] is watcher
    assert first_difference(learner.to_state(), before) is None
    assert_same(go_on(learner, way, seen, N), go_on(other, way, seen, N))


def test_a_state_of_another_problem_is_refused():
    state = fresh("run").run(3_000).to_state()
    with pytest.raises(BadState, match=r"state\.problem"):
        Auto.from_state(state, problem("swap-game", rho=0.5))
    with pytest.raises(BadState, match=r"state\.kind must be 'auto'"):
        Auto.from_state(state | {"kind": "one-step"}, WORLDS["run"][0])


@table
def test_watchers_see_one_theta_per_row_and_the_learner_is_given_back(way):
    learner = fresh(way)
    assert go_on(learner, way, 0, 3_000) is learner
    assert learner.watchers[0].n_seen == learner.n_iterates == learner.n_seen == 3_000
    np.testing.assert_allclose(learner.watchers[0].estimate(), learner.theta_bar, rtol=1e-10, atol=1e-12)


@table
def test_memory_does_not_grow_with_the_stream(way, monkeypatch):
    """The open chunk of given rows grows up to a bound, which is its first size here."""
    monkeypatch.setattr(given, "MOST_CHUNK_ROWS", given.CHUNK_ROWS)

    def arrays(value):
        if isinstance(value, np.ndarray):
            return value.nbytes
        if isinstance(value, dict):
            value = tuple(value.values())
        if isinstance(value, (tuple, list)):
            return sum(arrays(item) for item in value)
        kept = type(value).__module__.startswith(("halfwidth.learners", "halfwidth.equation"))
        return sum(arrays(item) for item in getattr(value, "__dict__", {}).values()) if kept else 0

    learner = go_on(fresh(way), way, 0, N)
    size = arrays(vars(learner))
    for _ in range(2):
        go_on(learner, way, 0, N)
    assert arrays(vars(learner)) == size > 0


@table
def test_plain_python_functions_run_through_the_same_steps(way):
    world, options = WORLDS[way]
    interpreted = replace(world, gradient=lambda *arguments: world.gradient(*arguments))
    ends = []
    for source in (world, interpreted):
        learner = go_on(Auto(source, seed=7, **options), way, 0, 2_500)
        # what is not known to be quadratic is expanded elsewhere on given rows, and has the same root
        ends.append(learner.theta if learner._free is None else learner.result().params)
    np.testing.assert_allclose(ends[1], ends[0], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("way", [way for way in WORLDS if way.startswith("consume")])
def test_a_call_with_a_row_that_is_not_finite_is_refused_whole(way):
    rows = rows_of(WORLDS[way][0])
    broken = rows[:3_000].copy()
    broken[411, 1] = np.nan
    learner = fresh(way)
    with pytest.raises(InputError, match="row 411 of this call has nan in column 1"):
        learner.consume(broken)
    assert learner.n_seen == 0
    assert_same(learner.consume(rows), fresh(way).consume(rows))
