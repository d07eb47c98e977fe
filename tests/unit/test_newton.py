"""Renewable Newton: exactness, chunk invariance, flat memory, scales, groups, state."""

import numpy as np
import pytest

from family_targets import drawn
from halfwidth.errors import InputError, NotEnoughData
from halfwidth.families import FAMILIES
from halfwidth.learners.newton.column_scaling import Scaling
from halfwidth.learners.newton.kept_sample import RowSample, hashed
from halfwidth.learners.newton.renewable import RenewableNewton


def rows(family, n=3000, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * [1.0, 5.0, 0.2] + [0.0, 10.0, 0.0]
    eta = 0.3 + (X - [0.0, 10.0, 0.0]) @ [0.5, -0.1, 1.0]
    return X, drawn(family, rng, eta)


def errors_of(fit):
    return np.sqrt(np.diag(fit.covariance()))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("size", [1, 7, 1000, 1024])
def test_pieces_of_any_size_give_the_same_bits(family, size):
    X, y = rows(family, n=2500 if size > 1 else 1100)
    whole = RenewableNewton(3, family).consume(X, y)
    pieces = RenewableNewton(3, family)
    for at in range(0, len(X), size):
        pieces.consume(X[at : at + size], y[at : at + size])
        if at % 900 == 0:
            pieces.fit()  # reading in between changes nothing
    assert np.array_equal(whole.fit().params, pieces.fit().params)
    assert np.array_equal(errors_of(whole.fit()), errors_of(pieces.fit()))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("cut", [300, 1500])
def test_state_goes_on_with_the_same_bits(family, cut):
    X, y = rows(family, n=4000)
    whole = RenewableNewton(3, family).consume(X, y)
    first = RenewableNewton(3, family).consume(X[:cut], y[:cut])
    second = RenewableNewton.from_state(first.to_state()).consume(X[cut:], y[cut:])
    assert np.array_equal(whole.fit().params, second.fit().params)
    assert np.array_equal(errors_of(whole.fit()), errors_of(second.fit()))


@pytest.mark.parametrize("intercept", [True, False])
def test_linear_is_least_squares(intercept):
    X, y = rows("linear", n=20_000)
    design = np.column_stack([np.ones(len(X)), X]) if intercept else X
    expected = np.linalg.lstsq(design, y, rcond=None)[0]
    fit = RenewableNewton(3, "linear", intercept=intercept).consume(X, y).fit()
    np.testing.assert_allclose(fit.params, expected, rtol=1e-10)
    residual = y - design @ expected
    scale = residual @ residual / (len(y) - design.shape[1])
    naive = scale * np.linalg.inv(design.T @ design)
    np.testing.assert_allclose(fit.naive_variances, np.diag(naive), rtol=1e-7)


def test_linear_survives_wild_scales_and_a_far_target():
    """Dollars next to shares, a target near 1e8: what SGD needs help with."""
    rng = np.random.default_rng(3)
    n = 20_000
    X = np.column_stack([1e6 + 1e5 * rng.standard_normal(n), 1e-4 * rng.standard_normal(n), 2010 + rng.random(n)])
    y = 1e8 + 2e-3 * X[:, 0] + 500.0 * X[:, 1] - 3.0 * X[:, 2] + rng.standard_normal(n)
    centred = X - X.mean(axis=0)
    slopes = np.linalg.lstsq(np.column_stack([np.ones(n), centred / X.std(axis=0)]), y, rcond=None)[0][1:]
    fit = RenewableNewton(3, "linear").consume(X, y).fit()
    np.testing.assert_allclose(fit.params[1:], slopes / X.std(axis=0), rtol=1e-8)
    assert (errors_of(fit) > 0).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_results_do_not_depend_on_units(family):
    X, y = rows(family, n=3000)
    units = np.array([1e6, 1e-5, 1.0])
    plain, scaled = (RenewableNewton(3, family).consume(Z, y).fit() for Z in (X, X * units))
    for one, other in ((plain.params, scaled.params), (errors_of(plain), errors_of(scaled))):
        np.testing.assert_allclose(other.reshape(-1, 4)[:, 1:] * units, one.reshape(-1, 4)[:, 1:], rtol=1e-6)


@pytest.mark.parametrize("family", ["linear", "logistic", "poisson"])
def test_a_column_constant_in_the_first_rows_is_learned_later(family):
    X, y = rows(family, n=12_000, seed=4)
    X = np.column_stack([X, np.arange(12_000) >= 6000])
    offline = RenewableNewton(4, family, chunk_rows=2**14).consume(X, y).fit()
    online = RenewableNewton(4, family).consume(X, y).fit()
    np.testing.assert_allclose(online.params, offline.params, atol=0.05 * errors_of(offline).min())


@pytest.mark.parametrize("family", ["logistic", "poisson"])
def test_one_pass_is_close_to_the_offline_fit_and_two_passes_are_there(family):
    X, y = rows(family, n=60_000, seed=5)
    offline = RenewableNewton(3, family, chunk_rows=2**16).consume(X, y).fit()
    one = RenewableNewton(3, family).consume(X, y)
    two = one.second_pass().consume(X, y)
    error = errors_of(offline)
    assert np.max(np.abs(one.fit().params - offline.params) / error) < 0.02
    assert np.max(np.abs(two.fit().params - offline.params) / error) < 1e-4


def test_weights_count_rows_and_offsets_shift_the_predictor():
    X, y = rows("poisson", n=800)
    counts = np.random.default_rng(6).integers(0, 3, size=800)
    weighted = RenewableNewton(3, "poisson").consume(X, y, weight=counts).fit()
    repeated = RenewableNewton(3, "poisson").consume(np.repeat(X, counts, axis=0), np.repeat(y, counts)).fit()
    np.testing.assert_allclose(weighted.params, repeated.params, rtol=1e-6)
    shifted = RenewableNewton(3, "poisson").consume(X, y, offset=np.full(800, 0.7)).fit()
    plain = RenewableNewton(3, "poisson").consume(X, y).fit()
    np.testing.assert_allclose(shifted.params - plain.params, [-0.7, 0.0, 0.0, 0.0], atol=1e-6)


def test_ridge_solves_the_penalised_equation_without_touching_the_intercept():
    X, y = rows("linear", n=5000)
    fit = RenewableNewton(3, "linear", ridge=0.3).consume(X, y).fit()
    design = np.column_stack([np.ones(5000), X])
    penalty = 5000 * 0.3 * np.diag([0.0, 1.0, 1.0, 1.0])
    np.testing.assert_allclose(fit.params, np.linalg.solve(design.T @ design + penalty, design.T @ y), rtol=1e-8)


@pytest.mark.parametrize("shuffled", [False, True])
def test_groups_in_any_order_have_cluster_robust_errors(shuffled):
    """30 rows share one shock: cluster errors see it, errors for independent rows (the control) do not."""
    rng = np.random.default_rng(7)
    groups = np.repeat(np.arange(400), 30)
    x = np.repeat(rng.standard_normal(400), 30)[:, None]
    y = 1.0 + 2.0 * x[:, 0] + np.repeat(rng.standard_normal(400), 30) + 0.1 * rng.standard_normal(12_000)
    order = rng.permutation(12_000) if shuffled else np.arange(12_000)
    learner = RenewableNewton(1, "linear")
    for part in np.split(order, range(700, 12_000, 700)):
        learner.consume(x[part], y[part], group=groups[part])
    fit = learner.fit()
    assert fit.groups == (400, True)
    assert (fit.sums.n == 30).all()
    design = np.column_stack([np.ones(12_000), x])
    scores = np.add.reduceat(design * (y - design @ fit.params)[:, None], np.arange(0, 12_000, 30))
    bread = np.linalg.inv(design.T @ design)
    cluster = np.sqrt(np.diag(bread @ scores.T @ scores @ bread))
    np.testing.assert_allclose(errors_of(fit), cluster, rtol=0.02)
    assert (np.sqrt(fit.naive_variances) < 0.3 * cluster).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_groups_may_be_relabelled(family):
    X, y = rows(family, n=3000)
    groups = np.random.default_rng(1).integers(0, 150, 3000)
    numbers = RenewableNewton(3, family).consume(X, y, group=groups).fit()
    text = RenewableNewton(3, family).consume(X, y, group=np.array([f"g{label}" for label in groups])).fit()
    np.testing.assert_allclose(errors_of(text), errors_of(numbers), rtol=1e-9)
    np.testing.assert_array_equal(text.params, numbers.params)


def test_groups_must_always_be_given():
    X, y = rows("linear", n=40)
    learner = RenewableNewton(3, "linear").consume(X, y, group=np.array(["a", "b"] * 20, dtype=object))
    RenewableNewton.from_state(learner.to_state()).consume(X, y, group=np.array(["b"] * 40, dtype=object))
    with pytest.raises(InputError, match="group must be given with every chunk"):
        learner.consume(X, y)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n", [700, 3000])
def test_only_ratios_of_weights_matter_and_rows_of_weight_zero_do_not_count(family, n):
    X, y = rows(family, n=n)
    weight = np.random.default_rng(3).integers(0, 3, n).astype(float)
    plain = RenewableNewton(3, family).consume(X, y, weight=weight).fit()
    used = weight > 0
    dropped = RenewableNewton(3, family).consume(X[used], y[used], weight=weight[used]).fit()
    assert plain.n == dropped.n == used.sum()
    np.testing.assert_array_equal(plain.params, dropped.params)
    for factor in (1e-6, 1e6):
        scaled = RenewableNewton(3, family).consume(X, y, weight=factor * weight).fit()
        np.testing.assert_allclose(scaled.params, plain.params, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(errors_of(scaled), errors_of(plain), rtol=1e-8)
        np.testing.assert_allclose(scaled.naive_variances, plain.naive_variances, rtol=1e-7)


def test_the_sample_thins_itself_by_a_hash_of_the_row_number():
    X, y = rows("logistic", n=200_000)
    learner = RenewableNewton(3, "logistic").consume(X, y)
    sample = learner._sums.sample
    assert isinstance(sample, RowSample)
    assert sample.count <= sample.capacity
    share = sample.count / 200_000
    assert share == pytest.approx(2.0**-sample.thinning, rel=0.05)
    index = sample.to_state()["index"]
    assert (hashed(index) >> np.uint64(64 - sample.thinning) == 0).all()


def test_bad_arguments_name_themselves():
    with pytest.raises(InputError, match=r"ridge must be a finite number of at least 0; got -1"):
        RenewableNewton(2, "linear", ridge=-1.0)
    with pytest.raises(InputError, match=r"X must have shape \(m, 2\)"):
        RenewableNewton(2, "linear").consume(np.zeros((3, 1)), np.zeros(3))
    with pytest.raises(InputError, match=r"y must have shape \(3,\)"):
        RenewableNewton(2, "linear").consume(np.zeros((3, 2)), np.zeros(2))
    with pytest.raises(NotEnoughData):
        RenewableNewton(2, "linear").fit()
    with pytest.raises(InputError, match=r"state\.kind must be"):
        RenewableNewton.from_state({"kind": "other"})


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("equations", [1, 2])
def test_the_map_to_the_user_s_coefficients_is_its_matrix(intercept, equations):
    rng = np.random.default_rng(0)
    scaling = Scaling.of(rng.normal(3.0, 2.0, (50, 3)), None, intercept, equations)
    theta = rng.standard_normal((equations * scaling.columns, 4))
    np.testing.assert_allclose(scaling.user_coefficients(theta), scaling.matrix @ theta, rtol=1e-12)
    np.testing.assert_allclose(scaling.user_coefficients(theta[:, 0]), scaling.matrix @ theta[:, 0], rtol=1e-12)
    np.testing.assert_allclose(scaling.inverse(scaling.user_coefficients(theta[:, 0])), theta[:, 0], rtol=1e-12)
