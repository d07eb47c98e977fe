"""scikit-learn's own checks, and its habits: pipelines, clones, parameters."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from family_targets import drawn
from halfwidth.errors import InputError, UnknownName
from halfwidth.models import (
    MODELS,
    FitWarning,
    LinearRegression,
    LogisticRegression,
    NegativeBinomialRegressor,
    PoissonRegressor,
    QuantileRegressor,
)


class WholeTargets(NegativeBinomialRegressor):
    """scikit-learn's checks draw any positive numbers, which a negative binomial regression refuses."""

    def _encode(self, y, classes, fresh):
        return super()._encode(np.round(y), classes, fresh)

    def _check_target(self, y):
        super()._check_target(np.round(y))


_OF_WHOLE_TARGETS = {"negative-binomial": WholeTargets}

# scikit-learn's checks fit tables of a few rows, and separable ones: warning of them is right.
TINY_TABLES = pytest.mark.filterwarnings(f"ignore::{FitWarning.__module__}.FitWarning")


@TINY_TABLES
@parametrize_with_checks([_OF_WHOLE_TARGETS.get(family, model)() for family, model in MODELS.items()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("family", MODELS)
def test_pipeline_and_clone(family):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2)) * [1.0, 100.0]
    y = drawn(family, rng, X @ [0.5, 0.005])
    model = clone(MODELS[family](ridge=0.01))
    assert model.ridge == 0.01
    pipeline = make_pipeline(StandardScaler(), model).fit(X, y)
    assert pipeline.predict(X).shape == (300,)
    assert np.isfinite(cross_val_score(make_pipeline(StandardScaler(), model), X, y, cv=3)).all()


def test_partial_fit_equals_fit():
    rng = np.random.default_rng(1)
    X, noise = rng.standard_normal((5000, 3)), rng.standard_normal(5000)
    y = X @ [1.0, 0.0, -1.0] + noise
    whole, pieces = LinearRegression().fit(X, y), LinearRegression()
    for at in range(0, 5000, 37):
        pieces.partial_fit(X[at : at + 37], y[at : at + 37])
    assert np.array_equal(whole.coef_, pieces.coef_)
    assert np.array_equal(whole.inference().bse, pieces.inference().bse)
    assert pieces.n_seen_ == 5000


def test_shapes_are_scikit_learns():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((200, 2))
    labels = np.where(rng.random(200) < 0.5, "yes", "no")
    model = LogisticRegression().fit(X, labels)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.coef_.shape == (1, 2)
    assert model.intercept_.shape == (1,)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert set(model.predict(X)) <= {"no", "yes"}
    assert LinearRegression(fit_intercept=False).partial_fit(X, X[:, 0]).intercept_ == 0.0


def test_classes_can_come_later():
    X = np.random.default_rng(3).standard_normal((60, 1))
    model = LogisticRegression().partial_fit(X[:20], np.zeros(20, dtype=int), classes=[0, 1])
    assert model.status_ == "one-class" or model.status_ == "too-few-rows"
    model.partial_fit(X[20:], np.arange(40) % 2)
    assert model.status_ == "ok"
    with pytest.raises(InputError, match="got only one class"):
        LogisticRegression().partial_fit(X, np.zeros(60))
    with pytest.raises(InputError, match=r"y must hold the classes \[0, 1\] only; got "):
        model.partial_fit(X, np.full(60, 2))


def test_an_offset_is_the_log_of_exposure():
    rng = np.random.default_rng(4)
    X, exposure = rng.standard_normal((4000, 1)), rng.uniform(1.0, 10.0, 4000)
    y = rng.poisson(exposure * np.exp(0.5 + 0.3 * X[:, 0]))
    model = PoissonRegressor().fit(X, y, offset=np.log(exposure))
    assert model.intercept_ == pytest.approx(0.5, abs=0.05)
    np.testing.assert_allclose(model.predict(X[:5], offset=np.log(exposure[:5])), model.predict(X[:5]) * exposure[:5])


def test_arguments_are_checked():
    X, y = np.random.default_rng(5).standard_normal((50, 2)), np.arange(50.0)
    with pytest.raises(UnknownName, match="there is no engine named 'newtn'"):
        LinearRegression(engine="newtn").fit(X, y)
    with pytest.raises(UnknownName, match="method"):
        LinearRegression(method="nothing").fit(X, y)
    with pytest.raises(InputError, match="with engine='newton'"):
        LinearRegression(engine="newton", method="obm").fit(X, y)
    with pytest.raises(InputError, match="quantile must lie"):
        QuantileRegressor(quantile=0.0).fit(X, y)
    with pytest.raises(InputError, match="sample_weight must not be negative"):
        LinearRegression().fit(X, y, sample_weight=-np.ones(50))
    with pytest.raises(InputError, match="offset must be 50 finite numbers"):
        LinearRegression().fit(X, y, offset=np.ones(3))
    with pytest.raises(InputError, match="y must be counts or rates of at least 0"):
        PoissonRegressor().fit(X, -y - 1.0)
    with pytest.raises(NotFittedError):
        _ = LinearRegression().coef_


@pytest.mark.parametrize("name", ["obm-normal", "batch-means", "lugsail", "random-scaling"])
def test_methods_of_the_table_can_be_named(name):
    rng = np.random.default_rng(6)
    X = rng.standard_normal((20_000, 2))
    result = LinearRegression(method=name).fit(X, X @ [1.0, 0.0] + rng.standard_normal(20_000)).inference()
    assert result.method == name
    assert abs(result.params[1] - 1.0) < 0.2
