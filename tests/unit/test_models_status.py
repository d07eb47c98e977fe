"""Data that do not determine the coefficients: fit warns and names a status, inference refuses with advice."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from halfwidth.errors import NotEnoughData, NotIdentified
from halfwidth.learners.newton.kept_sample import hashed
from halfwidth.models import FitWarning, LinearRegression, LogisticRegression, PoissonRegressor, fit
from halfwidth.models.newton_engine import NewtonEngine


def rows(n=3000, d=2, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def flags_of(model, X, y, **options):
    """The flags of every coefficient, by name; fitting warns where there are any."""
    with pytest.warns(FitWarning):
        model.fit(X, y, **options)
    report = model.report()
    assert report["status"] == model.status_
    for row in report["coefficients"]:
        assert row["status"] == (row["flags"][0] if row["flags"] else "ok")
        if row["status"] in ("unidentified", "separated"):
            assert row["std_err"] is row["ci_lower"] is row["p"] is None
    return {row["name"]: row["flags"] for row in report["coefficients"]}


def refuses(model, X, y, status, words):
    """No coefficient has an interval."""
    with pytest.warns(FitWarning, match=status):
        model.fit(X, y)
    assert model.status_ == status
    with pytest.raises(NotIdentified, match=words) as refusal:
        model.inference()
    assert refusal.value.status == status
    assert np.isfinite(model.coef_).all()
    report = model.report()
    assert report["status"] == status
    assert all(row["std_err"] is None for row in report["coefficients"])


def test_too_few_rows():
    X = rows(8)
    model = LinearRegression()
    with pytest.warns(FitWarning, match="too-few-rows"):
        model.fit(X, X[:, 0])
    with pytest.raises(NotEnoughData, match="8 rows are too few for 3 coefficients; 13 are needed"):
        model.inference()


@pytest.mark.parametrize("n", [60, 5000])
def test_separable_classes(n):
    X = rows(n)
    flags = flags_of(LogisticRegression(), X, X[:, 0] > 0)
    assert flags["x0"][0] == "separated"
    with pytest.warns(FitWarning, match="(?s)separated: the likelihood has no maximum along .*x0.* ridge > 0"):
        LogisticRegression().fit(X, X[:, 0] > 0)
    ridged = LogisticRegression(ridge=0.01).fit(X, X[:, 0] > 0).inference()
    assert "separated" not in str(ridged.coefficient_flags)


@pytest.mark.parametrize("n", [200, 5000])
def test_two_columns_that_separate_together(n):
    X = rows(n)
    flags = flags_of(LogisticRegression(), X, X @ [1.0, -2.0] > 0.3)
    assert all(flags[name][0] == "separated" for name in ("Intercept", "x0", "x1"))


def test_a_level_that_separates_leaves_the_others_alone():
    X = rows(2000)
    X[:, 1] = np.arange(2000) % 10 == 0
    y = np.where(X[:, 1] == 1.0, 1, np.random.default_rng(1).random(2000) < 0.5)
    frame = pd.DataFrame(X, columns=["a", "rare"])
    flags = flags_of(LogisticRegression(), frame, y)
    assert (flags["Intercept"], flags["a"], flags["rare"][0]) == ([], [], "separated")
    without = LogisticRegression().fit(frame[["a"]][X[:, 1] == 0], y[X[:, 1] == 0]).inference()
    with pytest.warns(FitWarning):
        whole = LogisticRegression().fit(frame, y).inference()
    np.testing.assert_allclose(whole.params[:2], without.params, rtol=1e-3)
    np.testing.assert_allclose(whole.bse[:2], without.bse, rtol=0.1)
    assert whole.status == "ok"


def test_counts_that_are_always_zero_at_a_level():
    X = rows(400)
    X[:, 1] = np.arange(400) % 10 == 0
    y = np.where(X[:, 1] == 1.0, 0, np.random.default_rng(1).poisson(2.0, 400))
    assert flags_of(PoissonRegressor(), X, y)["x1"][0] == "separated"


@pytest.mark.parametrize("model", [LinearRegression(), LogisticRegression()])
@pytest.mark.parametrize("n", [200, 3000])
def test_constant_and_collinear_columns(model, n):
    X = rows(n, 3)
    y = (X[:, 0] + rows(n, 1, 9)[:, 0] > 0).astype(int)
    constant = X.copy()
    constant[:, 1] = 3.0
    flags = flags_of(model, constant, y)
    assert (flags["x0"], flags["x2"]) == ([], [])
    assert flags["x1"][0] == flags["Intercept"][0] == "unidentified"
    plain = model.fit(constant[:, [0, 2]], y).inference()
    with pytest.warns(FitWarning):
        given = model.fit(constant, y).inference()
    np.testing.assert_allclose(given.bse[[1, 3]], plain.bse[1:], rtol=0.02)
    X = np.column_stack([X, rows(n, 1, 5)])
    X[:, 2] = 2.0 * X[:, 0] - X[:, 1] + 5.0
    flags = flags_of(model, X, y)
    assert [flags[name][:1] for name in ("x0", "x1", "x2", "x3")] == [["unidentified"]] * 3 + [[]]


def test_dummies_of_every_level_with_an_intercept_are_collinear():
    level = np.arange(600) % 3
    X = (level[:, None] == np.arange(3)).astype(float)
    refuses(LinearRegression(), X, rows(600, 1)[:, 0], "unidentified", "Intercept, x0, x1, x2")
    without = LinearRegression(fit_intercept=False).fit(X, rows(600, 1)[:, 0]).inference()
    assert without.coefficient_status == ("ok",) * 3


@pytest.mark.parametrize("weight", [1.0, 1e-6, 1e6])
def test_near_collinear_columns_and_small_weights_are_no_separation(weight):
    rng = np.random.default_rng(11)
    X = rng.standard_normal((4000, 3))
    X[:, 2] = X[:, 1] + 1e-4 * rng.standard_normal(4000)
    y = rng.random(4000) < 1 / (1 + np.exp(-X[:, 0]))
    result = LogisticRegression().fit(X, y, sample_weight=np.full(4000, weight)).inference()
    assert result.coefficient_status == ("ok",) * 4
    assert result.bse[2] > 100.0


def test_partial_fit_does_not_warn(recwarn):
    X = rows(5)
    model = LinearRegression().partial_fit(X, X[:, 0])
    assert model.status_ == "too-few-rows"
    assert not [w for w in recwarn if issubclass(w.category, FitWarning)]


def test_few_groups_are_named():
    X = rows(600)
    y = X[:, 0] + rows(600, 1, 3)[:, 0]
    with pytest.warns(FitWarning, match="few-groups"):
        result = LinearRegression().fit(X, y, groups=np.arange(600) // 120).inference()
    assert result.status == "few-groups"
    assert "warning (few-groups)" in result.summary()


def test_a_trend_in_the_noise_is_named():
    n = 3000
    walk = np.cumsum(np.random.default_rng(5).standard_normal(n))
    with pytest.warns(FitWarning, match="long-dependence"):
        result = LinearRegression().fit(np.linspace(0, 1, n)[:, None], walk).inference()
    assert result.status == "long-dependence"


@pytest.mark.parametrize("n", [3_000, 60_000, 300_000])
def test_a_rare_level_that_separates_in_a_long_stream(n):
    """31 rows of one class, as in FACTS: exact at any n, and whichever rows the sample kept."""
    rng = np.random.default_rng(6)
    X = rng.standard_normal((n, 2))
    X[:, 1] = 0.0
    X[rng.choice(n, 31, replace=False), 1] = 1.0
    y = np.where(X[:, 1] == 1.0, 1, rng.random(n) < 0.4).astype(int)
    flags = flags_of(LogisticRegression(), pd.DataFrame(X, columns=["a", "rare"]), y)
    assert flags["rare"][0] == "separated"
    assert flags["a"] == flags["Intercept"] == []


def test_rare_events_and_late_starts_are_no_separation():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((50_000, 2))
    rare = (rng.random(50_000) < 1 / (1 + np.exp(6.0 - X[:, 0]))).astype(int)
    late = np.where(np.arange(50_000) < 40_000, 0, rng.random(50_000) < 0.5).astype(int)
    assert LogisticRegression().fit(X, rare).inference().coefficient_status == ("ok",) * 3
    result = LogisticRegression().partial_fit(X, late).inference()
    assert result.status == "long-dependence"
    assert "separated" not in str(result.coefficient_flags)


def together(against):
    """150,000 rows, 300 of which two columns separate, but for a few that the kept sample does not hold."""
    rng, n = np.random.default_rng(0), 150_000
    X = np.zeros((n, 3))
    X[:, 0] = rng.standard_normal(n)
    y = (rng.random(n) < 1 / (1 + np.exp(-0.5 * X[:, 0]))).astype(int)
    lost = np.flatnonzero(hashed(np.arange(n, dtype=np.uint64)) >> np.uint64(63))
    for among, count, side in ((n, 300, 1.0), (lost, against, -1.0)):
        at = rng.choice(among, count, replace=False)
        X[at, 1:] = rng.standard_normal((count, 2))
        y[at] = side * (X[at, 1] + X[at, 2]) > 0
    return X, y


@pytest.mark.parametrize("against", [0, 3, 30])
def test_a_separation_that_the_sample_suggests_is_confirmed_or_cleared_by_the_next_pass(against):
    X, y = together(against)
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)
    once = fit(table, target="y", family="logistic", passes=1)
    assert [row["status"] for row in once.report()["coefficients"]] == ["ok", "ok", "separated", "separated"]
    assert once.status_ == "needs-second-pass"
    assert any("only a further pass can tell" in text for text in once._warnings())
    again = fit(table, target="y", family="logistic")
    rows = again.report()["coefficients"]
    assert again.status_ == "ok"
    if not against:
        assert [row["status"] for row in rows] == ["ok", "ok", "separated", "separated"]
        assert not any("only a further pass can tell" in text for text in again._warnings())
        return
    offline = sm.Logit(y, sm.add_constant(X)).fit(disp=0, maxiter=100)
    assert [row["status"] for row in rows] == ["ok"] * 4
    np.testing.assert_allclose([row["coef"] for row in rows], offline.params, atol=0.05 * offline.bse.max())


def test_what_a_pass_looks_at_is_saved_with_it():
    X, y = together(3)
    engine = LogisticRegression().partial_fit(X, y)._engine.second_pass()
    parts = [slice(0, 70_000), slice(70_000, None)]
    engine.consume(X[parts[0]], y[parts[0]].astype(float), None, None, None)
    copy = NewtonEngine.from_state(engine.to_state())
    for each in (engine, copy):
        each.consume(X[parts[1]], y[parts[1]].astype(float), None, None, None)
    assert len(copy.suspicion.y) >= 3
    np.testing.assert_array_equal(copy.suspicion.X, engine.suspicion.X)
    np.testing.assert_array_equal(copy.params(), engine.params())
