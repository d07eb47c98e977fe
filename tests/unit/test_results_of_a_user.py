"""Small habits of statsmodels users that every result has: alpha, names, tables in notebooks, scale."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import halfwidth as hw
from halfwidth.errors import BadRow, InputError


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((2_000, 2)), columns=["x", "z"])
    return table.assign(y=1.0 + table["x"] + 2.0 * rng.standard_normal(2_000), day=pd.date_range("2024", periods=2_000))


def test_alpha_is_one_minus_the_level_everywhere(frame):
    result = hw.fit(frame, formula="y ~ x + z").inference()
    pd.testing.assert_frame_equal(result.to_frame(alpha=0.1), result.to_frame(0.9))
    np.testing.assert_allclose(result.interval(alpha=0.1).lower, result.conf_int(0.1)[0])
    watcher = hw.FixedBatchMeans(dim=2)
    watcher.update_many(frame[["x", "z"]].to_numpy())
    found = watcher.result()
    assert found.to_frame(alpha=0.1)["ci_lower"].tolist() == found.conf_int(0.1)[:, 0].tolist()
    with pytest.raises(InputError, match="alpha must be left out where a level is given"):
        found.to_frame(0.9, alpha=0.1)


def test_results_of_learners_and_watchers_take_names(frame):
    watcher = hw.FixedBatchMeans(dim=2)
    watcher.update_many(frame[["x", "z"]].to_numpy())
    named = watcher.result().with_names(["heat", "wind"])
    assert named.to_frame().index.tolist() == ["heat", "wind"]
    assert named.t_test("heat - wind").effect[0] == pytest.approx(named.params[0] - named.params[1])
    assert "<th>wind</th>" in named._repr_html_()
    with pytest.raises(InputError, match="names must be 2 different names"):
        named.with_names(["a", "a"])


def test_scale_is_that_of_statsmodels(frame):
    result = hw.fit(frame, formula="y ~ x + z").inference()
    twin = sm.OLS(frame["y"], sm.add_constant(frame[["x", "z"]])).fit()
    assert result.scale == pytest.approx(twin.scale, rel=1e-9)
    logistic = hw.fit(frame.assign(late=(frame["y"] > 1).astype(int)), formula="late ~ x", family="logistic")
    assert logistic.inference().scale == 1.0


def test_predictions_show_as_a_table(frame):
    prediction = hw.fit(frame, formula="y ~ x").inference().get_prediction(frame.head(2))
    assert "obs_ci_upper" in prediction._repr_html_()
    assert "mean_ci_lower" in str(prediction) or "..." in str(prediction)


def test_a_time_that_is_none_says_which_are_understood(frame):
    spelt = frame.assign(day=frame["day"].dt.strftime("%d of %B %Y"))
    with pytest.raises(BadRow, match=r"'01 of January 2024' is neither a number nor a time like 2024-01-31"):
        hw.fit(spelt, target="y", features=["x"], time="day")
