"""Batches that merge by information: the rule from its definition, laws of the store, and what it is for."""

import numpy as np
import pytest

from halfwidth import Auto
from halfwidth.equation import BatchStore, Equation, InformationStore, information_store
from halfwidth.equation.combine import concat
from halfwidth.equation.information_store import block_begins, is_unequal, readable
from halfwidth.equation.stability import stability
from halfwidth.learners.auto import chunk_minimum
from halfwidth.learners.auto.field import field_of
from halfwidth.learners.warm_start import collect_rows
from halfwidth.problems import problem

DIM, CAPACITY = 2, 16


def rows_with(scale, seed=0):
    """H and b of rows, features times their scale."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((len(scale), DIM)) * np.asarray(scale)[:, None]
    return X[:, :, None] * X[:, None, :], rng.standard_normal((len(scale), DIM))


def fill(store, H, b, cuts=()):
    for h, v in zip(*(np.split(array, list(cuts)) for array in (H, b)), strict=True):
        at = 0
        while at < len(h):
            rows = slice(at, at + store.free_rows)
            edges = store.edges(len(h[rows]))
            store.add(edges, *(np.add.reduceat(array[rows], edges[:-1]) for array in (v, h)))
            at += len(h[rows])
    return store


def slow_batches(H, capacity):
    """Lists of rows, one row at a time, merged from the definition."""
    batches, length = [], 1
    for row in range(len(H)):
        if batches and len(batches[-1]) < length and row % length != 0:
            batches[-1].append(row)
        else:
            batches.append([row])
        if len(batches) == capacity and (row + 1) % length == 0:
            length *= 2
            inverted = np.linalg.inv(H[: row + 1].sum(axis=0))
            known = [float(np.trace(inverted @ H[batch].sum(axis=0))) for batch in batches]
            batches = slow_merge(batches, known, length, full=(row + 1) % length == 0)
    return batches, length


def slow_merge(batches, known, length, *, full):
    blocks = sorted({batch[0] // length for batch in batches})
    own = {block: [b for b, batch in enumerate(batches) if batch[0] // length == block] for block in blocks}
    mean = sum(known) / len(blocks)
    heavy = [total for block in blocks if (total := sum(known[b] for b in own[block])) > 8.0 * mean]
    unequal = sum(heavy) > 0.1 * sum(known)
    found = []
    for block in blocks:
        groups = [[own[block][0]]]
        for b in own[block][1:]:
            together = sum(known[a] for a in groups[-1]) + known[b]
            if unequal and together > 4.0 * mean and (full or block != blocks[-1]):
                groups.append([b])
            else:
                groups[-1].append(b)
        found += [[row for b in group for row in batches[b]] for group in groups]
    return found


SCALES = {
    "first": lambda n: np.where(np.arange(n) < 20, 100.0, 1.0),
    "one": lambda n: np.where(np.arange(n) == 30, 1e6, 1.0),
    "growing": lambda n: np.exp(np.arange(n) / 50.0),
    "scattered": lambda n: np.where(np.arange(n) % 97 == 5, 30.0, 1.0),
}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("n", [15, 16, 40, 333, 1024])
@pytest.mark.parametrize("cuts", [[], [3, 11, 200], list(range(1, 300, 7))])
def test_batches_merge_as_the_definition_says_however_rows_come(scale, n, cuts):
    H, b = rows_with(SCALES[scale](n))
    store = fill(InformationStore(DIM, 1, CAPACITY), H, b, [cut for cut in cuts if cut < n])
    slow, length = slow_batches(H, CAPACITY)
    assert store.length == length
    assert store.sums.n[: store.batches].tolist() == [len(batch) for batch in slow]
    for name, rows in (("H", H), ("b", b)):
        wanted = [rows[batch].sum(axis=0) for batch in slow]
        np.testing.assert_allclose(getattr(store.sums, name)[: store.batches], wanted, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(store.curvature(), H.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(store.score(), b.sum(axis=0), rtol=1e-9, atol=1e-9)


def test_rows_that_know_most_stay_many_batches_and_memory_is_flat():
    n = 40_000
    H, b = rows_with(np.where(np.arange(n) < 200, 100.0, 1.0))
    store, equal = (fill(kind(DIM, 1, 256), H, b) for kind in (InformationStore, BatchStore))
    ends, most = (np.cumsum(one.sums.n[: one.batches]) for one in (store, equal))
    assert (most <= 256).sum() <= 1
    assert (ends <= 200).sum() > 30
    assert store.batches < 256 == len(store.sums.n)


def test_alike_rows_merge_in_pairs_to_the_same_bits():
    arrays = rows_with(np.ones(5_000))
    one, other = (fill(kind(DIM, 1, 64), *arrays).to_state() for kind in (InformationStore, BatchStore))
    for name in one:
        np.testing.assert_array_equal(one[name], other[name])


def test_an_empty_store_may_merge():
    store = InformationStore(DIM, 1, CAPACITY)
    store.merge()
    assert (store.length, store.open, store.rows) == (2, 0, 0)


def test_a_restored_store_goes_on_with_the_same_bits():
    H, b = rows_with(SCALES["first"](900))
    whole = fill(InformationStore(DIM, 1, CAPACITY), H, b, [301])
    half = fill(InformationStore(DIM, 1, CAPACITY), H[:301], b[:301])
    resumed = fill(InformationStore.from_state(half.to_state()), H[301:], b[301:])
    for name, wanted in whole.to_state().items():
        np.testing.assert_array_equal(resumed.to_state()[name], wanted)


def test_consecutive_stores_become_one():
    H, b = rows_with(SCALES["scattered"](700))
    one, two = (fill(InformationStore(DIM, 1, CAPACITY), H[at], b[at]) for at in (slice(0, 301), slice(301, 700)))
    both = concat(one, two)
    assert both.rows == 700
    np.testing.assert_allclose(both.curvature(), H.sum(axis=0), rtol=1e-9)
    both = fill(both, H, b)
    np.testing.assert_allclose(both.curvature(), 2.0 * H.sum(axis=0), rtol=1e-9)
    assert both.rows == 1_400


@pytest.mark.parametrize("dependent", [False, True])
def test_unequal_batches_that_depend_are_read_in_blocks_of_equal_length(dependent):
    rng = np.random.default_rng(3)
    rows = np.concatenate([np.full(64, 4.0), np.full(64, 64.0)])
    noise = rng.standard_normal(129)
    B = (noise[1:] + noise[:-1] * dependent)[:, None]
    equation = Equation(np.ones((128, 1, 1)), B, rows)
    found = readable(equation, 64)
    assert is_unequal(equation.rows, 64)
    assert (found is equation) == (not dependent)
    if dependent:
        assert found.rows.tolist() == [64.0] * 68 == np.add.reduceat(rows, block_begins(rows, 64)).tolist()
        np.testing.assert_allclose(found.B.sum(), B.sum())


def first_rows(loss, seed, n=50_000, trouble="first-rows"):
    world = problem(f"troubled-{loss}", trouble=trouble)
    rows = np.empty((n, world.row_size))
    collect_rows(world, np.random.default_rng([seed, 17]), np.zeros(world.dim), np.array(world.state_0), rows)
    return world, rows


def ends_in(loss, seeds, **options):
    """Whether each coefficient is ok, and covered."""
    ok, covered = [], []
    for seed in seeds:
        world, rows = first_rows(loss, seed, **options)
        result = Auto(world).consume(rows).result()
        ok.append([result.status == own == "ok" for own in result.coefficient_status])
        low, high = result.conf_int().T
        covered.append((low <= world.theta_star) & (world.theta_star <= high))
    return np.array(ok), np.array(covered)


@pytest.mark.parametrize("loss", ["linear", "logistic"])
def test_first_rows_that_know_most_end_in_intervals_that_cover(loss):
    """40 runs of five coefficients, of which 0.95 are covered: less than 0.91 has a probability below 1%."""
    ok, covered = ends_in(loss, range(40))
    assert ok.mean() > 0.9
    assert covered[ok].mean() > 0.91


def test_in_batches_of_equal_length_they_have_no_degrees_of_freedom(monkeypatch):
    """The negative control: only the intercept rests on other rows."""
    monkeypatch.setattr(information_store, "UNEQUAL", np.inf)
    ok, _ = ends_in("linear", range(5))
    assert ok.mean() <= 0.2


def test_with_the_whole_prior_they_are_expanded_too_far_away(monkeypatch):
    """The negative control of `first_minimum`."""
    monkeypatch.setattr(chunk_minimum, "_PULLS", np.inf)
    ok, _ = ends_in("logistic", range(3))
    assert not ok.any()


def test_alike_rows_end_where_equal_batches_do(monkeypatch):
    world, rows = first_rows("logistic", 1, trouble="none")
    found = Auto(world).consume(rows).result()
    monkeypatch.setattr(information_store, "UNEQUAL", np.inf)
    monkeypatch.setattr(chunk_minimum, "_PULLS", np.inf)
    wanted = Auto(world).consume(rows).result()
    np.testing.assert_array_equal(found.covariance, wanted.covariance)
    np.testing.assert_array_equal(found.params, wanted.params)


def test_a_run_with_unequal_batches_is_resumed_with_the_same_bits():
    world, rows = first_rows("logistic", 2)
    whole = Auto(world).consume(rows)
    half = Auto.from_state(Auto(world).consume(rows[:7_777]).to_state(), world).consume(rows[7_777:])
    np.testing.assert_array_equal(half.result().covariance, whole.result().covariance)
    assert "shorter where rows know most" in " ".join(whole.result().diagnostics.notes)


@pytest.mark.parametrize("trouble", ["separated", "none", "first-rows"])
def test_the_prior_fades_only_where_the_loss_has_a_minimum_that_it_hides(trouble):
    world, rows = first_rows("logistic", 4, 1_024, trouble)
    field = field_of(world, np.full(world.dim, 1e-5), differences=False)
    start = np.zeros(world.dim)
    prior = np.diag(field.hessian(start, rows)) / 32.0
    found, share = chunk_minimum.first_minimum(field, rows, start, prior)
    assert (share < 0.01) == (trouble == "first-rows")
    assert share == 1.0 or trouble == "first-rows"
    if trouble == "first-rows":
        pulled = chunk_minimum.chunk_minimum(field, rows, start, np.diag(prior))
        assert np.abs(found - world.theta_star).max() < 0.3 < np.abs(pulled - world.theta_star).max()


def test_long_stretches_hold_as_much_information_where_few_batches_know_most():
    rng = np.random.default_rng(5)
    share = np.where(np.arange(320) < 32, 1.0, 1e-6)
    information = np.column_stack([share, np.ones(320)])
    influences = rng.standard_normal((320, 2)) * np.sqrt(information)
    found = stability(influences, information, np.ones(320)).long_variances
    clock = np.minimum(np.cumsum(share) - 0.5 * share, share.sum() - 1e-9) * 16 // share.sum()
    for j, stretch in enumerate((clock, np.arange(320) // 20)):
        sums = np.array([influences[stretch == k, j].sum() for k in range(16)])
        np.testing.assert_allclose(found[j], 16.0 * sums.var(ddof=1), rtol=0.01)
