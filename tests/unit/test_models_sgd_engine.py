"""The engine for many columns obeys the rules of the other: weights, identification, separation; and checks itself."""

import numpy as np
import pytest

from halfwidth import PowerStep
from halfwidth.methods import Setting
from halfwidth.models import FitWarning, LinearRegression, LogisticRegression, PoissonRegressor

RNG = np.random.default_rng


def rows(n=6000, d=3, seed=0):
    X = RNG(seed).standard_normal((n, d))
    return X, X[:, 0] + RNG(seed + 1).standard_normal(n)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_only_ratios_of_weights_matter(factor):
    X, y = rows()
    weight = RNG(5).integers(0, 3, len(y)).astype(float)
    plain = LinearRegression(engine="sgd").partial_fit(X, y, sample_weight=weight).inference()
    scaled = LinearRegression(engine="sgd").partial_fit(X, y, sample_weight=factor * weight).inference()
    used = weight > 0
    dropped = LinearRegression(engine="sgd").partial_fit(X[used], y[used], sample_weight=weight[used]).inference()
    np.testing.assert_allclose(scaled.params, plain.params, rtol=1e-8)
    np.testing.assert_allclose(scaled.bse, plain.bse, rtol=1e-6)
    np.testing.assert_array_equal(dropped.params, plain.params)


def test_constant_and_collinear_columns_are_refused_and_the_others_are_not():
    X, y = rows(d=4)
    X[:, 1] = 3.0
    X[:, 3] = 2.0 * X[:, 2]
    with pytest.warns(FitWarning, match="unidentified"):
        result = LinearRegression(engine="sgd").fit(X, y).inference()
    assert result.coefficient_status == ("unidentified", "ok", "unidentified", "unidentified", "unidentified")
    assert np.isnan(np.asarray(result.bse)[[0, 2, 3, 4]]).all()
    assert result.bse[1] > 0.0


def test_separation_is_named():
    X, y = rows()
    X[:, 1] = np.arange(len(y)) % 50 == 0
    labels = np.where(X[:, 1] == 1.0, 1, y > 0)
    with pytest.warns(FitWarning, match="separated"):
        result = LogisticRegression(engine="sgd").fit(X, labels).inference()
    assert result.coefficient_status[2] == "separated"
    counts = np.where(X[:, 1] == 1.0, 0, RNG(3).poisson(2.0, len(y)))
    with pytest.warns(FitWarning, match="separated"):
        assert PoissonRegressor(engine="sgd").fit(X, counts).inference().coefficient_status[2] == "separated"


def test_an_average_that_did_not_arrive_is_named_and_one_that_did_is_not(monkeypatch):
    """The first rows have another slope, and steps are a millionth of what they should be."""
    X, y = rows(20_000)
    assert LinearRegression(engine="sgd").partial_fit(X, y).inference().status == "ok"
    y[:1024] += 4.0 * X[:1024, 0]

    class Slow(Setting):
        def step(self):
            return PowerStep(1e-6, 0.6)

    monkeypatch.setattr("halfwidth.models.sgd_engine.Setting", Slow)
    assert "not-settled" in dict(LinearRegression(engine="sgd").partial_fit(X, y).inference().diagnostics.flags)


def test_state_round_trips():
    X, y = rows()
    first = LinearRegression(engine="sgd").partial_fit(X[:2500], y[:2500])
    resumed = LinearRegression.from_state(first.to_state()).partial_fit(X[2500:], y[2500:]).inference()
    straight = first.partial_fit(X[2500:], y[2500:]).inference()
    whole = LinearRegression(engine="sgd").partial_fit(X, y).inference()  # its iterates are added up in other pieces
    np.testing.assert_array_equal(resumed.bse, straight.bse)
    np.testing.assert_allclose(resumed.bse, whole.bse, rtol=1e-12)
    assert resumed.coefficient_status == straight.coefficient_status == whole.coefficient_status
