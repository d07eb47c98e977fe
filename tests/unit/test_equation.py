"""The batch store, the equation's root and influences, and the batch jackknife, each against its definition."""

import tracemalloc

import numpy as np
import pytest

import halfwidth as hw
from halfwidth.equation import BatchStore, Equation, capacity_for, inverse, jackknife, solve_spd
from halfwidth.equation.errors import jackknife_errors
from halfwidth.equation.jackknife import Deletions, solutions
from halfwidth.equation.linear_algebra import whitening
from halfwidth.equation.wide_errors import wide_errors
from halfwidth.errors import BadState, InputError, NotIdentified
from halfwidth.inference.longrun import kernel_weights

DIM = 3


def pieces(n, seed=0):
    """H, b and T of every row."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, DIM))
    return X[:, :, None] * X[:, None, :], rng.standard_normal((n, DIM)), rng.standard_normal((n, DIM))


def fill(store, H, b, T, cuts):
    for h, v, t in zip(*(np.split(array, cuts) for array in (H, b, T)), strict=True):
        at = 0
        while at < len(h):
            rows = slice(at, at + store.free_rows)
            edges = store.edges(len(h[rows]))
            sums = [np.add.reduceat(array[rows], edges[:-1]) for array in (v, h, t)]
            store.sums.T[store.open : store.open + len(edges) - 1] += sums.pop()
            store.add(edges, *sums)
            at += len(h[rows])
    return store


def slow_batches(arrays, length, capacity):
    """Every row in a batch of its own length, merged from the definition."""
    n = len(arrays[0])
    while n // length >= capacity:
        length *= 2
    edges = np.arange(0, n, length)
    sums = [np.add.reduceat(array, edges) for array in arrays]
    rows = np.diff([*edges, n])
    if 0 < rows[-1] < 0.5 * length and len(rows) > 1:
        sums = [np.concatenate([s[:-2], s[-2:].sum(axis=0)[None]]) for s in sums]
        rows = np.array([*rows[:-2], rows[-2:].sum()])
    return sums, rows, length


@pytest.mark.parametrize("n", [1, 7, 63, 64, 65, 1000, 1023])
@pytest.mark.parametrize("cuts", [[], [3, 4, 500], list(range(0, 1000, 37))])
def test_batches_are_sums_of_consecutive_rows_however_they_come(n, cuts):
    arrays = pieces(n)
    store = fill(BatchStore(DIM, 4, 16, deployed=True), *arrays, [cut for cut in cuts if cut < n])
    (H, b, T), rows, length = slow_batches(arrays, 4, 16)
    found = store.closed()
    np.testing.assert_array_equal(found.n, rows)
    for fast, slow in ((found.H, H), (found.b, b), (found.T, T)):
        np.testing.assert_allclose(fast, slow, rtol=1e-12, atol=1e-12)
    assert (store.length, store.rows) == (length, n)
    np.testing.assert_allclose(store.curvature(), arrays[0].sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(store.score(), arrays[1].sum(axis=0), rtol=1e-12, atol=1e-12)


def test_a_kernel_may_add_in_place():
    H, b, T = pieces(600)
    store, appended = BatchStore(DIM, 4, 16, lower=True, deployed=True), BatchStore(DIM, 4, 16, deployed=True)
    for i in range(0, 600, 2):
        at = store.open
        store.sums.H[at] += np.tril(H[i : i + 2].sum(axis=0))
        store.sums.b[at] += b[i : i + 2].sum(axis=0)
        store.sums.T[at] += T[i : i + 2].sum(axis=0)
        store.sums.n[at] += 2
        store.sums.moved[at] += 2 * (i >= 400)
        store.note()
    fill(appended, H, b, T, [])
    for one, other in zip(store.closed()[:4], appended.closed()[:4], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    assert store.sums.moved.sum() == 200
    before = store.score()
    store.give_back(np.array([1.0, 0.0, -1.0]))
    np.testing.assert_allclose(store.score() - before, [200.0, 0.0, -200.0])
    assert not store.sums.moved.any()


def test_state_goes_on_with_the_same_bits_and_a_foreign_one_is_refused():
    arrays = pieces(900)
    whole = fill(BatchStore(DIM, 4, 16, deployed=True), *arrays, [500])
    first = fill(BatchStore(DIM, 4, 16, deployed=True), *(a[:500] for a in arrays), [])
    second = fill(BatchStore.from_state(first.to_state()), *(a[500:] for a in arrays), [])
    for one, other in zip(whole.sums, second.sums, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(whole.curvature(), second.curvature())
    with pytest.raises(BadState, match=r"state.kind must be 'batch-store'"):
        BatchStore.from_state({"kind": "other"})


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("closed", 1e300, "sum of H"),
        ("closed", 0.0, "sum of H"),
        ("H", 1e30, "sum of H"),
        ("n", 0.0, "rows in every closed batch"),
    ],
)
def test_batches_that_do_not_add_up_are_refused(single, field, value, rule):
    store = fill(BatchStore(DIM, 4, 16, deployed=True, single=single), *pieces(900), [500])
    state = store.to_state()
    np.testing.assert_array_equal(BatchStore.from_state(state).to_state()["closed"], state["closed"])
    state[field].flat[0] = value
    with pytest.raises(BadState, match=rule):
        BatchStore.from_state(state)


def test_another_reference_gives_the_same_root():
    arrays = pieces(500)
    store = fill(BatchStore(DIM, 4, 16, deployed=True), *arrays, [])
    J, Q = 0.3 * np.eye(DIM), np.array([0.1, 0.0, -0.2])
    centre, influences = Equation.of(store, J, Q).solve()
    store.rebase([10.0, -5.0, 2.0])
    moved, same = Equation.of(store, J, Q).solve()
    np.testing.assert_allclose(store.reference + moved, centre, rtol=1e-10)
    np.testing.assert_allclose(same, influences, rtol=1e-8, atol=1e-10)


def test_more_rows_than_there_is_room_for_are_refused():
    store = BatchStore(DIM, 4, 16)
    with pytest.raises(InputError, match="at most 64 rows"):
        store.add(np.array([0, 65]), np.zeros((1, DIM)), np.zeros((1, DIM, DIM)))


def test_the_number_of_batches_falls_with_the_dimension():
    assert capacity_for(20) == 2_048
    assert capacity_for(200) * 200**2 <= 2**23
    assert capacity_for(1_000) == 32
    assert capacity_for(3_000) == 24


def test_root_and_influences_solve_the_equation_for_any_slope_and_correction():
    H, b, T = pieces(400)
    store = fill(BatchStore(DIM, 8, 64, deployed=True), H, b, T, [])
    J, Q = np.random.default_rng(1).standard_normal((DIM, DIM)) * 0.2, np.array([0.1, 0.2, 0.3])
    centre, influences = Equation.of(store, J, Q).solve()
    A, B = H + J, b + T @ J.T - Q
    np.testing.assert_allclose(A.sum(axis=0) @ centre, B.sum(axis=0), rtol=1e-9)
    r = np.add.reduceat(B - A @ centre, np.arange(0, 400, 8))
    np.testing.assert_allclose(influences, np.linalg.solve(A.sum(axis=0), r.T).T, rtol=1e-8, atol=1e-12)
    with pytest.raises(NotIdentified, match="singular"):
        Equation(np.zeros((2, DIM, DIM)), np.zeros((2, DIM)), np.ones(2)).solve()


def regression(n=60, batches=12, seed=2):
    """Rows of a linear model with a column that lives in two batches; its batches' matrices and residuals."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(n), rng.standard_normal(n), np.zeros(n)])
    X[3:5, 2], X[30:33, 2] = 1.0, 2.0
    y = X @ [1.0, 2.0, 3.0] + rng.standard_normal(n)
    theta = np.linalg.lstsq(X, y, rcond=None)[0]
    parts = np.split(np.arange(n), batches)
    A = np.array([X[part].T @ X[part] for part in parts])
    r = np.array([X[part].T @ (y[part] - X[part] @ theta) for part in parts])
    return X, y, theta, parts, A, r


def test_jackknifed_influences_are_what_deleting_a_batch_does():
    X, y, theta, parts, A, r = regression()
    found = Deletions.of(A, r, whitening(A.sum(axis=0))).influences(np.eye(3))
    for b, part in enumerate(parts):
        kept = np.setdiff1d(np.arange(len(y)), part)
        without = np.linalg.lstsq(X[kept], y[kept], rcond=None)[0]
        np.testing.assert_allclose(found[b], theta - without, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("at_once", "many"), [(1, 99), (2**20, 99), (1, 1)], ids=["one", "all", "forms"])
@pytest.mark.parametrize("bandwidth", [0.0, 1.7])
def test_degrees_of_freedom_are_the_two_moments_of_the_quadratic_form(bandwidth, at_once, many, monkeypatch):
    monkeypatch.setattr(jackknife, "_AT_ONCE", at_once)
    monkeypatch.setattr(jackknife, "MANY", many)
    _, _, _, parts, A, r = regression()
    K, total = len(parts), A.sum(axis=0)
    lags = np.abs(np.subtract.outer(np.arange(K), np.arange(K)))
    W = kernel_weights(K, bandwidth)[lags]
    directions = np.vstack([np.eye(3), [1.0, -2.0, 0.5]])
    found = Deletions.of(A, r, whitening(total)).degrees_of_freedom(directions, bandwidth)
    for v, df in zip(directions, found, strict=True):
        a = np.array([np.linalg.solve((np.eye(3) - H @ inverse(total)).T, inverse(total) @ v) for H in A])
        gamma = np.array(
            [[a[b] @ ((b == c) * A[b] - A[b] @ inverse(total) @ A[c]) @ a[c] for c in range(K)] for b in range(K)]
        )
        assert df == pytest.approx(np.trace(W @ gamma) ** 2 / np.trace(W @ gamma @ W @ gamma), rel=1e-8)
    assert found[2] < 2.5 < 4.0 < found[1]


@pytest.mark.parametrize("small", [0, 99], ids=["one by one", "together"])
def test_deletions_are_inverses_and_pseudo_inverses(small, monkeypatch):
    """The second of seven is too large for a sure inverse, the third only by its norm, the fifth all of a direction."""
    monkeypatch.setattr(jackknife, "_SMALL", small)
    monkeypatch.setattr(jackknife, "_AT_ONCE", 50)
    rng = np.random.default_rng(0)
    roots, right = 0.1 * rng.standard_normal((7, 4, 4)), rng.standard_normal((3, 4))
    M = roots @ roots.transpose(0, 2, 1)
    M[1] += 0.7 * np.eye(4)
    M[2] += 0.25 * np.eye(4)
    assert (np.square(M[2]).sum() > 0.25) & (np.square(M[2] @ M[2]).sum() < 0.0625)
    alone = np.array([0.6, 0.0, 0.8, 0.0])
    P = np.eye(4) - np.outer(alone, alone)
    M[4] = P @ M[4] @ P + np.outer(alone, alone)
    found, lone = solutions(M, right)
    expected = right @ np.linalg.pinv(np.eye(4) - M, rcond=1e-9)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    assert lone.shape == (4, 1)
    assert abs(lone[:, 0] @ alone) == pytest.approx(1.0)


def test_deletions_of_many_coefficients_are_those_of_every_batch_by_itself():
    """Most batches by the factor of what is left of A; one column is in one batch, and one mostly in another."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((12, 60, 40)) * np.logspace(-3, 3, 40)
    X[:, :, 7] = 0.0
    X[3, :5, 7] = 1.0
    X[:, :, 9] *= 1e-3
    X[5, :, 9] *= 1e3
    A, r = X.transpose(0, 2, 1) @ X, rng.standard_normal((12, 40))
    whitened = whitening(A.sum(axis=0))
    assert whitened.regular
    deletions = Deletions.of(A, r, whitened)
    E = np.eye(40) - whitened.C.T @ A @ whitened.C
    expected = whitened.C @ np.linalg.pinv(E, rcond=1e-9, hermitian=True)
    size = np.abs(expected).max(axis=(0, 2))[:, None]
    np.testing.assert_allclose(deletions.P / size, expected / size, rtol=1e-7, atol=1e-9)
    assert deletions.is_lone(np.eye(40)).tolist() == [j == 7 for j in range(40)]
    sure = jackknife._without(A, np.ascontiguousarray(whitened.C))[1]
    assert sure.tolist() == [b not in (3, 5) for b in range(12)]


def test_columns_that_are_nearly_the_others_are_not_regular():
    X = np.random.default_rng(5).standard_normal((200, 3))
    X[:, 2] = X[:, 1] + 1e-3 * X[:, 2]
    assert not whitening(X.T @ X).regular
    assert not whitening(np.diag([1.0, 1.0, 0.0])).regular


def test_the_share_of_a_batch_is_the_information_that_goes_with_it():
    *_, A, r = regression()
    deletions = Deletions.of(A, r, whitening(A.sum(axis=0)))
    information = 1.0 / np.diag(inverse(A.sum(axis=0)))
    left = np.array([1.0 / np.diag(inverse(A.sum(axis=0) - H)) for H in A]).min(axis=0)
    np.testing.assert_allclose(deletions.shares(np.eye(3)), 1.0 - left / information, rtol=1e-8)


def with_a_lone_column():
    """The regression with a third column that only the seventh batch shows."""
    X, y, _, parts, _, _ = regression()
    X = X.copy()
    X[:, 2] = 0.0
    X[30:33, 2] = [1.0, 2.0, 3.0]
    theta = np.linalg.lstsq(X, y, rcond=None)[0]
    A = np.array([X[part].T @ X[part] for part in parts])
    r = np.array([X[part].T @ (y[part] - X[part] @ theta) for part in parts])
    return X, y, parts, theta, A, r


def test_a_column_in_one_batch_is_lone_and_leaves_the_others_right():
    X, y, parts, theta, A, r = with_a_lone_column()
    deletions = Deletions.of(A, r, whitening(A.sum(axis=0)))
    assert deletions.is_lone(np.eye(3)).tolist() == [False, False, True]
    assert deletions.shares(np.eye(3))[2] == 1.0
    kept = np.setdiff1d(np.arange(len(y)), parts[6])
    without = np.linalg.lstsq(X[kept, :2], y[kept], rcond=None)[0]
    np.testing.assert_allclose(deletions.influences(np.eye(3))[6, :2], theta[:2] - without, rtol=1e-8)


def test_what_the_rows_do_not_determine_is_the_null_space():
    X = np.random.default_rng(4).standard_normal((50, 2)) * [1e6, 1e-3]
    X = np.column_stack([X, X @ [1e-6, 2e3]])
    A = X.T @ X
    C, null, D = whitening(A)
    assert C.shape == (3, 2)
    np.testing.assert_allclose(C.T @ A @ C, np.eye(2), atol=1e-8)
    np.testing.assert_allclose(X @ (D[:, None] * null), 0.0, atol=1e-6)
    x = solve_spd(A, A @ [1.0, 1.0, 0.0])
    np.testing.assert_allclose(X @ x, X @ [1.0, 1.0, 0.0], rtol=1e-6)


def test_the_wide_jackknife_is_the_other_one():
    """Influences and shares to rounding, degrees of freedom to what the diagonal says of them."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((800, 6))
    X[:, 5] = rng.random(800) < 0.1
    y = rng.standard_normal(800)
    theta = np.linalg.lstsq(X, y, rcond=None)[0]
    parts = np.split(np.arange(800), 40)
    A = np.array([X[part].T @ X[part] for part in parts])
    r = np.array([X[part].T @ (y[part] - X[part] @ theta) for part in parts])
    equation, T = Equation(A, r, np.full(40, 20.0)), np.eye(6) + 0.1 * np.eye(6)[:, ::-1]
    for independent in (True, False):
        full = jackknife_errors(equation, r, A.sum(axis=0), independent=independent)
        wide = wide_errors(equation, r, A.sum(axis=0), np.zeros(6), T, independent=independent)
        np.testing.assert_allclose(wide.shares(T), full.shares(T), rtol=1e-8)
        assert wide.bandwidth == pytest.approx(full.bandwidth)
        np.testing.assert_allclose(wide.degrees_of_freedom(T), full.degrees_of_freedom(T), rtol=0.25)
        np.testing.assert_allclose(wide.influences @ T.T, full.deletions.influences(T), rtol=1e-8, atol=1e-12)
        assert not wide.undetermined(T).any()


def test_a_column_in_one_batch_is_undetermined_in_wide_equations_too():
    *_, A, r = with_a_lone_column()
    wide = wide_errors(Equation(A, r, np.full(12, 5.0)), r, A.sum(axis=0), np.zeros(3), np.eye(3))
    assert wide.undetermined(np.eye(3)).tolist() == [False, False, True]


def test_a_store_in_single_precision_keeps_its_sum_in_double():
    H, b, _ = pieces(700)
    plain, single = BatchStore(DIM, 4, 16), BatchStore(DIM, 4, 16, single=True)
    for store in (plain, single):
        at = 0
        while at < 700:
            edges = store.edges(min(store.free_rows, 700 - at))
            sums = [np.add.reduceat(array[at : at + edges[-1]], edges[:-1]) for array in (b, H)]
            store.add(edges, *sums)
            at += int(edges[-1])
    np.testing.assert_allclose(single.curvature(), H.sum(axis=0), rtol=1e-13)
    np.testing.assert_allclose(single.closed().H, plain.closed().H, rtol=1e-5, atol=1e-5)
    again = BatchStore.from_state(single.to_state())
    np.testing.assert_array_equal(again.curvature(), single.curvature())
    with single.borrowed():
        single.add(np.array([0, 900]), b[:1], H[:1])
        assert single.rows == 1600
    np.testing.assert_array_equal(again.curvature(), single.curvature())
    np.testing.assert_array_equal(again.sums.H, single.sums.H)


def test_a_curvature_that_was_read_stays_as_it_was_read():
    H, b, _ = pieces(3)
    store = BatchStore(DIM, 4, 16, single=True)
    read = []
    for at in range(3):
        store.add(np.array([0, 1]), b[at : at + 1], H[at : at + 1])
        read.append(store.curvature())
    for at in range(3):
        np.testing.assert_allclose(read[at], H[: at + 1].sum(axis=0), rtol=1e-13)
    store.clear()
    assert not store.curvature().any()
    np.testing.assert_allclose(read[2], H.sum(axis=0), rtol=1e-13)


@pytest.mark.parametrize(
    ("family", "count", "most"),
    [("linear", 4, 13.0), ("logistic", 4, 34.0), ("linear", 12, 21.0), ("logistic", 12, 28.0), ("poisson", 12, 28.0)],
)
def test_wide_models_hold_few_matrices_at_a_time(family, count, most):
    """Peak memory in units of a d x d matrix, beside the store of batches, which takes 16; as long as all rows are at
    hand, a logistic regression makes another one."""
    dim, rng = 700, np.random.default_rng(0)

    def chunks(columns, count):
        for _ in range(count):
            X = rng.standard_normal((512, columns))
            y = X[:, 0] + rng.standard_normal(512)
            yield X, y if family == "linear" else (y > 0.0).astype(float)

    hw.fit(chunks(2, 1), family=family).inference()  # so that modules are loaded
    tracemalloc.start()
    try:
        hw.fit(chunks(dim, count), family=family, ridge=0.1).inference()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak / (8.0 * dim**2) - 0.5 * capacity_for(dim) < most


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_the_sum_of_closed_batches_does_not_depend_on_how_rows_are_cut(dim):
    rng = np.random.default_rng(dim)
    pieces = rng.standard_normal((100, dim, dim)) * 10.0 ** rng.integers(-8, 8, size=(100, 1, 1))
    together, apart = (BatchStore(dim, 4, capacity=128) for _ in range(2))
    together.add(np.arange(0, 401, 4), np.zeros((100, dim)), pieces)
    for piece in pieces:
        apart.add(np.array([0, 4]), np.zeros((1, dim)), piece[None])
    np.testing.assert_array_equal(together.curvature(), apart.curvature())
    total = np.zeros((dim, dim))
    for piece in pieces:
        total += piece
    np.testing.assert_array_equal(apart.curvature(), total)
