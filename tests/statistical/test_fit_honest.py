"""Coverage of `fit` where it is hard: small samples, groups in any order, rare columns, and random small tables.

Bands are binomial, at three and a half standard errors; errors for independent rows are the control and must fail.
"""

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.signal import lfilter

from halfwidth.models import LinearRegression, LogisticRegression

RNG = np.random.default_rng


def autoregression(rng, n, d, phi):
    return lfilter([np.sqrt(1 - phi**2)], [1.0, -phi], rng.standard_normal((n + 200, d)), axis=0)[200:]


def small(n, phi, replicates):
    """Shares of intervals that cover among those with status ok, of intervals that are ok, and of the control."""
    good, covered, control = 0, 0, 0
    for seed in range(replicates):
        rng = RNG([n, seed])
        X, y = autoregression(rng, n, 3, phi), autoregression(rng, n, 1, phi)[:, 0]
        result = LinearRegression().partial_fit(X, y).inference()
        ok = np.array(result.coefficient_status) == "ok" if result.status == "ok" else np.zeros(4, dtype=bool)
        good += ok.sum()
        covered += (ok & np.asarray(result.interval().covers(0.0))).sum()
        control += (np.abs(result.params) <= 1.96 * result.bse / result.basis.ratio_to_iid).sum()
    return covered / max(good, 1), good / (4 * replicates), control / (4 * replicates)


@pytest.mark.parametrize("n", [50, 200])
def test_small_independent_samples_cover(n):
    covered, ok, _ = small(n, 0.0, 150)
    assert ok > 0.85
    assert covered > 0.95 - 3.5 * np.sqrt(0.95 * 0.05 / (600 * ok))


def test_small_dependent_samples_are_doubted_and_larger_ones_cover():
    assert small(100, 0.7, 40)[1] < 0.1
    covered, ok, control = small(500, 0.7, 100)
    assert ok > 0.9
    assert covered > 0.94 - 3.5 * np.sqrt(0.95 * 0.05 / 400)
    assert control < 0.85


def grouped(rng, groups, rows, shuffled):
    labels = np.tile(np.arange(groups), rows)
    if shuffled:
        rng.shuffle(labels)
    x = rng.standard_normal(groups)[labels] + 0.5 * rng.standard_normal(len(labels))
    y = 0.3 * x + 0.7 * rng.standard_normal(groups)[labels] + rng.standard_normal(len(labels))
    return x[:, None], y, labels


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize(("groups", "datasets"), [(200, 12), pytest.param(5_000, 50, marks=pytest.mark.slow)])
def test_groups_have_statsmodels_cluster_errors_on_average(groups, datasets, shuffled):
    ratios, covered = [], 0
    for seed in range(datasets):
        x, y, labels = grouped(RNG([groups, seed]), groups, 10, shuffled)
        result = LinearRegression().partial_fit(x, y, groups=labels).inference()
        offline = sm.OLS(y, sm.add_constant(x)).fit(cov_type="cluster", cov_kwds={"groups": labels})
        ratios.append(np.asarray(result.bse) / offline.bse)
        covered += np.asarray(result.interval().covers([0.0, 0.3])).sum()
    np.testing.assert_allclose(np.mean(ratios, axis=0), 1.0, atol=0.03)
    assert covered / (2 * datasets) > 0.95 - 3.5 * np.sqrt(0.95 * 0.05 / (2 * datasets))


def test_a_column_of_thirty_rows_is_doubted_and_covered():
    """Six spells of five rows under AR(0.9) noise: rare, with a wide interval; the others stay ok."""
    covered, ok, others = 0, 0, 0
    for seed in range(60):
        rng = RNG([30, seed])
        X = autoregression(rng, 8_000, 3, 0.9)
        X[:, 2] = 0.0
        for at in rng.integers(0, 7_900, 6):
            X[at : at + 5, 2] = 1.0
        result = LinearRegression().partial_fit(X, autoregression(rng, 8_000, 1, 0.9)[:, 0]).inference()
        inside = np.asarray(result.interval().covers(0.0))
        given = np.isfinite(result.bse[3])
        covered += bool(inside[3]) or not given
        ok += result.coefficient_status[3] == "ok"
        others += inside[:3].sum()
    assert ok == 0
    assert covered / 60 > 0.95 - 3.5 * np.sqrt(0.95 * 0.05 / 60)
    assert abs(others / 180 - 0.95) < 3.5 * np.sqrt(0.95 * 0.05 / 180)


def random_table(rng):
    """A small table with a mixture of troubles, its logistic labels, and whether it has none of them."""
    n, d = int(rng.integers(60, 400)), int(rng.integers(1, 5))
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-3, 4, d)
    X += 10.0 ** rng.integers(0, 3, d) * (rng.random(d) < 0.3)
    trouble = rng.integers(0, 6)
    if trouble == 1:
        X[:, 0] = 7.0
    elif trouble == 2 and d > 1:
        X[:, 1] = 3.0 * X[:, 0] - 1.0
    elif trouble == 3:
        X[:, 0] = 0.0
        X[rng.choice(n, 3, replace=False), 0] = 1.0
    elif trouble == 4:
        X[0, 0] *= 1e6
    eta = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0) @ rng.normal(0, 0.7, d)
    return X, (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(int), trouble in (0, 5)


@pytest.mark.parametrize("tables", [150, pytest.param(2_000, marks=pytest.mark.slow)])
def test_random_small_tables_are_statsmodels_or_doubted(tables):
    """No coefficient with status ok is 5 standard errors from statsmodels' fit, and most clean ones are ok."""
    clean, ok = 0, 0
    for seed in range(tables):
        X, y, tame = random_table(RNG([2_000, seed]))
        if len(set(y.tolist())) < 2:
            continue
        model = LogisticRegression().partial_fit(X, y, classes=[0, 1])
        report = model.report()
        status = np.array([row["status"] for row in report["coefficients"]])
        if tame:
            clean += len(status)
            ok += (status == "ok").sum()
        try:
            with np.errstate(all="ignore"):
                design = sm.add_constant(X, has_constant="add")
                offline = sm.Logit(y, design).fit(disp=0, maxiter=100, warn_convergence=False)
        except Exception:  # statsmodels refuses: perfect separation, singular matrices
            continue
        if not offline.mle_retvals["converged"]:
            continue
        for row, value in zip(report["coefficients"], offline.params, strict=True):
            if row["status"] == "ok":
                assert abs(row["coef"] - value) < 5.0 * row["std_err"]
    assert ok > 0.8 * clean
