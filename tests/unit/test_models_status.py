"""Data that do not determine the coefficients: fit warns and names a status, inference refuses with advice."""

import numpy as np
import pandas as pd
import pytest

from halfwidth.errors import NotEnoughData, NotIdentified
from halfwidth.models import FitWarning, LinearRegression, LogisticRegression, PoissonRegressor


def rows(n=3000, d=2, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def refuses(model, X, y, status, words):
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
    refuses(LogisticRegression(), X, X[:, 0] > 0, "separation", "set ridge > 0")
    LogisticRegression(ridge=0.01).fit(X, X[:, 0] > 0).inference()


def test_a_level_that_separates():
    X = rows(400)
    X[:, 1] = np.arange(400) % 10 == 0
    y = np.where(X[:, 1] == 1.0, 1, np.random.default_rng(1).random(400) < 0.5)
    refuses(LogisticRegression(), pd.DataFrame(X, columns=["a", "rare"]), y, "separation", "rare")


def test_counts_that_are_always_zero_at_a_level():
    X = rows(400)
    X[:, 1] = np.arange(400) % 10 == 0
    y = np.where(X[:, 1] == 1.0, 0, np.random.default_rng(1).poisson(2.0, 400))
    refuses(PoissonRegressor(), X, y, "separation", "x1")


@pytest.mark.parametrize("model", [LinearRegression(), LogisticRegression()])
@pytest.mark.parametrize("n", [200, 3000])
def test_constant_and_collinear_columns(model, n):
    X = rows(n, 3)
    y = (X[:, 0] + rows(n, 1, 9)[:, 0] > 0).astype(int)
    constant = X.copy()
    constant[:, 1] = 3.0
    refuses(model, constant, y, "constant-column", "x1")
    X[:, 2] = 2.0 * X[:, 0] - X[:, 1] + 5.0
    refuses(model, X, y, "collinear", "x0, x1, x2")


def test_dummies_of_every_level_with_an_intercept_are_collinear():
    level = np.arange(600) % 3
    X = (level[:, None] == np.arange(3)).astype(float)
    refuses(LinearRegression(), X, rows(600, 1)[:, 0], "collinear", "x0, x1, x2")
    LinearRegression(fit_intercept=False).fit(X, rows(600, 1)[:, 0]).inference()


def test_partial_fit_does_not_warn(recwarn):
    X = rows(5)
    model = LinearRegression().partial_fit(X, X[:, 0])
    assert model.status_ == "too-few-rows"
    assert not [w for w in recwarn if issubclass(w.category, FitWarning)]


def test_few_groups_are_named():
    X = rows(600)
    y = X[:, 0] + rows(600, 1, 3)[:, 0]
    result = LinearRegression().fit(X, y, groups=np.arange(600) // 120).inference()
    assert result.status == "few-groups"
    assert "warning (few-groups)" in result.summary()


def test_a_trend_in_the_noise_is_named():
    n = 3000
    walk = np.cumsum(np.random.default_rng(5).standard_normal(n))
    result = LinearRegression().fit(np.linspace(0, 1, n)[:, None], walk).inference()
    assert result.status == "long-dependence"


@pytest.mark.parametrize("n", [3_000, 60_000])
def test_a_level_that_separates_in_a_long_stream(n):
    rng = np.random.default_rng(6)
    X = rng.standard_normal((n, 2))
    X[:, 1] = rng.random(n) < 0.02
    y = np.where(X[:, 1] == 1.0, 1, rng.random(n) < 0.4).astype(int)
    refuses(LogisticRegression(), pd.DataFrame(X, columns=["a", "rare"]), y, "separation", "rare")


def test_rare_events_and_late_starts_are_no_separation():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((50_000, 2))
    rare = (rng.random(50_000) < 1 / (1 + np.exp(6.0 - X[:, 0]))).astype(int)
    late = np.where(np.arange(50_000) < 40_000, 0, rng.random(50_000) < 0.5).astype(int)
    for y in (rare, late):
        assert LogisticRegression().fit(X, y).inference().status in ("ok", "long-dependence")
