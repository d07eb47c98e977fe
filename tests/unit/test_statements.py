"""What results can say: hypotheses as text, joint tests, simultaneous intervals, comparisons, sequences, tables."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import halfwidth as hw
from halfwidth.errors import InputError
from halfwidth.inference import Diagnostics, Result
from halfwidth.inference.normal_mixture import MixtureLaw
from halfwidth.inference.student_law import StudentLaw


def rows(n=4_000, seed=3, slope=1.0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.standard_normal((n, 3)), columns=["x", "z", "w"])
    return X, 0.5 + slope * X["x"] - 0.5 * X["z"] + rng.standard_normal(n)


@pytest.fixture(scope="module")
def ours():
    X, y = rows()
    return hw.LinearRegression().fit(X, y).inference()


def by_hand(params, sd, df, names=None, n=100):
    covariance = n * np.diag(np.square(sd).astype(float))
    return Result(np.array(params, dtype=float), covariance, n, StudentLaw(df), "by-hand", Diagnostics(df), names)


def test_texts_and_matrices_say_the_same(ours):
    by_text, by_row = ours.t_test("x + 2 * z = 0.25"), ours.t_test([[0.0, 1.0, 2.0, 0.0]], 0.25)
    np.testing.assert_allclose(by_text.tvalue, by_row.tvalue)
    np.testing.assert_allclose(by_text.pvalue, by_row.pvalue)
    assert by_text.labels == ("x + 2 * z = 0.25",)


def test_a_single_restriction_is_the_square_of_its_t_statistic(ours):
    assert ours.wald_test("x = 1").statistic == pytest.approx(float(ours.t_test("x = 1").tvalue[0]) ** 2)


def test_hypotheses_have_statsmodels_names(ours):
    X, y = rows()
    theirs = sm.OLS(y, sm.add_constant(X)).fit()
    f, g = ours.f_test("x = z = 0"), theirs.f_test("x = z = 0")
    assert (f.df_num, f.fvalue > 100, f.pvalue < 1e-6) == (2, True, True)
    assert f.fvalue / float(g.fvalue) == pytest.approx(1.0, abs=0.15)  # ours allows for dependence between rows
    assert set(dir(ours.t_test("x"))) >= {"effect", "sd", "tvalue", "pvalue", "df_denom", "conf_int", "summary"}


def test_simultaneous_intervals_are_wider_by_one_factor(ours):
    one, all_of_them = ours.conf_int().to_numpy(), ours.conf_int(simultaneous=True).to_numpy()
    factor = np.diff(all_of_them, axis=1) / np.diff(one, axis=1)
    assert (factor > 1.1).all()
    assert (factor < 1.6).all()


def test_simultaneous_intervals_cover_jointly():
    """Null: all of five independent t statistics inside in 95% of 2,000 draws, within 3.5 standard errors."""
    rng = np.random.default_rng(5)
    inside = alone = 0
    for _ in range(2_000):
        sd = np.sqrt(rng.chisquare(12) / 12) * np.ones(5)
        bounds = by_hand(rng.standard_normal(5), sd, 12.0)
        wide, narrow = bounds.conf_int(simultaneous=True), bounds.conf_int()
        inside += bool(((wide[:, 0] < 0) & (wide[:, 1] > 0)).all())
        alone += bool(((narrow[:, 0] < 0) & (narrow[:, 1] > 0)).all())
    assert abs(inside / 2_000 - 0.95) < 3.5 * np.sqrt(0.95 * 0.05 / 2_000)
    assert alone / 2_000 < 0.87  # the negative control: one at a time they do not


def test_two_independent_fits_are_compared():
    X, y = rows(seed=1)
    X2, y2 = rows(seed=2, slope=1.3)
    a, b = (hw.LinearRegression().fit(*data).inference() for data in ((X, y), (X2, y2)))
    found = a.compare(b)
    assert found.labels[1] == "x: difference"
    assert found.effect[1] == pytest.approx(-0.3, abs=0.1)
    assert found.pvalue[1] < 1e-6 < 0.01 < found.pvalue[3]


def test_a_comparison_has_welchs_degrees_of_freedom():
    found = by_hand([1.0], [0.2], 9.0).compare(by_hand([0.0], [0.4], 19.0))
    assert found.sd[0] == pytest.approx(np.sqrt(0.2**2 + 0.4**2))
    assert found.df_denom[0] == pytest.approx(0.2**2 / (0.2**4 / 9 + 0.4**4 / 19) * 0.2**2 * 25, rel=1e-9)


def with_covariance(params, covariance, df):
    return Result(np.array(params), np.array(covariance), 1, StudentLaw(df), "by-hand", Diagnostics(df))


def test_the_joint_comparison_of_one_coefficient_is_welchs():
    found = by_hand([1.0], [0.2], 9.0).compare(by_hand([0.0], [0.4], 19.0))
    assert found.joint.statistic == pytest.approx(found.tvalue[0] ** 2)
    assert found.joint.degrees_of_freedom == pytest.approx(found.df_denom[0])
    assert found.joint.p_value == pytest.approx(found.pvalue[0])


def test_the_joint_comparison_rejects_as_often_as_it_says():
    """Null: no difference in 3 coefficients, Wishart covariances; 5% of 2,000 draws, within 3.5 standard errors."""
    rng = np.random.default_rng(7)
    Va, Vb = np.diag([1.0, 2.0, 4.0]), np.array([[1.0, 0.8, 0.0], [0.8, 1.0, 0.0], [0.0, 0.0, 9.0]])
    rejected = naive = 0
    for _ in range(2_000):
        pieces = []
        for V, df in ((Va, 12), (Vb, 25)):
            noise = rng.multivariate_normal(np.zeros(3), V, size=df)
            estimate = rng.multivariate_normal(np.zeros(3), V)
            pieces.append(with_covariance(estimate, noise.T @ noise / df, float(df)))
        found = pieces[0].compare(pieces[1]).joint
        rejected += found.p_value < 0.05
        naive += found.statistic > 7.815  # the negative control: chi-square's critical value
    assert abs(rejected / 2_000 - 0.05) < 3.5 * np.sqrt(0.05 * 0.95 / 2_000)
    assert naive / 2_000 > 0.08


def test_a_comparison_prints_and_shows_its_joint_test():
    X, y = rows(seed=1)
    X2, y2 = rows(seed=2, slope=1.3)
    a, b = (hw.LinearRegression().fit(*data).inference() for data in ((X, y), (X2, y2)))
    found = a.compare(b)
    assert f"all at once: Wald statistic {found.joint.statistic:.4g}, F(4, " in str(found)
    assert "all at once" in found._repr_html_()
    assert "Wald statistic" in found.joint._repr_html_()
    gap = np.asarray(a.params - b.params)
    total = np.asarray(a.cov_params() + b.cov_params())
    assert found.joint.statistic == pytest.approx(gap @ np.linalg.solve(total, gap))


def test_coefficients_without_an_error_are_left_out_of_the_joint_comparison():
    X, y = rows(seed=1)
    X = X.assign(same=1.0)
    with pytest.warns(hw.models.FitWarning, match="unidentified"):
        a = hw.LinearRegression(fit_intercept=False).fit(X.assign(copy=X["same"]), y).inference()
    found = a.compare(a)
    assert found.tested == 3
    assert "the 3 with a standard error in both at once" in str(found)


def test_comparisons_need_the_same_references_and_classes():
    X, y = rows()
    frame = X.assign(y=y, kind=np.resize(["a", "b", "c"], len(X)), late=np.where(y > 0, "yes", "no"))
    a = hw.fit(frame, formula="y ~ kind").inference()
    b = hw.fit(frame.assign(kind=frame["kind"].replace("a", "d")), formula="y ~ kind").inference()
    assert a.names == b.names
    with pytest.raises(InputError, match=r"other must have the reference levels {'kind': 'a'}.*got {'kind': 'd'}"):
        a.compare(b)
    one, two = (
        hw.fit(frame.assign(late=frame["late"].replace("no", no)), formula="late ~ x", family="logistic").inference()
        for no in ("no", "never")
    )
    with pytest.raises(InputError, match=r"other must have the classes \['no', 'yes'\]"):
        one.compare(two)


def test_terms_stand_for_all_their_coefficients():
    X, y = rows()
    frame = X.assign(y=y, kind=np.resize(["a", "b", "c"], len(X)))
    result = hw.fit(frame, formula="y ~ x*kind + poly(z, 2)").inference()
    assert result.wald_test("kind") == result.wald_test("kind[T.b], kind[T.c]")
    assert result.f_test("x:kind = 0") == result.wald_test(["x:kind[T.b]", "x:kind[T.c]"])
    assert result.wald_test("kind, x:kind, x").df_num == 5
    assert result.t_test("kind").labels == ("kind[T.b]", "kind[T.c]")
    tests = result.wald_test_terms()
    assert list(tests.table.index) == ["x", "kind", "poly(z, 2)", "x:kind"]
    assert tests.table["df_constraint"].tolist() == [1, 2, 2, 2]
    assert tests["poly(z, 2)"].p_value < 1e-6 < tests["kind"].p_value
    assert list(result.wald_test_terms(skip_single=True).tests) == ["kind", "poly(z, 2)", "x:kind"]
    assert "kind: Wald statistic" in str(tests)
    assert "kind: Wald statistic" in tests._repr_html_()
    for wrong in ("kind = 1", "kind + x", "2 * kind"):
        with pytest.raises(InputError, match="'kind' is a term of several coefficients"):
            result.wald_test(wrong)


def test_a_term_with_a_coefficient_that_is_refused_has_no_test():
    X, y = rows()
    frame = X.assign(y=y, kind=np.resize(["a", "b"], len(X)), copy=X["z"])
    result = hw.fit(frame, formula="y ~ kind + z + copy").inference()
    tests = result.wald_test_terms()
    assert np.isnan(tests.table.loc["copy", "pvalue"])
    with pytest.raises(InputError, match="copy"):
        tests["copy"]
    assert tests["kind"].df_num == 1


def test_coefficients_are_compared_by_name(ours):
    """Levels that came in another order are the same coefficients."""
    X, y = rows()
    turned = X[list(X.columns)[::-1]]
    found = ours.compare(hw.LinearRegression().fit(turned, y).inference())
    np.testing.assert_allclose(found.effect, 0.0, atol=1e-9)
    assert found.pvalue.min() > 0.999


def test_a_joint_test_prints_its_f_statistic(ours):
    found = ours.f_test("x = z = 0")
    assert f"F(2, {found.df_denom:.4g}) = {found.fvalue:.4g}" in str(found)


def test_only_the_same_coefficients_and_families_are_compared(ours):
    X, y = rows()
    with pytest.raises(InputError, match="other must have the same coefficients"):
        ours.compare(hw.LinearRegression().fit(X[["x", "z"]], y).inference())
    with pytest.raises(InputError, match="other must be a linear regression"):
        ours.compare(hw.LogisticRegression().fit(X, y > 0).inference())


def test_a_confidence_sequence_is_the_mixture_boundary(ours):
    half = np.diff(ours.conf_seq().to_numpy(), axis=1)[:, 0] / 2
    np.testing.assert_allclose(half / ours.bse, MixtureLaw(ours.n, 10_000).quantile(0.95))
    assert (half > np.diff(ours.conf_int().to_numpy(), axis=1)[:, 0] / 2).all()


def test_odds_ratios_are_exponentials():
    X, y = rows()
    result = hw.LogisticRegression().fit(X, y > 0).inference()
    table = result.odds_ratios(alpha=0.1)
    np.testing.assert_allclose(table["ratio"], np.exp(result.params))
    np.testing.assert_allclose(np.log(table[["ci_lower", "ci_upper"]]), result.conf_int(alpha=0.1))


def test_odds_ratios_are_refused_where_there_are_none(ours):
    with pytest.raises(InputError, match=r"odds ratios exist for gamma, logistic, .*, poisson"):
        ours.odds_ratios()


def test_a_summary_prints_and_shows_in_a_notebook(ours):
    summary = ours.summary(alpha=0.1)
    assert str(summary) == summary.as_text()
    assert "[0.05" in summary
    assert "<table>" in summary._repr_html_()
    assert summary.as_html() == summary._repr_html_()
    with pytest.raises(InputError, match="alpha must be left out where a level is given"):
        ours.summary(0.9, alpha=0.1)


def test_results_of_learners_and_watchers_have_frames_tests_and_html():
    world = hw.problem("iid-linear", dim=2)
    result = hw.Auto(world, seed=0).run(20_000).result()
    frame = result.to_frame()
    assert list(frame.columns) == ["coef", "std_err", "t", "p", "ci_lower", "ci_upper", "df", "status", "flags"]
    assert list(frame.index) == ["theta[0]", "theta[1]"]
    np.testing.assert_allclose(frame["coef"], result.params)
    assert result.t_test("theta[1] = 1").pvalue[0] > 1e-3
    assert result.t_test("theta[1] - theta[0] = 0").pvalue[0] < 1e-6
    assert "<table>" in result._repr_html_()
    watcher = hw.FixedBatchMeans(2).update_many(np.random.default_rng(0).standard_normal((500, 2)))
    assert len(watcher.result().to_frame()) == 2
