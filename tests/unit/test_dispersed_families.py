"""Gamma and negative binomial regression: against plain NumPy, against statsmodels, and at their edges."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

import halfwidth as hw
from halfwidth.errors import BadRow, InputError
from halfwidth.families import make_loss
from halfwidth.families.negative_binomial import LEAST_ALPHA, NegativeBinomial
from halfwidth.learners.newton.dispersion_sums import DispersionSums
from halfwidth.learners.newton.newton_solver import Rows
from halfwidth.learners.newton.renewable import RenewableNewton
from halfwidth.models import FitWarning
from regression_rows import one_pass_and_two

ALPHA, PHI = 0.7, 0.5


def data(family, n=3_000, seed=1):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.standard_normal((n, 2)), columns=["x", "z"])
    mean = np.exp(0.3 + 0.8 * X["x"] - 0.4 * X["z"]).to_numpy()
    if family == "gamma":
        return X, rng.gamma(1.0 / PHI, PHI * mean)
    return X, rng.poisson(mean * rng.gamma(1.0 / ALPHA, ALPHA, n)).astype(float)


def theirs(family, X, y):
    """statsmodels' fit, and its dispersion."""
    X = sm.add_constant(X)
    if family == "gamma":
        fit = sm.GLM(y, X, family=sm.families.Gamma(sm.families.links.Log())).fit(tol=1e-14, maxiter=200)
        return fit, fit.scale
    start = sm.NegativeBinomial(y, X).fit(disp=0, maxiter=500, gtol=1e-12, warn_convergence=False)
    fit = sm.NegativeBinomial(y, X).fit(start_params=start.params, disp=0, method="newton", tol=1e-14)
    return fit, float(fit.params["alpha"])


def stated(result):
    return next(iter(result.basis.family_facts.values()))


# The loss against its definition.


def log_density(y, mu, alpha):
    a = 1.0 / alpha
    gammas = gammaln(y + a) - gammaln(a) - gammaln(y + 1.0)
    return gammas + a * np.log(a / (a + mu)) + y * np.log(mu / (a + mu))


@pytest.mark.parametrize("alpha", [1e-3, 0.3, 5.0])
def test_the_negative_binomial_likelihood_is_its_density(alpha):
    y, eta = np.arange(12.0), np.linspace(-1.0, 2.0, 12)
    loss = NegativeBinomial(alpha)
    np.testing.assert_allclose(loss.constant(y) - loss.value(eta, y), log_density(y, np.exp(eta), alpha), atol=1e-9)


def test_large_counts_have_the_same_constants(monkeypatch):
    y = np.array([0.0, 1.0, 7.0, 500.0])
    loss, tabled = NegativeBinomial(0.3), NegativeBinomial(0.3)
    expected = (*tabled.terms(np.zeros(4), y), tabled.constant(y))
    monkeypatch.setattr("halfwidth.families.negative_binomial._TABLE", 1)
    for one, other in zip((*loss.terms(np.zeros(4), y), loss.constant(y)), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("alpha", [1e-8, 1e-4, 0.3, 5.0])
def test_the_least_alpha_is_poisson_and_derivatives_are_differences(alpha):
    y, eta = np.arange(12.0), np.linspace(-1.0, 2.0, 12)
    poisson, loss = make_loss("poisson"), NegativeBinomial(alpha)
    if alpha == LEAST_ALPHA:
        np.testing.assert_allclose(loss.value(eta, y), poisson.value(eta, y), atol=1e-6)
        np.testing.assert_allclose(loss.constant(y), poisson.constant(y), atol=1e-6)
    h = 1e-3 * alpha
    up, down = NegativeBinomial(), NegativeBinomial()
    up.scale, down.scale = alpha + h, alpha - h
    terms = loss.terms(eta, y)
    np.testing.assert_allclose(
        terms.bend, (up.terms(eta, y).value - down.terms(eta, y).value) / (2 * h), rtol=1e-4, atol=1e-4
    )
    np.testing.assert_allclose(terms.cross, -(up.slope(eta, y) - down.slope(eta, y)) / (2 * h), rtol=1e-4, atol=1e-4)
    in_alpha = loss.likelihood_slopes(eta, y)
    np.testing.assert_allclose(terms.value, in_alpha[2] - in_alpha[0], rtol=1e-9, atol=1e-9)
    for slope, of in zip(in_alpha, ("value", "saturated", "constant"), strict=True):
        at = (eta, y) if of == "value" else (y,)
        difference = (getattr(up, of)(*at) - getattr(down, of)(*at)) / (2 * h)
        np.testing.assert_allclose(slope, difference, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("far", [1.0, 40.0, 66.0, 300.0])
def test_alpha_is_where_the_profile_is_highest(far):
    """Also where one mean is beyond 1 / eps, as far out in a column of wide tails."""
    X, y = data("negative-binomial")
    eta = 0.3 + X.to_numpy() @ [0.8, -0.4]
    eta[7] = far

    def minus(log_alpha):
        return -log_density(y, np.exp(eta), np.exp(log_alpha)).sum()

    slow = np.exp(minimize_scalar(minus, bounds=(-3.0, 2.0), method="bounded", options={"xatol": 1e-10}).x)
    assert make_loss("negative-binomial").settled(eta, y, None) == pytest.approx(slow, rel=1e-6)


def test_far_rows_leave_the_maximum_where_it_is_at_any_number_of_passes():
    """Linear in x at the start, and no more: at the maximum some means are beyond 1e20."""
    rng, n = np.random.default_rng(1), 60_000
    x, z = np.exp(1.3 * rng.standard_normal(n)), rng.standard_normal(n)
    mean = np.exp(np.clip(-0.5 + 0.3 * np.clip(x, -12.0, 12.0) - 0.3 * z, -6.0, 6.0))
    table = {"x": x, "z": z, "y": np.random.default_rng(7).negative_binomial(2, 2.0 / (2.0 + mean)).astype(float)}
    Z = sm.add_constant(np.column_stack([x, z]))
    for passes in (1, 2):
        result = hw.fit(table, target="y", family="negative-binomial", passes=passes).inference()
        alpha, eta = stated(result), Z @ result.params
        assert eta.max() > 40.0
        loss = NegativeBinomial(alpha)
        score, step = loss.slope(eta, table["y"]) @ Z, result.bse
        assert np.abs(score * step).max() < 1e-6  # in standard errors
        assert loss.terms(eta, table["y"]).value.sum() == pytest.approx(0.0, abs=1e-6 * n)
        assert result.llf == pytest.approx(-93_635.0, abs=1.0)  # statsmodels', from where it ends
        np.testing.assert_allclose([*result.params, alpha], [-0.3026, 0.2149, -0.2946, 0.9184], atol=1e-4)


# The recursion against plain sums.


@pytest.mark.parametrize("family", ["gamma", "negative-binomial"])
def test_the_equation_of_the_dispersion_is_the_plain_sum(family):
    """Chunks expanded at points and dispersions of their own: the linearised equation, row by row."""
    X, y = data(family, n=300)
    Z, reference = sm.add_constant(X).to_numpy(), np.array([0.2, 0.7, -0.3])
    rng = np.random.default_rng(2)
    sums, chunks = DispersionSums(3), []
    weight = rng.uniform(0.5, 2.0, 300)
    for part in (slice(0, 100), slice(100, 300)):
        loss = make_loss(family)
        loss.scale, point = float(rng.uniform(0.4, 0.8)), reference + 0.1 * rng.standard_normal(3)
        sums.add(loss, Rows(Z[part], y[part], weight[part], None), Z[part] @ point, point - reference)
        chunks.append((part, loss, point))
    c = reference + 0.05
    root = sums.root(make_loss(family), c - reference)
    left = 0.0
    for part, loss, point in chunks:
        for i in range(*part.indices(300)):
            m, bend, cross = (float(term[0]) for term in loss.terms(np.array([Z[i] @ point]), y[i : i + 1]))
            left += weight[i] * (m + bend * (root - loss.scale) + cross * (Z[i] @ (c - point)))
    assert abs(left) < 1e-8 * abs(sums.bend)


# Against statsmodels.


@pytest.mark.parametrize("family", ["gamma", "negative-binomial"])
@pytest.mark.parametrize("passes", [1, 2])
def test_a_stream_that_is_held_is_statsmodels(family, passes):
    X, y = data(family)
    result = hw.fit(X.assign(y=y), formula="y ~ x + z", family=family, passes=passes).inference()
    compare(family, result, X, y)


@pytest.mark.parametrize("family", ["gamma", "negative-binomial"])
def test_a_long_stream_is_close_in_one_pass_and_statsmodels_in_two(family):
    X, y = data(family, n=70_000)
    once, twice = one_pass_and_two(X, y, family)
    assert not once.likelihood_is_exact
    assert np.abs((once.params - twice.params) / twice.bse).max() < 0.03
    assert stated(once) == pytest.approx(stated(twice), rel=2e-3)
    compare(family, twice, X, y)


def compare(family, ours, X, y):
    fit, dispersion = theirs(family, X, y)
    assert ours.likelihood_is_exact
    np.testing.assert_allclose(ours.params, fit.params[:3], atol=1e-6)
    assert stated(ours) == pytest.approx(dispersion, rel=1e-6)
    assert ours.llf == pytest.approx(fit.llf, rel=1e-6)
    assert ours.aic == pytest.approx(fit.aic, rel=1e-6)
    glm = fit
    if family == "negative-binomial":
        assert ours.bic == pytest.approx(fit.bic, rel=1e-6)
        kind = sm.families.NegativeBinomial(alpha=stated(ours))
        glm = sm.GLM(y, sm.add_constant(X), family=kind).fit(tol=1e-14, maxiter=200)
    else:
        assert ours.bic == pytest.approx(fit.bic_llf, rel=1e-6)
    assert (ours.deviance, ours.null_deviance) == pytest.approx((glm.deviance, glm.null_deviance), rel=1e-6)
    assert ours.llnull == pytest.approx(glm.llnull, rel=1e-6)
    assert ours.prsquared == pytest.approx(glm.pseudo_rsquared("mcf"), rel=1e-5)
    at = X.iloc[:5]
    means = ours.get_prediction(at)
    np.testing.assert_allclose(means.predicted_mean, glm.predict(sm.add_constant(X).iloc[:5]), rtol=1e-6)
    naive = np.asarray(ours.bse) / ours.basis.ratio_to_iid
    np.testing.assert_allclose(naive, glm.bse, rtol=0.15)


@pytest.mark.parametrize("alpha", [0.2, 3.0])
def test_a_given_alpha_is_kept(alpha, tmp_path):
    X, y = data("negative-binomial")
    model = hw.NegativeBinomialRegressor(alpha=alpha).fit(X, y)
    result = model.inference()
    glm = sm.GLM(y, sm.add_constant(X), family=sm.families.NegativeBinomial(alpha=alpha)).fit(tol=1e-14, maxiter=200)
    np.testing.assert_allclose(result.params, glm.params, atol=1e-8)
    assert result.llf == pytest.approx(glm.llf, rel=1e-8)
    assert result.aic == pytest.approx(glm.aic, rel=1e-8)
    assert f"alpha {alpha:g} (given)" in str(result)
    model.save(tmp_path / "model.hw")
    assert hw.load(tmp_path / "model.hw").alpha_ == alpha


def test_dispersions_are_stated_and_saved(tmp_path):
    X, y = data("negative-binomial")
    model = hw.fit(X.assign(y=y), formula="y ~ x + z", family="negative-binomial")
    model.save(tmp_path / "model.hw")
    again = hw.load(tmp_path / "model.hw")
    assert again.alpha_ == model.alpha_
    found = again.inference().to_dict()["diagnostics"]
    assert (found["alpha"], found["alpha_is"]) == (model.alpha_, "estimated")
    assert f"alpha {model.alpha_:.4g} (estimated)" in str(again.inference())
    X, y = data("gamma")
    gamma = hw.GammaRegressor().fit(X, y)
    assert f"dispersion {gamma.dispersion_:.4g} (Pearson)" in str(gamma.inference())
    assert gamma.inference().to_dict()["diagnostics"]["dispersion"] == gamma.dispersion_


@pytest.mark.parametrize(("family", "model"), [("gamma", hw.GammaRegressor), ("negative-binomial", None)])
def test_scores_are_shares_of_the_deviance(family, model):
    from sklearn.linear_model import GammaRegressor

    X, y = data(family)
    if model is not None:
        ours, other = model().fit(X, y), GammaRegressor(alpha=0.0, tol=1e-10).fit(X, y)
        assert ours.score(X, y) == pytest.approx(other.score(X, y), rel=1e-6)
        return
    ours = hw.NegativeBinomialRegressor().fit(X, y)
    result = ours.inference()
    assert ours.score(X, y) == pytest.approx(1.0 - result.deviance / result.null_deviance, rel=1e-8)


def test_ratios_of_means_exist_under_a_log_link():
    X, y = data("gamma")
    result = hw.GammaRegressor().fit(X, y).inference()
    np.testing.assert_allclose(result.odds_ratios()["ratio"], np.exp(result.params), rtol=1e-12)


# The edges.


def test_counts_that_are_not_overdispersed_are_named():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3_000, 1))
    y = rng.binomial(10, 1.0 / (1.0 + np.exp(1.0 - X[:, 0])))
    with pytest.warns(FitWarning, match="poisson-boundary: the counts are not overdispersed"):
        model = hw.NegativeBinomialRegressor().fit(X, y)
    poisson = hw.PoissonRegressor().fit(X, y)
    assert (model.status_, model.alpha_) == ("poisson-boundary", LEAST_ALPHA)
    np.testing.assert_allclose(model.inference().params, poisson.inference().params, atol=1e-6)
    np.testing.assert_allclose(model.inference().bse, poisson.inference().bse, rtol=1e-5)
    long = np.tile(X, (40, 1)), np.tile(y, 40)
    assert hw.NegativeBinomialRegressor().partial_fit(*long).status_ == "poisson-boundary"


def test_counts_of_zero_alone_and_columns_that_separate_them():
    X = np.random.default_rng(0).standard_normal((300, 1))
    model = hw.NegativeBinomialRegressor().partial_fit(X, np.zeros(300))
    assert model.status_ == "constant-target"
    X, y = data("negative-binomial", n=400)
    X["kind"] = (np.arange(400) % 8 == 0).astype(float)
    y[X["kind"] == 1.0] = 0.0
    result = hw.NegativeBinomialRegressor().partial_fit(X, y).inference()
    assert dict(zip(result.names, result.coefficient_status, strict=True))["kind"] == "separated"
    assert np.isnan(result.bse["kind"])


@pytest.mark.parametrize(
    ("family", "value", "reason"),
    [
        ("gamma", 0.0, "value not above 0"),
        ("gamma", -1.0, "value not above 0"),
        ("negative-binomial", 1.5, "not a whole number"),
        ("negative-binomial", -1.0, "negative value"),
    ],
)
def test_targets_outside_the_family_are_refused_by_row(family, value, reason, tmp_path):
    X, y = data(family, n=60)
    y[7] = value
    model = hw.GammaRegressor() if family == "gamma" else hw.NegativeBinomialRegressor()
    with pytest.raises(InputError, match=rf"y must .*; got {value} in row 7, counted from 0"):
        model.fit(X, y)
    path = tmp_path / "rows.csv"
    X.assign(y=y).to_csv(path, index=False)
    with pytest.raises(BadRow, match=rf"row 8, column 'y': .*{value}.*"):
        hw.fit(path, target="y", family=family)
    fitted = hw.fit(path, target="y", family=family, bad_rows="skip")
    assert fitted.report()["diagnostics"]["skipped_rows"] == {reason: 1}


def test_an_exact_fit_is_named():
    X, _ = data("gamma")
    with pytest.warns(FitWarning, match="exact-fit"):
        hw.GammaRegressor().fit(X, np.exp(0.3 + 0.8 * X["x"]))


@pytest.mark.parametrize("alpha", [0.0, -1.0, np.nan, 1e9, True])
def test_alpha_is_checked(alpha):
    X, y = data("negative-binomial", n=60)
    with pytest.raises(InputError, match="alpha must lie between 1e-08 and 1e"):
        hw.NegativeBinomialRegressor(alpha=alpha).fit(X, y)


def test_options_belong_to_their_families():
    frame = pd.DataFrame({"x": np.arange(50.0), "y": np.ones(50)})
    with pytest.raises(InputError, match="alpha must be given with family='negative-binomial' only"):
        hw.fit(frame, target="y", family="poisson", alpha=0.5)
    with pytest.raises(InputError, match="quantile must be given with family='quantile' only"):
        hw.fit(frame, target="y", family="gamma", quantile=0.5)


@pytest.mark.parametrize("family", ["gamma", "negative-binomial"])
def test_a_unit_of_y_or_exposure_moves_the_intercept_alone(family):
    X, y = data(family)
    plain = RenewableNewton(2, family).consume(X, y).fit()
    offset = np.full(len(y), 0.7)
    shifted = RenewableNewton(2, family).consume(X, y, offset=offset).fit()
    np.testing.assert_allclose(shifted.params - plain.params, [-0.7, 0.0, 0.0], atol=1e-8)
    if family == "gamma":
        scaled = RenewableNewton(2, family).consume(X, 1e6 * y).fit()
        np.testing.assert_allclose(scaled.params - plain.params, [np.log(1e6), 0.0, 0.0], atol=1e-8)
        np.testing.assert_allclose(np.diag(scaled.covariance()), np.diag(plain.covariance()), rtol=1e-8)


def test_sgd_takes_the_alpha_of_the_first_rows_and_says_so():
    X, y = data("negative-binomial", n=20_000)
    model = hw.NegativeBinomialRegressor(engine="sgd").fit(X, y)
    assert "(estimated on the first 1,024 rows)" in str(model.inference())
    assert model.alpha_ == pytest.approx(ALPHA, abs=0.2)
