"""Buckets of groups, pooled and concatenated stores, the test of stability, and the damped Newton."""

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import binom

from halfwidth.equation import BatchStore, Equation
from halfwidth.equation.buckets import SMALLEST, BucketStore, canonical_bytes, digests
from halfwidth.equation.combine import concat, pool
from halfwidth.equation.newton import damped_newton
from halfwidth.equation.stability import stability
from halfwidth.errors import InputError

DIM = 2


def test_ids_of_any_type_are_told_apart_and_equal_ones_are_not():
    large = np.array([2**63, 2**63 + 1, 2**53, 2**53 + 1], dtype=np.uint64)
    assert len(set(digests(large).tolist())) == 4
    assert len(set(digests(["1", "2", "a", "a "]).tolist())) == 4
    assert canonical_bytes(5) == canonical_bytes(5.0) == canonical_bytes(np.uint64(5)) == canonical_bytes(np.float32(5))
    assert canonical_bytes("5") != canonical_bytes(5)
    assert canonical_bytes(("a", "bc")) != canonical_bytes(("ab", "c"))
    np.testing.assert_array_equal(digests(np.array([3, 7, 3])), digests(np.array([3, 7, 3], dtype=object)))
    dates = np.array(["2020-01-01", "2020-01-02"], dtype="M8[D]")
    np.testing.assert_array_equal(digests(dates), digests(dates.astype("M8[s]")))
    for missing in ([1.0, np.nan], [None, "a"], np.array(["NaT"], dtype="M8[s]")):
        with pytest.raises(InputError, match="group must not be missing"):
            digests(missing)
    with pytest.raises(InputError, match="group must hold numbers, text, dates"):
        digests(np.array([{}, {1}], dtype=object)[1:])


def test_the_hash_is_the_same_in_every_run():
    assert digests(["a", "b"]).tolist() == [1410542633125930404, 6880790032837653560]


def filled(ids, values, **options):
    """A store with one row a value, its H and b known."""
    store = BucketStore(DIM, **options)
    for part in np.array_split(np.arange(len(ids)), 7):
        places = store.places(digests(ids[part]))
        used = np.unique(places)
        b = np.array([values[part][places == place].sum(axis=0) for place in used])
        rows = np.array([(places == place).sum() for place in used], dtype=float)
        store.add(used, b, rows[:, None, None] * np.eye(DIM), rows)
    return store


def test_a_bucket_holds_whole_groups_in_whatever_order_rows_come():
    rng = np.random.default_rng(0)
    ids, values = rng.integers(0, 40, 2000), rng.standard_normal((2000, DIM))
    store = filled(ids, values, capacity=64)
    assert store.groups == (40, True)
    assert store.buckets == 40
    expected = np.array([values[ids == label].sum(axis=0) for label in range(40)])
    found = store.closed().b
    np.testing.assert_allclose(np.sort(found, axis=0), np.sort(expected, axis=0), atol=1e-12)
    np.testing.assert_allclose(store.score(), values.sum(axis=0))
    np.testing.assert_allclose(store.curvature(), 2000 * np.eye(DIM))


def test_more_groups_than_buckets_share_and_are_counted_approximately():
    rng = np.random.default_rng(1)
    ids = rng.permutation(np.repeat(np.arange(20_000), 2))
    store = filled(ids, rng.standard_normal((40_000, DIM)), capacity=64)
    assert store.buckets == 64
    count, exact = store.groups
    assert not exact
    assert abs(count / 20_000 - 1.0) < 4.0 / np.sqrt(SMALLEST)
    places = store.places(digests(np.arange(20_000)))
    np.testing.assert_array_equal(places, store.places(digests(np.arange(20_000)))), "a group stays in its bucket"


def test_buckets_come_back_from_their_state():
    rng = np.random.default_rng(2)
    ids, values = rng.integers(0, 500, 900), rng.standard_normal((900, DIM))
    store = filled(ids, values, capacity=64)
    again = BucketStore.from_state(store.to_state())
    for one, other in zip(store.closed(), again.closed(), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(store.places(digests(ids)), again.places(digests(ids)))
    assert again.groups == store.groups


@pytest.mark.parametrize(("groups", "owned"), [(40, True), (40, False), (5000, False)])
def test_pooled_buckets_are_those_of_all_rows(groups, owned):
    rng = np.random.default_rng(3)
    ids, values = rng.integers(0, groups, 3000), rng.standard_normal((3000, DIM))
    whole = filled(ids, values, capacity=64, owned=owned)
    parts = [filled(ids[half], values[half], capacity=64, owned=owned) for half in (slice(0, 999), slice(999, None))]
    pooled = pool(*parts)
    assert pooled.groups == whole.groups
    order = [np.argsort(store.closed().b[:, 0]) for store in (whole, pooled)]
    for one, other in zip(whole.closed(), pooled.closed(), strict=True):
        np.testing.assert_allclose(one[order[0]], other[order[1]], atol=1e-12)


def test_what_cannot_be_pooled_is_refused():
    rng = np.random.default_rng(4)
    many = [filled(rng.integers(0, 999, 500), rng.standard_normal((500, DIM)), capacity=64) for _ in range(2)]
    with pytest.raises(InputError, match="owned=False"):
        pool(*many)
    with pytest.raises(InputError, match="grouped and ungrouped"):
        pool(many[0], BatchStore(DIM, 4, 16))
    with pytest.raises(InputError, match="same dimension"):
        concat(BatchStore(DIM, 4, 16), BatchStore(DIM, 4, 32))


@pytest.mark.parametrize("cut", [100, 300, 1000])
def test_consecutive_pieces_give_the_equation_of_the_whole(cut):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((1200, DIM))
    H, b = X[:, :, None] * X[:, None, :], rng.standard_normal((1200, DIM))

    def store(rows, reference):
        made = BatchStore(DIM, 4, 16)
        for i in range(rows.start, rows.stop, 4):
            edges = made.edges(4)
            made.add(edges, b[i : i + 4].sum(axis=0)[None], H[i : i + 4].sum(axis=0)[None])
        made.rebase(reference)
        return made

    joined = concat(store(range(cut), [1.0, 2.0]), store(range(cut, 1200), [-3.0, 0.0]))
    assert joined.rows == 1200
    assert joined.batches <= joined.capacity
    centre, influences = Equation.of(joined).solve()
    np.testing.assert_allclose(joined.reference + centre, np.linalg.solve(H.sum(axis=0), b.sum(axis=0)), rtol=1e-9)
    np.testing.assert_allclose(influences.sum(axis=0), 0.0, atol=1e-12)
    before = joined.curvature()
    joined.add(joined.edges(4), np.zeros((1, DIM)), np.eye(DIM)[None])
    np.testing.assert_allclose(joined.curvature(), before + np.eye(DIM))


def walk(rng, K, phi, shift=0.0, late_noise=1.0):
    """Influences of K batches on two coefficients; the first changes halfway."""
    scale = np.where(np.arange(K) < 0.9 * K, 1.0, late_noise)[:, None]
    x = lfilter([np.sqrt(1 - phi**2)], [1.0, -phi], rng.standard_normal((K + 100, 2)), axis=0)[100:] * scale
    x[K // 2 :, 0] += shift
    return x - x.mean(axis=0)


@pytest.mark.parametrize(("phi", "late_noise"), [(0.0, 1.0), (0.7, 1.0), (0.0, 10.0)])
def test_the_size_of_the_stability_test(phi, late_noise):
    """At most 1% of 600 coefficients that hold still, by a binomial bound of level 0.001; no matter how noise grows."""
    found = 0
    for seed in range(300):
        x = walk(np.random.default_rng(seed), 512, phi, late_noise=late_noise)
        tested = stability(x, np.ones_like(x), np.full(512, 10.0))
        found += int((tested.pvalues <= 0.01).sum())
    assert found <= binom.ppf(0.999, 600, 0.01)


def test_a_change_halfway_is_found_and_located():
    """The second coefficient, which holds still, is the control."""
    found = np.zeros(2)
    rows = []
    for seed in range(50):
        x = walk(np.random.default_rng(seed), 512, 0.0, shift=0.4)
        tested = stability(x, np.ones_like(x), np.full(512, 10.0))
        unstable = tested.unstable(np.array([True, True]))
        found += unstable
        rows.append(tested.rows[0])
    assert found[0] >= 45
    assert found[1] <= 3
    assert abs(np.median(rows) - 2560) < 400


def test_holm_spends_the_level_over_what_is_tested():
    tested = stability(np.zeros((32, 3)), np.ones((32, 3)), np.ones(32))._replace(pvalues=np.array([0.004, 0.006, 0.5]))
    assert tested.unstable(np.array([True, True, True])).tolist() == [False, False, False]
    assert tested.unstable(np.array([True, True, False])).tolist() == [True, True, False]
    assert tested.unstable(np.array([False, True, False])).tolist() == [False, True, False]


def test_damped_newton_finds_minima_that_plain_steps_miss():
    """log cosh: an undamped step from 3 goes to -200."""
    X = np.random.default_rng(6).standard_normal((50, DIM))
    target = np.array([1.0, -2.0])

    def gradient(theta):
        return np.tanh(X @ (theta - target)) @ X

    def hessian(theta):
        return (X.T / np.cosh(X @ (theta - target)) ** 2) @ X

    found = damped_newton(gradient, hessian, np.array([30.0, 30.0]), 1e-16)
    assert found.converged
    np.testing.assert_allclose(found.theta, target, atol=1e-7)
    given_up = damped_newton(gradient, hessian, np.array([30.0, 30.0]), 1e-16, most_steps=2)
    assert not given_up.converged
