"""Models fitted apart and pooled, against a single fit of all rows."""

import warnings

import numpy as np
import pytest

import halfwidth as hw
from halfwidth.errors import InputError
from halfwidth.learners.newton import kept_sample

MODELS = {
    "linear": hw.LinearRegression,
    "logistic": hw.LogisticRegression,
    "poisson": hw.PoissonRegressor,
    "gamma": hw.GammaRegressor,
    "negative-binomial": hw.NegativeBinomialRegressor,
    "multinomial": hw.MultinomialRegression,
    "quantile": hw.QuantileRegressor,
    "huber": hw.HuberRegressor,
}
BETA = np.array([0.5, -0.3, 0.2])


def rows(family, n=20_000, seed=0):
    """Columns whose centre and scale in the first rows differ from those of the later ones."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    X[: n // 3] = X[: n // 3] * [1.0, 0.3, 1.0] + [0.0, 0.5, -0.7]
    eta = X @ BETA + 0.2
    if family == "logistic":
        return X, (rng.random(n) < 1.0 / (1.0 + np.exp(-eta))).astype(float)
    if family == "multinomial":
        scores = np.column_stack([np.zeros(n), eta, -eta]) + rng.gumbel(size=(n, 3))
        return X, scores.argmax(axis=1).astype(float)
    if family == "poisson":
        return X, rng.poisson(np.exp(eta)).astype(float)
    if family == "gamma":
        return X, np.exp(eta) * rng.gamma(2.0, 0.5, n)
    if family == "negative-binomial":
        return X, rng.poisson(np.exp(eta) * rng.gamma(2.0, 0.5, n)).astype(float)
    return X, eta + rng.standard_normal(n)


def fitted(family, X, y, classes=None, **columns):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MODELS[family]()
        return model.partial_fit(X, y, classes, **columns) if classes is not None else model.fit(X, y, **columns)


def apart(family, X, y, cuts, **columns):
    classes = np.unique(y) if family in ("logistic", "multinomial") else None
    parts = np.split(np.arange(len(y)), cuts)
    return [fitted(family, X[i], y[i], classes, **{k: v[i] for k, v in columns.items()}) for i in parts]


@pytest.mark.parametrize("cuts", [[7_000], [5, 7_000, 7_500, 19_990]])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_linear_model_is_that_of_a_single_fit(cuts, weighted):
    X, y = rows("linear")
    columns = {}
    if weighted:
        rng = np.random.default_rng(1)
        columns = {"sample_weight": rng.uniform(0.5, 2.0, len(y)) * np.linspace(1.0, 30.0, len(y)), "offset": X[:, 0]}
    first, *others = apart("linear", X, y, cuts, **columns)
    both, whole = first.pool(*others), fitted("linear", X, y, **columns)
    assert both.n_seen_ == len(y)
    np.testing.assert_allclose(both.coef_, whole.coef_, rtol=1e-8, atol=1e-10)
    one, other = both.inference(), whole.inference()
    assert one.status == other.status == "ok"
    np.testing.assert_allclose(one.bse, other.bse, rtol=0.1)
    for name in ("llf", "deviance") if weighted else ("llf", "rsquared"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-8)
    assert one.basis.dispersion == pytest.approx(other.basis.dispersion, rel=1e-8)


@pytest.mark.parametrize("family", [name for name in MODELS if name != "linear"])
def test_other_models_are_close_to_a_single_fit(family):
    X, y = rows(family)
    first, *others = apart(family, X, y, [6_000, 13_000])
    both, whole = first.pool(*others).inference(), fitted(family, X, y).inference()
    assert both.status == whole.status == "ok"
    gap = np.abs(both.params - whole.params) / whole.bse
    assert gap.max() < (0.3 if family == "quantile" else 0.05)
    np.testing.assert_allclose(both.bse, whole.bse, rtol=0.12)
    if family not in ("quantile", "huber"):
        assert both.llf == pytest.approx(whole.llf, rel=1e-4)


def test_while_the_samples_hold_every_row_the_fit_is_the_offline_one():
    X, y = rows("logistic", 3_000)
    first, other = apart("logistic", X, y, [1_100])
    both, whole = first.pool(other), fitted("logistic", X, y)
    np.testing.assert_allclose(both.coef_, whole.coef_, rtol=1e-7)
    assert both.inference().llf == pytest.approx(whole.inference().llf, rel=1e-9)


@pytest.mark.parametrize("family", ["linear", "logistic"])
def test_groups_with_rows_in_both_pieces_are_one_group(family):
    X, y = rows(family, 9_000)
    labels = np.random.default_rng(2).integers(0, 300, 9_000)
    y = y if family == "logistic" else y + np.random.default_rng(3).standard_normal(300)[labels]
    first, other = apart(family, X, y, [4_000], groups=labels)
    both, whole = first.pool(other).inference(), fitted(family, X, y, groups=labels).inference()
    assert both.basis.groups == (300, True)
    np.testing.assert_allclose(both.params, whole.params, rtol=1e-7)
    np.testing.assert_allclose(both.bse, whole.bse, rtol=1e-6)
    np.testing.assert_allclose(both.df, whole.df, rtol=1e-6)


def test_a_pooled_model_goes_on_learning_and_is_saved_like_any_other(tmp_path):
    X, y = rows("logistic", 60_000)
    first, other = apart("logistic", X[:50_000], y[:50_000], [20_000])
    before = first.coef_.copy()
    both = first.pool(other)
    np.testing.assert_array_equal(first.coef_, before)
    both.save(tmp_path / "both")
    again = hw.load(tmp_path / "both")
    for model in (both, again):
        model.partial_fit(X[50_000:], y[50_000:])
    np.testing.assert_array_equal(both.coef_, again.coef_)
    whole = fitted("logistic", X, y).inference()
    assert (np.abs(both.inference().params - whole.params) / whole.bse).max() < 0.1
    sample = both._engine.learner._sums.sample
    assert sample.thinning > 0
    assert not (kept_sample.hashed(sample.index) >> np.uint64(64 - sample.thinning)).any()
    assert abs(sample.count * sample.multiple / 60_000 - 1.0) < 0.1


def test_pieces_of_which_one_has_far_more_rows():
    X, y = rows("poisson", 40_000)
    for cut in (30, 39_950):
        first, other = apart("poisson", X, y, [cut])
        both, whole = first.pool(other).inference(), fitted("poisson", X, y).inference()
        assert (np.abs(both.params - whole.params) / whole.bse).max() < 0.1


def test_pieces_that_disagree_are_doubted():
    """A coefficient that differs between the pieces is an average of the two, and said to be."""
    X, y = rows("linear")
    y[10_000:] += X[10_000:, 0]
    first, other = apart("linear", X, y, [10_000])
    assert first.pool(other).inference().coefficient_status[1] == "unstable"


def test_separation_is_seen_in_all_pieces_together():
    """Separated in each piece, not in both; and separated in both."""
    x = np.linspace(-1.0, 1.0, 400)[:, None]
    up, down = (x[:, 0] > 0.1).astype(float), (x[:, 0] < 0.1).astype(float)
    classes = np.array([0.0, 1.0])
    one, same, other = (fitted("logistic", x, y, classes) for y in (up, up, down))
    assert "separated" in one.report()["status"]
    assert one.pool(same).report()["status"] == "separated"
    assert one.pool(other).inference().coefficient_status[1] != "separated"


def test_models_that_differ_are_refused():
    X, y = rows("linear", 2_000)
    model = fitted("linear", X, y)
    with pytest.raises(InputError, match="others must have the same class"):
        model.pool(fitted("huber", X, y))
    with pytest.raises(InputError, match="others must have the same params"):
        model.pool(hw.LinearRegression(ridge=0.1).fit(X, y))
    with pytest.raises(InputError, match="others must have the same n_features"):
        model.pool(fitted("linear", X[:, :2], y))
    with pytest.raises(InputError, match="grouped and ungrouped"):
        model.pool(fitted("linear", X, y, groups=np.arange(2_000) % 100))
    with pytest.raises(InputError, match="engine must be 'newton'"):
        hw.LinearRegression(engine="sgd").fit(X, y).pool(model)
    with pytest.raises(InputError, match="others must be fitted models; got 'int'"):
        model.pool(3)
    many = [fitted("linear", X, y, groups=np.arange(2_000) + at) for at in (0, 1_000)]
    with pytest.raises(InputError, match="more than 2,048 groups"):
        many[0].pool(many[1])


def test_tables_of_raw_columns_pool_where_their_designs_agree():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.standard_normal(6_000), "c": rng.choice(["a", "b", "d"], 6_000)})
    table["y"] = table["x"] + (table["c"] == "b") + rng.standard_normal(6_000)
    table["k"] = pd.Categorical(table["c"])
    parts = [hw.fit(part, formula="y ~ x + k") for part in (table[:2_500], table[2_500:])]
    both, whole = parts[0].pool(parts[1]), hw.fit(table, formula="y ~ x + k")
    np.testing.assert_allclose(both.coef_, whole.coef_, rtol=1e-8)
    np.testing.assert_allclose(both.predict(table[:5]), whole.predict(table[:5]), rtol=1e-8)
    with pytest.raises(InputError, match=r"feature_names .* declare them"):
        hw.fit(table[:2_500], formula="y ~ x + c").pool(hw.fit(table[2_500:], formula="y ~ x + c"))
    with pytest.raises(InputError, match="Declare levels"):
        hw.fit(table[:2_500], formula="y ~ center(x)").pool(hw.fit(table[2_500:], formula="y ~ center(x)"))


def test_what_the_streams_skipped_is_added_up():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"x": np.random.default_rng(0).standard_normal(4_000)})
    table["y"] = table["x"] + np.random.default_rng(1).standard_normal(4_000)
    table.loc[[5, 3_000, 3_001], "y"] = np.nan
    parts = [hw.fit(part, formula="y ~ x", bad_rows="skip") for part in (table[:2_000], table[2_000:])]
    facts = parts[0].pool(parts[1]).report()["diagnostics"]
    assert sum(facts["skipped_rows"].values()) == 3
