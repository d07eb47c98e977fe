"""Goodness of fit against statsmodels: exact for linear, while all rows are held, and after a second pass."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import halfwidth as hw
from halfwidth.errors import InputError
from regression_rows import one_pass_and_two


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
    once, twice = one_pass_and_two(X, y, family)
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


@pytest.mark.parametrize("n", [2_000, 70_000])
def test_beside_offsets_the_best_constant_is_refused_and_the_rest_is_statsmodels(n):
    """A constant that ignores the exposure gave a null deviance of another model."""
    X, _ = data("poisson", n=n)
    rng = np.random.default_rng(3)
    exposure = rng.uniform(0.5, 5.0, n)
    y = rng.poisson(exposure * np.exp(0.2 * X["x"]))
    ours = hw.PoissonRegressor().fit(X, y, offset=np.log(exposure))
    other = sm.GLM(y, sm.add_constant(X), family=sm.families.Poisson(), offset=np.log(exposure)).fit(tol=1e-12)
    for result in (ours.inference(), type(ours).from_state(ours.to_state()).inference()):
        assert result.llf == pytest.approx(other.llf, rel=1e-5)
        assert result.deviance == pytest.approx(other.deviance, rel=1e-5)
        with pytest.raises(InputError, match="the best constant is not known here: rows have offsets"):
            result.prsquared  # noqa: B018
        assert not {"null_deviance", "prsquared"} & set(result.to_dict()["diagnostics"])


def test_hypotheses_are_statsmodels_with_the_same_covariance():
    """statsmodels takes a covariance: statistics are then functions of the same numbers."""
    X, y = data("logistic")
    ours = hw.LogisticRegression().fit(X, y).inference()
    other = sm.Logit(y, sm.add_constant(X).rename(columns={"const": "Intercept"})).fit(disp=0, tol=1e-14)
    covariance = np.asarray(ours.cov_params())
    for text in ("x = 0.5", "x - 2*z", "Intercept + x = 1"):
        mine, theirs_ = ours.t_test(text), other.t_test(text, cov_p=covariance)
        assert mine.effect == pytest.approx(np.ravel(theirs_.effect), rel=1e-6)
        assert mine.sd == pytest.approx(np.ravel(theirs_.sd), rel=1e-6)
        assert mine.tvalue == pytest.approx(np.ravel(theirs_.tvalue), rel=1e-6)
    for text in ("x = z = 0", "x = 0.8, z = -0.4"):
        joint = other.f_test(text, cov_p=covariance)
        mine = ours.wald_test(text.split(", ") if "," in text else text)
        assert mine.statistic == pytest.approx(2.0 * float(joint.fvalue), rel=1e-6)
        nu = mine.df_denom + 1.0  # Hotelling's: the quadratic form is that of an estimated covariance
        assert mine.fvalue == pytest.approx(float(joint.fvalue) * (nu - 1.0) / nu, rel=1e-6)
    odds = ours.odds_ratios()
    np.testing.assert_allclose(odds["ratio"], np.exp(other.params), rtol=1e-6)


def test_intervals_of_observations_are_statsmodels_with_the_same_covariance():
    X, y = data("linear")
    ours = hw.LinearRegression().fit(X, y).inference()
    design = sm.add_constant(X)
    other = sm.OLS(y, design).fit()
    other._results.cov_params_default = np.asarray(ours.cov_params())
    mine, theirs_ = ours.get_prediction(X[:6]), other.get_prediction(design[:6])
    np.testing.assert_allclose(mine.predicted_mean, theirs_.predicted_mean, rtol=1e-8)
    np.testing.assert_allclose(mine.se_mean, theirs_.se_mean, rtol=1e-6)
    half = np.diff(mine.conf_int(obs=True), axis=1)[:, 0] / np.diff(mine.conf_int(), axis=1)[:, 0]
    np.testing.assert_allclose(half, theirs_.se_obs / theirs_.se_mean, rtol=1e-6)
