"""Multinomial regression: its loss, slow sums, statsmodels' MNLogit, classes, states, and what it refuses."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import halfwidth as hw
from halfwidth.errors import BadRow, InputError, NotIdentified
from halfwidth.families.multinomial import Multinomial
from halfwidth.learners.newton.chunk_sums import Expanded, pieces
from halfwidth.learners.newton.newton_solver import Rows
from halfwidth.models import FitWarning

LABELS = np.array(["bus", "car", "rail"])
TRUTH = np.array([[0.3, 0.8, 0.0], [-0.2, -0.5, 0.4]])


def data(n=3_000, seed=1, noise=None):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.standard_normal((n, 2)), columns=["x", "z"])
    eta = np.column_stack([np.zeros(n), TRUTH[:, 0] + X.to_numpy() @ TRUTH[:, 1:].T])
    return X, LABELS[(eta + (rng.gumbel(size=(n, 3)) if noise is None else noise)).argmax(axis=1)]


def theirs(X, y, **options):
    codes = np.searchsorted(LABELS, y)
    return sm.MNLogit(codes, sm.add_constant(X)).fit(disp=0, method="newton", maxiter=100, tol=1e-14, **options)


def test_slopes_and_weights_are_derivatives():
    rng = np.random.default_rng(0)
    loss, h = Multinomial(4), 1e-5
    eta, y = rng.standard_normal((8, 3)), np.arange(8.0) % 4
    for c in range(3):
        step = np.zeros((8, 3))
        step[:, c] = h
        slope = (loss.value(eta + step, y) - loss.value(eta - step, y)) / (2 * h)
        np.testing.assert_allclose(loss.slope(eta, y)[:, c], slope, atol=1e-9)
        bend = (loss.slope(eta + step, y) - loss.slope(eta - step, y)) / (2 * h)
        np.testing.assert_allclose(loss.bend(loss.weight(eta, y), step / h), bend, atol=1e-8)


def test_sums_of_pieces_are_kronecker_products_row_by_row():
    rng = np.random.default_rng(1)
    Z, y, weight = rng.standard_normal((12, 3)), np.arange(12.0) % 3, rng.uniform(0.5, 2.0, 12)
    loss, theta = Multinomial(3), rng.standard_normal(6)
    rows = Rows(Z, y, weight, None, 2)
    expanded = Expanded.of(rows, loss, theta)
    for edges in (np.array([0, 4, 8, 12]), np.array([0, 5, 6, 12])):
        U, H = pieces(Z, expanded.root, expanded.score, edges, np.zeros(6))
        for j in range(3):
            score, curvature = np.zeros(6), np.zeros((6, 6))
            for i in range(edges[j], edges[j + 1]):
                exponents = np.exp(np.append(0.0, [Z[i] @ theta[:3], Z[i] @ theta[3:]]))
                p = exponents / exponents.sum()
                score += weight[i] * np.kron(np.eye(3)[int(y[i])][1:] - p[1:], Z[i])
                W = np.diag(p[1:]) - np.outer(p[1:], p[1:])
                curvature += weight[i] * np.kron(W, np.outer(Z[i], Z[i]))
            np.testing.assert_allclose(U[j], score, rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(H[j], curvature, rtol=1e-10, atol=1e-12)


def compare(result, X, y):
    fit = theirs(X, y)
    np.testing.assert_allclose(result.params, np.asarray(fit.params).T.ravel(), atol=1e-6)
    assert result.likelihood_is_exact
    for name in ("llf", "llnull", "aic", "bic"):
        assert getattr(result, name) == pytest.approx(getattr(fit, name), rel=1e-6)
    assert result.prsquared == pytest.approx(fit.prsquared, rel=1e-5)
    assert result.deviance == pytest.approx(-2.0 * fit.llf, rel=1e-6)
    assert result.df_model == fit.df_model
    naive = np.asarray(result.bse) / result.basis.ratio_to_iid
    np.testing.assert_allclose(naive, np.asarray(fit.bse).T.ravel(), rtol=0.15)
    return fit


@pytest.mark.parametrize("passes", [1, 2])
def test_a_stream_that_is_held_is_mnlogit(passes):
    X, y = data()
    model = hw.fit(X.assign(y=y), formula="y ~ x + z", family="multinomial", passes=passes)
    fit = compare(model.inference(), X, y)
    assert model.classes_.tolist() == LABELS.tolist()
    assert "log odds of every class against bus\n" in str(model.inference())
    assert model.inference().names[:4] == ("car:Intercept", "car:x", "car:z", "rail:Intercept")
    np.testing.assert_allclose(model.predict_proba(X), fit.predict(), atol=1e-7)
    assert model.score(X, y) == np.mean(model.predict(X) == y)
    assert model.coef_.shape == (2, 2)
    assert model.intercept_.shape == (2,)


def test_a_long_stream_is_close_in_one_pass_and_mnlogit_in_two():
    X, y = data(n=70_000)
    frame = X.assign(y=y)
    once = hw.fit(frame, formula="y ~ x + z", family="multinomial", passes=1).inference()
    twice = hw.fit(frame, formula="y ~ x + z", family="multinomial", passes=2).inference()
    assert not once.likelihood_is_exact
    assert np.abs((once.params - twice.params) / twice.bse).max() < 0.03
    compare(twice, X, y)


def test_two_classes_are_logistic_regression():
    X, y = data()
    some = y != "rail"
    many, two = (kind().fit(X[some], y[some]).inference() for kind in (hw.MultinomialRegression, hw.LogisticRegression))
    np.testing.assert_allclose(many.params, two.params, atol=1e-8)
    np.testing.assert_allclose(many.bse, two.bse, rtol=1e-6)
    assert many.llf == pytest.approx(two.llf, rel=1e-8)


def test_the_baseline_changes_nothing_but_signs():
    """Classes renamed so that another is the baseline: differences of equations."""
    X, y = data()
    plain = hw.MultinomialRegression().fit(X, y).coef_
    renamed = hw.MultinomialRegression().fit(X, np.where(y == "rail", "a", y)).coef_  # a, bus, car
    np.testing.assert_allclose(renamed, [-plain[1], plain[0] - plain[1]], atol=1e-8)


def test_weights_count_rows_and_only_their_ratios_matter():
    X, y = data(n=800)
    counts = np.random.default_rng(6).integers(0, 3, size=800)
    weighted = hw.MultinomialRegression().fit(X, y, sample_weight=counts).inference()
    repeated = hw.MultinomialRegression().fit(X.loc[X.index.repeat(counts)], np.repeat(y, counts)).inference()
    np.testing.assert_allclose(weighted.params, repeated.params, rtol=1e-6)
    scaled = hw.MultinomialRegression().fit(X, y, sample_weight=1e6 * counts).inference()
    np.testing.assert_allclose(scaled.bse, weighted.bse, rtol=1e-8)


def test_groups_have_cluster_robust_errors():
    """Ten rows share one shock to the utilities: errors for independent rows, the control, are too small."""
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(300), 10)
    x = np.repeat(rng.standard_normal(300), 10)
    eta = np.column_stack([np.zeros(3_000), 0.3 + 0.5 * x, -0.5 * x])
    utility = eta + np.repeat(rng.standard_normal((300, 3)), 10, axis=0) + rng.gumbel(size=(3_000, 3))
    y = LABELS[utility.argmax(axis=1)]
    result = hw.MultinomialRegression().fit(pd.DataFrame({"x": x}), y, groups=groups).inference()
    fit = theirs(pd.DataFrame({"x": x}), y)
    score = np.einsum(
        "nc,nd->ncd", np.eye(3)[np.searchsorted(LABELS, y)][:, 1:] - fit.predict()[:, 1:], sm.add_constant(x)
    ).reshape(3_000, -1)
    sums = np.add.reduceat(score, np.arange(0, 3_000, 10))
    bread = np.linalg.inv(-fit.model.hessian(np.asarray(fit.params).ravel(order="F")))
    cluster = np.sqrt(np.diag(bread @ sums.T @ sums @ bread))
    np.testing.assert_allclose(result.bse, cluster, rtol=0.05)
    assert (np.asarray(fit.bse).T.ravel() < 0.9 * cluster).all()


def test_pieces_states_and_files_go_on_with_the_same_bits(tmp_path):
    X, y = data(n=4_000)
    whole = hw.MultinomialRegression().fit(X, y)
    model = hw.MultinomialRegression()
    for at in range(0, 4_000, 700):
        model.partial_fit(X[at : at + 700], y[at : at + 700], classes=LABELS)
        model.save(tmp_path / "model.hw")
        model = hw.load(tmp_path / "model.hw")
    assert np.array_equal(whole.inference().params, model.inference().params)
    assert np.array_equal(whole.inference().bse, model.inference().bse)
    assert model.predict(X[:3]).tolist() == whole.predict(X[:3]).tolist()


@pytest.mark.parametrize("labels", [["a", "b", "c"], [1, 2, 5], [0.5, 1.0, 2.5]])
def test_labels_of_files_are_text_or_numbers(labels, tmp_path):
    X, y = data(n=500)
    path = tmp_path / "rows.csv"
    X.assign(y=np.array(labels)[np.searchsorted(LABELS, y)]).to_csv(path, index=False)
    model = hw.fit(path, target="y", family="multinomial", checkpoint=tmp_path / "run.hw")
    assert model.classes_.tolist() == labels
    again = hw.fit(path, target="y", family="multinomial", checkpoint=tmp_path / "run.hw", resume=True)
    assert np.array_equal(again.inference().params, model.inference().params)


def test_a_class_that_comes_later_is_a_bad_row_and_one_that_is_missing_is_named(tmp_path):
    X, y = data(n=12_000)
    y[:11_000][y[:11_000] == "rail"] = "bus"
    path = tmp_path / "rows.csv"
    X.assign(y=y).to_csv(path, index=False)
    with pytest.raises(BadRow, match="the label 'rail' is not one of 'bus', 'car', the classes of the first rows"):
        hw.fit(path, target="y", family="multinomial")
    model = hw.MultinomialRegression().partial_fit(X[:1_000], y[:1_000], classes=LABELS)
    assert model.status_ == "missing-class"
    with pytest.raises(NotIdentified, match="a class has no row so far"):
        model.inference()
    with pytest.raises(InputError, match=r"y must hold the classes .* only; got 'plane in row 1, counted from 0'"):
        model.partial_fit(X[:2], ["bus", "plane"])


def test_a_column_that_separates_a_class_is_refused():
    X, y = data(n=600)
    X["only"] = ((y == "rail") & (np.arange(600) % 2 == 0)).astype(float)
    with pytest.warns(FitWarning, match="separated"):
        model = hw.MultinomialRegression().fit(X, y)
    status = dict(zip(model.inference().names, model.inference().coefficient_status, strict=True))
    assert status["rail:only"] == "separated"
    assert np.isnan(model.inference().bse["rail:only"])
    assert status["car:x"] == "ok"
    tame = hw.MultinomialRegression(ridge=0.01).fit(X, y).inference()
    assert np.isfinite(tame.bse).all()


def test_hypotheses_and_ratios_by_name():
    X, y = data()
    result = hw.MultinomialRegression().fit(X, y).inference()
    gap = result.t_test("car:x - rail:x")
    assert gap.effect[0] == pytest.approx(result.params["car:x"] - result.params["rail:x"])
    assert result.wald_test("car:x = rail:x = 0").pvalue < 1e-6
    assert result.overall_test.df_num == 4
    assert result.odds_ratios().loc["car:x", "ratio"] == pytest.approx(np.exp(result.params["car:x"]))


def test_intervals_of_probabilities_are_those_of_the_delta_method():
    X, y = data(n=2_000)
    model = hw.MultinomialRegression().fit(X, y)
    result = model.inference()
    at = X.head(4)
    found = result.get_prediction(at)
    p = model.predict_proba(at)
    np.testing.assert_allclose(found.predicted_mean, p, rtol=1e-12)
    np.testing.assert_allclose(result.predict(at), p, rtol=1e-12)
    theta, h = np.asarray(result.params), 1e-6
    for row, c in ((0, 0), (1, 1), (3, 2)):
        slope = np.empty(6)
        for j in range(6):
            both = []
            for sign in (h, -h):
                moved = (theta + sign * np.eye(6)[j]).reshape(2, 3)
                eta = np.append(0.0, moved[:, 0] + moved[:, 1:] @ at.to_numpy()[row])
                both.append(eta[c] - np.log(np.exp(eta).sum() - np.exp(eta[c])))
            slope[j] = (both[0] - both[1]) / (2 * h)
        se = np.sqrt(slope @ np.asarray(result.cov_params()) @ slope)
        assert found.se_mean[row, c] == pytest.approx(p[row, c] * (1.0 - p[row, c]) * se, rel=1e-5)
        low, high = found.conf_int(0.1)[row, c]
        odds = np.log(p[row, c] / (1.0 - p[row, c]))
        critical = result.core.critical_values(slope[None], 0.9)[0]
        np.testing.assert_allclose(
            np.log([low / (1 - low), high / (1 - high)]), [odds - critical * se, odds + critical * se], rtol=1e-4
        )
    assert list(found.summary_frame().columns) == ["row", "class", "mean", "mean_se", "mean_ci_lower", "mean_ci_upper"]
    assert "rail" in repr(found)
    assert "<table" in found._repr_html_()


def test_intervals_of_probabilities_cover():
    at = pd.DataFrame({"x": [0.0, 1.5], "z": [0.0, -1.0]})
    eta = np.column_stack([np.zeros(2), TRUTH[:, 0] + at.to_numpy() @ TRUTH[:, 1:].T])
    truth = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
    covered = np.zeros((2, 3))
    for seed in range(200):
        X, y = data(n=600, seed=1_000 + seed)
        bounds = hw.MultinomialRegression().partial_fit(X, y).inference().get_prediction(at).conf_int(0.1)
        covered += (bounds[..., 0] <= truth) & (truth <= bounds[..., 1])
    assert (np.abs(covered - 180) <= 3.3 * np.sqrt(200 * 0.1 * 0.9)).all()  # the error of six binomials


def test_terms_are_tested_in_all_equations():
    X, y = data()
    result = hw.fit(X.assign(mode=y), formula="mode ~ x + z", family="multinomial").inference()
    assert result.wald_test("z") == result.wald_test("car:z, rail:z")
    assert list(result.wald_test_terms().table.index) == ["x", "z"]


@pytest.mark.parametrize("n", [3_000, 40_000])
def test_classes_that_are_apart_leave_no_coefficient_an_interval(n):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n, 2))
    with pytest.warns(FitWarning, match="separated: .*1:x1.*2:x1"):
        model = hw.MultinomialRegression().fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    with pytest.raises(NotIdentified, match="separated"):
        model.inference()


def test_a_class_that_is_apart_leaves_the_others_their_intervals():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((4_000, 2))
    y = np.where(X[:, 0] > 1.0, 2, rng.random(4_000) < 0.5)
    with pytest.warns(FitWarning, match="separated"):
        result = hw.MultinomialRegression().fit(X, y).inference()
    assert result.coefficient_status == ("ok",) * 3 + ("separated",) * 3
    two = y < 2
    logistic = hw.LogisticRegression().fit(X[two], y[two]).inference()
    np.testing.assert_allclose(result.params[:3], logistic.params, atol=1e-4)  # what is left is their likelihood
    np.testing.assert_allclose(result.bse[:3], logistic.bse, rtol=0.1)


def test_what_it_does_not_do_is_refused_by_name():
    X, y = data(n=300)
    with pytest.raises(InputError, match="engine, method must be 'newton' and 'auto' for family 'multinomial'"):
        hw.MultinomialRegression(engine="sgd").fit(X, y)
    with pytest.raises(InputError, match="offset must not be given to a multinomial regression"):
        hw.MultinomialRegression().fit(X, y, offset=np.ones(300))
    result = hw.MultinomialRegression().fit(X, y).inference()
    with pytest.raises(InputError, match="offset must not be given to a multinomial regression"):
        result.get_prediction(X, offset=np.ones(300))
    with pytest.raises(InputError, match="intervals of new observations exist for linear models only"):
        result.get_prediction(X).conf_int(obs=True)
    with pytest.raises(InputError, match="X must have at most 256 columns with so many classes"):
        hw.MultinomialRegression().fit(np.zeros((10, 300)), np.arange(10) % 3)
    with pytest.raises(InputError, match="y must hold 2 to 100 classes; got 1 class"):
        hw.MultinomialRegression().fit(X, np.zeros(300))


def test_late_levels_are_refused_with_advice():
    X, y = data(n=12_000)
    X["kind"] = np.where(np.arange(12_000) < 11_000, np.resize(["u", "v"], 12_000), "w")
    with pytest.raises(InputError, match="cannot be added to a multinomial regression"):
        hw.fit(X.assign(y=y), formula="y ~ x + kind", family="multinomial")
    skipping = {"unknown_level": "error", "bad_rows": "skip"}
    model = hw.fit(X.assign(y=y), formula="y ~ x + kind", family="multinomial", **skipping)
    assert model.n_seen_ == 11_000


def test_coverage_on_dependent_rows():
    """Utilities with AR(0.7) noise, Gumbel by a normal copula; 60 replicates of 6 coefficients, 3.5 standard errors.

    Errors for independent rows are the control and must fail.
    """
    from scipy.signal import lfilter
    from scipy.special import ndtr

    ours, control, n = 0, 0, 4_000
    for seed in range(60):
        rng = np.random.default_rng([23, seed])
        chains = lfilter([np.sqrt(1 - 0.7**2)], [1.0, -0.7], rng.standard_normal((n + 200, 5)), axis=0)[200:]
        X, noise = chains[:, :2], -np.log(-np.log(np.clip(ndtr(chains[:, 2:]), 1e-12, 1 - 1e-12)))
        eta = np.column_stack([np.zeros(n), TRUTH[:, 0] + X @ TRUTH[:, 1:].T])
        result = hw.MultinomialRegression().partial_fit(X, (eta + noise).argmax(axis=1)).inference()
        ours += np.asarray(result.interval().covers(TRUTH.ravel())).sum()
        control += (np.abs(result.params - TRUTH.ravel()) <= 1.96 * result.bse / result.basis.ratio_to_iid).sum()
    band = 3.5 * np.sqrt(0.95 * 0.05 / 360)
    assert abs(ours / 360 - 0.95) < band
    assert control / 360 < 0.95 - band
