"""Goodness of fit against statsmodels: exact for linear, while all rows are held, and after a second pass."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import halfwidth as hw
from halfwidth.errors import InputError


def data(family, n=3_000, seed=1):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.standard_normal((n, 2)), columns=["x", "z"])
    eta = 0.3 + 0.8 * X["x"] - 0.4 * X["z"]
    if family == "linear":
        return X, 1e3 + eta + rng.standard_normal(n)
    if family == "logistic":
        return X, (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(float)
    return X, rng.poisson(np.exp(eta)).astype(float)


MODELS = {"linear": hw.LinearRegression, "logistic": hw.LogisticRegression, "poisson": hw.PoissonRegressor}


def theirs(family, X, y, weight=None):
    X = sm.add_constant(X)
    if family == "linear":
        return sm.OLS(y, X).fit()
    kind = sm.families.Binomial() if family == "logistic" else sm.families.Poisson()
    return sm.GLM(y, X, family=kind, freq_weights=weight).fit(tol=1e-12)


@pytest.mark.parametrize("family", MODELS)
def test_statistics_are_statsmodels(family):
    X, y = data(family)
    ours, other = MODELS[family]().fit(X, y).inference(), theirs(family, X, y)
    assert ours.likelihood_is_exact
    for name in ("llf", "aic"):
        assert getattr(ours, name) == pytest.approx(getattr(other, name), rel=1e-8)
    if family == "linear":
        assert ours.bic == pytest.approx(other.bic, rel=1e-8)
        assert (ours.rsquared, ours.rsquared_adj) == pytest.approx((other.rsquared, other.rsquared_adj), rel=1e-8)
        assert ours.deviance == pytest.approx(other.ssr, rel=1e-8)
        assert ours.null_deviance == pytest.approx(other.centered_tss, rel=1e-8)
    else:
        assert ours.llnull == pytest.approx(other.llnull, rel=1e-8)
        assert ours.bic == pytest.approx(other.bic_llf, rel=1e-8)
        assert (ours.deviance, ours.null_deviance) == pytest.approx((other.deviance, other.null_deviance), rel=1e-8)
        assert ours.prsquared == pytest.approx(other.pseudo_rsquared("mcf"), rel=1e-8)
    assert (ours.df_model, ours.nobs) == (2, len(y))


def test_without_an_intercept_r_squared_is_around_zero():
    X, y = data("linear")
    ours = hw.LinearRegression(fit_intercept=False).fit(X, y).inference()
    assert ours.rsquared == pytest.approx(sm.OLS(y, X).fit().rsquared, rel=1e-8)


@pytest.mark.parametrize("family", ["logistic", "poisson"])
def test_a_long_stream_is_close_in_one_pass_and_exact_in_two(family):
    X, y = data(family, n=120_000)
    frame = X.assign(y=y)
    once = hw.fit(frame, formula="y ~ x + z", family=family, passes=1).inference()
    twice = hw.fit(frame, formula="y ~ x + z", family=family, passes=2).inference()
    other = theirs(family, X, y)
    assert not once.likelihood_is_exact
    assert once.llf == pytest.approx(other.llf, rel=1e-4)
    assert twice.likelihood_is_exact
    assert twice.llf == pytest.approx(other.llf, rel=1e-8)
    assert twice.deviance == pytest.approx(other.deviance, rel=1e-8)


@pytest.mark.parametrize("family", MODELS)
def test_only_ratios_of_weights_matter(family):
    X, y = data(family)
    weight = np.random.default_rng(2).uniform(0.5, 2.0, len(y))
    some, others = (MODELS[family]().fit(X, y, sample_weight=factor * weight).inference() for factor in (1e-6, 1e6))
    for name in ("llf", "deviance", "null_deviance"):
        assert getattr(some, name) == pytest.approx(getattr(others, name), rel=1e-8)


def test_the_overall_test_is_the_joint_test_of_the_slopes():
    X, y = data("linear")
    result = hw.LinearRegression().fit(X, y).inference()
    assert result.f_pvalue == result.wald_test(["x", "z"]).p_value
    assert result.fvalue == pytest.approx(sm.OLS(y, sm.add_constant(X)).fit().fvalue, rel=0.15)


def test_what_a_family_has_not_is_named():
    X, y = data("linear")
    with pytest.raises(InputError, match="prsquared exists for regressions other than linear"):
        hw.LinearRegression().fit(X, y).inference().prsquared  # noqa: B018
    with pytest.raises(InputError, match="llf is not known here"):
        hw.QuantileRegressor().fit(X, y).inference().llf  # noqa: B018


def test_statistics_are_in_the_json():
    X, y = data("logistic")
    found = hw.LogisticRegression().fit(X, y).inference().to_dict()["diagnostics"]
    assert set(found) >= {"prsquared", "deviance", "null_deviance", "llf", "aic", "bic", "likelihood_is_exact"}
