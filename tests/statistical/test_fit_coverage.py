"""Coverage of the models on dependent rows with known truth, and agreement with statsmodels on independent ones.

AR linear: AR(0.7) regressors and errors. AR logistic: y = 1{eta + Q(Phi(e_k)) > 0} with Q the logistic quantile and e
AR(0.7). AR Poisson, and negative binomial: y ~ Poisson(exp(eta) nu_k) with lognormal AR(0.7) nu of mean one. AR gamma:
y = exp(eta) nu_k g_k with g gamma of mean one and variance 1/2. Six coefficients with the
intercept. The null is coverage 0.95; standard errors for independent rows are the negative control and must fail.
"""

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.special import logit, ndtr

from halfwidth.models import MODELS

THETA = np.array([0.2, 0.0, 0.125, 0.25, 0.375, 0.5])


def autoregression(rng, n, d, phi=0.7):
    noise = rng.standard_normal((n + 200, d)) * np.sqrt(1 - phi**2)
    return lfilter([1.0], [1.0, -phi], noise, axis=0)[200:]


def draw(rng, family, n):
    X, e = autoregression(rng, n, 5), autoregression(rng, n, 1)[:, 0]
    eta = THETA[0] + X @ THETA[1:]
    if family == "linear":
        return X, eta + e
    if family == "logistic":
        return X, (eta + logit(np.clip(ndtr(e), 1e-12, 1 - 1e-12)) > 0).astype(int)
    mean = np.exp(eta + 0.5 * e - 0.125)
    return X, rng.gamma(2.0, 0.5 * mean) if family == "gamma" else rng.poisson(mean)


def coverage(family, n, replicates):
    """Shares of intervals that cover, for each coefficient: ours, and those for independent rows."""
    ours, control = np.zeros(6), np.zeros(6)
    for seed in range(replicates):
        model = MODELS[family]().partial_fit(*draw(np.random.default_rng([20_261, seed]), family, n))
        result = model.inference()
        gap = np.abs(result.params - THETA)
        ours += np.asarray(result.interval().covers(THETA))
        control += gap <= 1.96 * result.bse / result.basis.ratio_to_iid
    return ours / replicates, control / replicates


@pytest.mark.parametrize("family", ["linear", "logistic", "poisson", "gamma", "negative-binomial"])
def test_pooled_coverage_in_short(family):
    """100 replicates of 6 coefficients: the band is 3.5 standard errors of a share of 600."""
    ours, control = coverage(family, 5_000, 100)
    assert abs(ours.mean() - 0.95) < 3.5 * np.sqrt(0.95 * 0.05 / 600)
    assert control.mean() < 0.95 - 3.5 * np.sqrt(0.95 * 0.05 / 600)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["linear", "logistic", "poisson", "gamma", "negative-binomial"])
def test_coverage_of_every_coefficient(family):
    ours, control = coverage(family, 50_000, 1_000)
    assert ours.min() >= 0.92
    assert ours.max() <= 0.98
    assert 0.94 <= ours.mean() <= 0.96
    assert control.mean() < 0.94


def independent_rows(family, n=200_000):
    rng = np.random.default_rng(7)
    X = rng.standard_normal((n, 10)) * np.linspace(0.5, 3.0, 10)
    X[:, 3], X[:, 4] = 100.0 * np.exp(0.5 * rng.standard_normal(n)), rng.random(n) < 0.1
    slopes = np.linspace(-0.3, 0.3, 10)
    slopes[3] /= 100.0
    eta = 0.2 + X @ slopes
    if family == "logistic":
        return X, (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(int)
    if family == "poisson":
        return X, rng.poisson(np.exp(eta))
    if family == "negative-binomial":
        return X, rng.poisson(np.exp(eta) * rng.gamma(2.0, 0.5, n))
    if family == "gamma":
        return X, rng.gamma(2.0, 0.5 * np.exp(eta))
    return X, eta + (rng.standard_normal(n) if family == "linear" else rng.standard_t(3, n))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "distance", "ratio"),
    [
        ("linear", 0.1, 0.03),
        ("logistic", 0.1, 0.03),
        ("poisson", 0.1, 0.03),
        ("gamma", 0.1, 0.03),
        ("negative-binomial", 0.1, 0.03),
        ("quantile", 0.2, 0.1),
        ("huber", 0.2, 0.1),
    ],
)
def test_independent_rows_against_statsmodels(family, distance, ratio):
    import statsmodels.api as sm

    X, y = independent_rows(family)
    design = sm.add_constant(X)
    theirs = {
        "linear": lambda: sm.OLS(y, design).fit(),
        "logistic": lambda: sm.Logit(y, design).fit(disp=0),
        "poisson": lambda: sm.GLM(y, design, family=sm.families.Poisson()).fit(),
        "gamma": lambda: sm.GLM(y, design, family=sm.families.Gamma(sm.families.links.Log())).fit(),
        "negative-binomial": lambda: sm.GLM(y, design, family=sm.families.NegativeBinomial(alpha=0.5)).fit(),
        "quantile": lambda: sm.QuantReg(y, design).fit(q=0.5),
        "huber": lambda: sm.RLM(y, design).fit(),
    }[family]()
    ours = MODELS[family]().fit(X, y).inference()
    assert np.max(np.abs(ours.params - theirs.params) / theirs.bse) < distance
    assert abs(np.median(ours.bse / theirs.bse) - 1.0) < ratio
