"""The result of a regression: statsmodels' vocabulary, and the same numbers where statsmodels has them."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import halfwidth
from family_targets import drawn
from halfwidth.errors import BrokenCheckpoint, InputError, UnknownName
from halfwidth.models import (
    MODELS,
    HuberRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((4000, 2)), columns=["a", "b"])
    frame["y"] = 1.0 + 2.0 * frame["a"] + rng.standard_normal(4000)
    return frame


@pytest.fixture(scope="module")
def result(frame):
    return LinearRegression().fit(frame[["a", "b"]], frame["y"]).inference()


def test_names_and_pandas(result):
    assert result.params.index.tolist() == ["Intercept", "a", "b"]
    assert result.conf_int().shape == (3, 2)
    assert result.cov_params().loc["a", "a"] == pytest.approx(result.bse["a"] ** 2)
    table = result.to_frame()
    assert table.columns.tolist() == ["coef", "std_err", "t", "p", "ci_lower", "ci_upper", "df", "status", "flags"]
    assert table.loc["a", "ci_lower"] < 2.0 < table.loc["a", "ci_upper"]


def test_arrays_without_names(frame):
    result = LinearRegression().fit(frame[["a", "b"]].to_numpy(), frame["y"]).inference()
    assert isinstance(result.params, np.ndarray)
    assert isinstance(result.conf_int(), np.ndarray)
    assert "x0" in result.summary()


def test_agrees_with_statsmodels_on_independent_rows(frame, result):
    theirs = sm.OLS(frame["y"], sm.add_constant(frame[["a", "b"]])).fit()
    np.testing.assert_allclose(result.params, theirs.params, rtol=1e-10)
    np.testing.assert_allclose(result.bse, theirs.bse, rtol=0.15)
    ours = result.get_prediction(frame[["a", "b"]][:3]).summary_frame()
    reference = theirs.get_prediction(sm.add_constant(frame[["a", "b"]])[:3]).summary_frame()
    assert ours.columns.tolist() == reference.columns.tolist()
    np.testing.assert_allclose(ours["mean"], reference["mean"])
    np.testing.assert_allclose(ours["obs_ci_upper"], reference["obs_ci_upper"], rtol=0.01)


def test_tests_of_contrasts(result):
    one = result.t_test([0.0, 1.0, 1.0], 2.0)
    assert one.effect[0] == pytest.approx(result.params["a"] + result.params["b"])
    assert one.pvalue[0] > 0.001
    named = result.t_test(["a", "b"])
    np.testing.assert_allclose(named.tvalue, result.tvalues[["a", "b"]])
    assert "a" in str(named)
    single, joint = result.wald_test("b"), result.wald_test(["a", "b"])
    assert single.p_value == pytest.approx(result.pvalues["b"], rel=1e-6)
    assert joint.p_value < 1e-10
    with pytest.raises(UnknownName, match="no coefficient named 'c'"):
        result.t_test("c")


def test_predictions_of_probabilities_stay_between_zero_and_one(frame):
    y = (frame["y"] > 1.0).astype(int)
    model = LogisticRegression().fit(frame[["a"]], y)
    table = model.inference().get_prediction([[8.0], [0.0]]).summary_frame(alpha=0.01)
    assert "obs_ci_lower" not in table
    assert (table["mean_ci_upper"] <= 1.0).all()
    np.testing.assert_allclose(table["mean"], model.predict_proba(pd.DataFrame({"a": [8.0, 0.0]}))[:, 1])
    with pytest.raises(InputError, match="linear models only"):
        model.inference().get_prediction([[1.0]]).conf_int(obs=True)
    with pytest.raises(InputError, match=r"X must have shape \(m, 1\)"):
        model.inference().get_prediction([[1.0, 2.0]])


def test_summary_says_what_the_errors_rest_on(result):
    text = result.summary()
    head, table = text.split("\n=", 1)
    for fact in ("score-batches", "batches", "degrees of freedom", "effective sample size", "times the iid ones"):
        assert fact in head
    for column in ("coef", "std err", "P>|t|", "[0.025", "0.975]", "Intercept"):
        assert column in table
    assert "[0.05" in result.summary(level=0.9)
    assert "<table>" in result._repr_html_()
    assert "<th>a</th>" in result._repr_html_()


def test_dependent_rows_are_seen():
    """Random-walk-like noise: the ratio to iid errors says so; independent noise is the control."""
    rng = np.random.default_rng(1)
    x, e = np.zeros(8000), np.zeros(8000)
    for i in range(1, 8000):
        x[i] = 0.9 * x[i - 1] + rng.standard_normal()
        e[i] = 0.9 * e[i - 1] + rng.standard_normal()
    dependent = LinearRegression().fit(x[:, None], e).inference().basis
    control = LinearRegression().fit(x[:, None], rng.standard_normal(8000)).inference().basis
    assert dependent.ratio_to_iid > 2.0
    assert dependent.effective_sample_size < 2000
    assert control.ratio_to_iid == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize("family", MODELS)
def test_save_and_load_go_on_with_the_same_bits(family, tmp_path, frame):
    X = frame[["a", "b"]]
    y = pd.Series(drawn(family, np.random.default_rng(1), 0.3 * frame["a"].to_numpy()))
    model = MODELS[family]().partial_fit(X[:1500], y[:1500])
    model.save(tmp_path / "model.hw")
    again = halfwidth.load(tmp_path / "model.hw")
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    for one in (model, again):
        one.partial_fit(X[1500:], y[1500:])
    assert np.array_equal(model.inference().params, again.inference().params)
    assert np.array_equal(model.inference().bse, again.inference().bse)
    assert again.inference().params.index.tolist()[-3:] in (
        ["Intercept", "a", "b"],
        ["2.0:Intercept", "2.0:a", "2.0:b"],
    )
    with pytest.raises(InputError, match=r"state\.class must be"):
        (LinearRegression if family != "linear" else HuberRegressor).load(tmp_path / "model.hw")


def test_a_file_without_a_model_is_refused(tmp_path):
    from halfwidth.state.checkpoint import write_checkpoint

    write_checkpoint(tmp_path / "other", {"kind": "other"})
    with pytest.raises(BrokenCheckpoint, match=r"state\.kind must be 'model'"):
        halfwidth.load(tmp_path / "other")


@pytest.mark.parametrize("family", [name for name in MODELS if name != "multinomial"])
def test_sgd_engine_learns_the_same_coefficients(family):
    """After 60,000 rows the SGD engine is within five of its standard errors of Newton, for every family."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((60_000, 2)) * [1.0, 50.0]
    y = drawn(family, rng, 0.3 + X @ [0.5, -0.01])
    newton = MODELS[family]().fit(X, y).inference()
    model = MODELS[family](engine="sgd")
    for at in range(0, 60_000, 7_000):
        model.partial_fit(X[at : at + 7_000], y[at : at + 7_000])
    sgd = model.inference()
    assert sgd.method == "obm"
    assert (np.abs(sgd.params - newton.params) < 5.0 * sgd.bse).all()
    again = type(model).from_state(model.to_state())
    assert np.array_equal(again.inference().params, sgd.params)


def test_sgd_engine_takes_over_for_many_columns_and_by_method():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 3_001))
    model = LinearRegression().partial_fit(X, X[:, 0])
    assert model.to_state()["engine"]["engine"] == "sgd"
    assert model.status_ == "too-few-rows"
    assert model.coef_.shape == (3_001,)
    assert LinearRegression(method="obm").partial_fit(X[:, :2], X[:, 0]).to_state()["engine"]["engine"] == "sgd"
    with pytest.raises(InputError, match="groups are for engine='newton'"):
        LinearRegression(engine="sgd").partial_fit(X, X[:, 0], groups=np.zeros(40))


def test_quantile_and_huber_agree_with_statsmodels(frame):
    X = sm.add_constant(frame[["a", "b"]])
    theirs = sm.RLM(frame["y"], X).fit()
    ours = HuberRegressor().fit(frame[["a", "b"]], frame["y"]).inference()
    assert (np.abs(ours.params.to_numpy() - theirs.params.to_numpy()) < 0.1 * theirs.bse.to_numpy()).all()
    assert "residual scale" in ours.summary()
    theirs = sm.QuantReg(frame["y"], X).fit(q=0.8)
    ours = QuantileRegressor(quantile=0.8).fit(frame[["a", "b"]], frame["y"]).inference()
    assert (np.abs(ours.params.to_numpy() - theirs.params.to_numpy()) < 0.4 * theirs.bse.to_numpy()).all()
    theirs = sm.GLM(frame["y"].abs(), X, family=sm.families.Poisson()).fit()
    ours = PoissonRegressor().fit(frame[["a", "b"]], frame["y"].abs()).inference()
    assert (np.abs(ours.params.to_numpy() - theirs.params.to_numpy()) < 0.02 * theirs.bse.to_numpy()).all()


def test_predictions_read_a_frame_by_name_and_refuse_what_they_cannot_read():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((500, 2)), columns=["x", "z"])
    model = halfwidth.LinearRegression().fit(frame, 2.0 * frame["x"] - frame["z"] + rng.standard_normal(500))
    result = model.inference()
    by_name = result.get_prediction(frame[["z", "x"]].head(3)).predicted_mean
    np.testing.assert_allclose(by_name, model.predict(frame.head(3)))
    with pytest.raises(InputError, match=r"missing: \['z'\]"):
        result.get_prediction(frame[["x"]])
    with pytest.raises(InputError, match="row 0 has nan in column 'z'"):
        result.get_prediction([[1.0, np.nan]])
    with pytest.raises(InputError, match="alpha must lie strictly between 0 and 1"):
        result.conf_int(alpha=95)


@pytest.mark.parametrize("engine", ["newton", "sgd"])
def test_a_penalty_is_named_in_the_result(frame, engine):
    """y = 1 + 2 a: with ridge 1 the slope that minimises the mean penalised loss is 1, and its interval is for that."""
    model = LinearRegression(ridge=1.0, engine=engine).fit(frame[["a", "b"]], frame["y"])
    result = model.inference()
    line = "penalty: ridge = 1, not on an intercept; coefficients are shrunk, and intervals are for the penalised ones"
    assert line in str(result).splitlines()
    assert line in result.summary().as_html()
    assert result.to_dict()["diagnostics"]["ridge"] == 1.0
    assert result.conf_int().loc["a", 0] < 1.0 < result.conf_int().loc["a", 1] < 2.0
    assert "penalty: ridge = 1" in str(halfwidth.models.MODELS["linear"].from_state(model.to_state()).inference())


def test_without_a_penalty_none_is_named(result):
    assert "penalty" not in str(result)
    assert "ridge" not in result.to_dict()["diagnostics"]


def test_a_penalty_is_named_without_intervals_too():
    model = LinearRegression(ridge=0.5).partial_fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    assert model.report()["diagnostics"]["ridge"] == 0.5


@pytest.mark.parametrize("columns", [1, 20])
def test_the_scale_of_a_column_changes_no_degrees_of_freedom(columns):
    """Fourth powers of a column of 1e-150 overflow; 20 columns take another way (`FreedomForms`)."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((3_000, columns))
    y = 1.0 + 2.0 * X[:, 0] + rng.standard_normal(3_000)
    tiny = X.copy()
    tiny[:, 0] *= 2.0**-500
    plain, scaled = (LinearRegression().fit(rows, y).inference() for rows in (X, tiny))
    assert scaled.core.coefficient_status == plain.core.coefficient_status == ("ok",) * (columns + 1)
    np.testing.assert_allclose(scaled.df, plain.df, rtol=1e-9)
    np.testing.assert_allclose(scaled.tvalues, plain.tvalues, rtol=1e-9)


def test_a_prediction_far_away_has_bounds(result):
    far, near = (result.get_prediction([[at, at]]) for at in (1e99, 1.0))
    assert np.isfinite(far.conf_int(obs=True)).all()
    np.testing.assert_allclose(far.conf_int(obs=True), far.conf_int(), rtol=1e-12)
    assert (far.conf_int()[0] > 1e98).all()
    assert (near.conf_int()[0] < 10.0).all()
