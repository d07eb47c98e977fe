"""A model of `fit` keeps its specification: predictions take the raw columns, also after `save` and in a Pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import statsmodels.formula.api as smf
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

import halfwidth
from halfwidth.errors import BadRow, BadState, InputError
from halfwidth.models.predict import Predictions

FORMULA = "y ~ a + kind*I(a**2) + scale(exposure) + poly(c, 2)"


def make(rows: int = 3_000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=rows), "c": rng.uniform(1, 5, rows)})
    frame["kind"] = np.resize(["u", "v", "w"], rows)
    frame["exposure"] = rng.uniform(1, 2, rows)
    frame["y"] = 1 + frame["a"] + (frame["kind"] == "v") + np.log(frame["c"]) + rng.normal(size=rows)
    frame["late"] = np.where(frame["y"] > 2, "yes", "no")
    frame["count"] = rng.poisson(frame["exposure"] * np.exp(0.3 * frame["a"]))
    return frame


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return make()


def test_predictions_are_statsmodels(frame: pd.DataFrame, tmp_path: Path) -> None:
    model = halfwidth.fit(frame, formula=FORMULA)
    twin = smf.ols("y ~ a + kind*I(a**2) + exposure + c + I(c**2)", frame).fit()
    new = make(50).drop(columns=["y", "late", "count"])
    np.testing.assert_allclose(model.predict(new), twin.predict(new), rtol=1e-7)
    model.save(tmp_path / "model.hw")
    again = halfwidth.load(tmp_path / "model.hw")
    for table in (new, pl.from_pandas(new), pa.table(new), new.to_dict("list"), new.to_dict("records")):
        np.testing.assert_array_equal(again.predict(table), model.predict(new))
    assert again.score(frame, frame["y"]) == pytest.approx(twin.rsquared)
    result = again.inference()
    np.testing.assert_allclose(result.get_prediction(new).predicted_mean, model.predict(new), rtol=1e-10)


def test_raw_columns_of_a_model_without_a_formula(frame: pd.DataFrame) -> None:
    model = halfwidth.fit(frame, target="y", features=["a", "c"])
    shuffled = frame[["c", "y", "kind", "a"]]
    np.testing.assert_allclose(model.predict(shuffled), model.intercept_ + frame[["a", "c"]] @ model.coef_)
    np.testing.assert_allclose(model.inference().get_prediction(shuffled).predicted_mean, model.predict(shuffled))


def test_classes_probabilities_and_offsets(frame: pd.DataFrame) -> None:
    logistic = halfwidth.fit(frame, formula="late ~ a + kind", family="logistic")
    chance = logistic.predict_proba(frame)
    assert set(logistic.predict(frame)) == {"yes", "no"}
    np.testing.assert_allclose(chance.sum(axis=1), 1.0)
    assert logistic.score(frame, frame["late"]) > 0.6
    poisson = halfwidth.fit(frame, formula="count ~ a + offset(log(exposure))", family="poisson")
    by_column = halfwidth.fit(frame.assign(e=np.log(frame["exposure"])), target="count", features=["a"],
                              offset="e", family="poisson")  # fmt: skip
    with_offset = frame.assign(e=np.log(frame["exposure"]))
    np.testing.assert_allclose(poisson.predict(frame), by_column.predict(with_offset))
    with pytest.raises(BadRow, match="column 'e': there is no such column"):
        by_column.predict(frame)
    np.testing.assert_allclose(by_column.predict(frame, offset=with_offset["e"]), by_column.predict(with_offset))


def test_an_offset_is_never_dropped(frame: pd.DataFrame) -> None:
    model = halfwidth.fit(frame, formula="count ~ a + offset(log(exposure))", family="poisson")
    result = model.inference()
    whole = {"a": [0.5], "exposure": [2.0]}
    expected = 2.0 * np.exp(model.intercept_ + 0.5 * model.coef_[0])
    for predict in (model.predict, result.predict, lambda *given: result.get_prediction(*given).predicted_mean):
        for table in (pd.DataFrame({"a": [0.5]}), {"a": [0.5]}, pa.table({"a": [0.5]})):
            with pytest.raises(BadRow, match="column 'exposure': there is no such column"):
                predict(table)
        with pytest.raises(InputError, match=r"offset must be given with a matrix.*'exposure'"):
            predict(np.array([[0.5]]))
        for table in (whole, pd.DataFrame(whole), [{"a": 0.5, "exposure": 2.0}]):
            np.testing.assert_allclose(predict(table), expected)
    np.testing.assert_allclose(result.predict(np.array([[0.5]]), [np.log(2.0)]), expected)


def test_dictionaries_are_refused_where_a_matrix_is_read(frame: pd.DataFrame) -> None:
    model = halfwidth.fit(frame, formula="y ~ log(exposure)")
    for table in ({"log(exposure)": [0.5]}, [{"log(exposure)": 0.5}]):
        for predict in (model.predict, model.inference().predict):
            with pytest.raises(InputError, match="X must be a matrix or a frame here"):
                predict(table)


def test_a_computed_target_is_not_needed(frame: pd.DataFrame) -> None:
    model = halfwidth.fit(frame.assign(p=np.exp(frame["y"])), formula="log(p) ~ a")
    assert model.predict({"a": [0.0]})[0] == pytest.approx(model.intercept_)


def test_a_pipeline_passes_raw_columns_through(frame: pd.DataFrame) -> None:
    model = halfwidth.fit(frame, formula="y ~ a + kind")
    doubled = Pipeline([("half", FunctionTransformer(lambda t: t.assign(a=t["a"] / 2))), ("model", model)])
    np.testing.assert_array_equal(doubled.predict(frame), model.predict(frame.assign(a=frame["a"] / 2)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"kind": "new"},
            "row 1, column 'kind': the model has no coefficient for the level 'new'; leave its .* --bad-rows skip",
        ),
        ({"a": np.nan}, "row 1, column 'a': the value is missing"),
        ({"a": "text"}, "row 1, column 'a': 'text' is not a number"),
    ],
)
def test_rows_that_cannot_be_predicted_are_named(frame: pd.DataFrame, change: dict[str, Any], words: str) -> None:
    model = halfwidth.fit(frame, formula="y ~ a + kind")
    with pytest.raises(BadRow, match=words):
        model.predict(frame.head(3).assign(**change))
    with pytest.raises(BadRow, match="there is no such column"):
        model.predict(frame[["c"]])


def test_streamed_predictions(frame: pd.DataFrame, tmp_path: Path) -> None:
    model = halfwidth.fit(frame, formula="y ~ a + kind")
    frame.drop(columns="y").to_csv(tmp_path / "x.csv", index=False)
    blocks = list(Predictions(model, tmp_path / "x.csv", interval="observation", level=0.9))
    expected = model.inference(0.9).get_prediction(frame).conf_int(0.1, obs=True)
    np.testing.assert_allclose(np.concatenate([b["obs_ci_lower"] for b in blocks]), expected[:, 0], rtol=1e-9)
    holes = frame.assign(a=frame["a"].where(frame.index != 7))
    found = Predictions(model, holes, bad_rows="skip")
    (block,) = found
    assert np.flatnonzero(np.isnan(block["mean"])).tolist() == [7]
    assert (found.rows, found.skipped) == (len(frame), {"missing value": 1})
    matrix = halfwidth.LinearRegression().fit(frame[["a"]], frame["y"])
    with pytest.raises(InputError, match="keeps no specification"):
        Predictions(matrix, frame)


def test_a_specification_from_a_file_is_checked(frame: pd.DataFrame) -> None:
    model = halfwidth.fit(frame, formula=FORMULA)
    state = model.to_state()
    changes: list[tuple[list[Any], Any]] = [
        (["formula"], "y ~ __import__('os').system('true')"),
        (["formula"], "y ~ a"),
        (["inputs", "constants", "scale(exposure)", "deviation"], [0.0]),
        (["inputs", "constants", "scale(exposure)"], {}),
        (["inputs", "constants"], {}),
        (["inputs", "levels", "kind", "names"], ["u", "v"]),
        (["cells", 0, "term"], 99),
        (["cells", 0, "levels"], [5]),
        (["inputs", "kinds"], {}),
    ]
    for path, value in changes:
        damaged = _copied(state)
        inner = damaged["specification"]["design"]
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        with pytest.raises((BadState, InputError)):
            type(model).from_state(damaged)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value


def test_score_finds_the_target_in_the_table(frame: pd.DataFrame) -> None:
    linear = halfwidth.fit(frame, formula="y ~ a + kind")
    assert linear.score(frame) == linear.score(frame, frame["y"])
    assert linear.score(pl.from_pandas(frame)) == linear.score(frame)
    assert halfwidth.fit(frame, target="y", features=["a"]).score(frame) > 0.0
    computed = halfwidth.fit(frame.assign(p=np.exp(frame["y"])), formula="log(p) ~ a + kind")
    assert computed.score(frame.assign(p=np.exp(frame["y"]))) == pytest.approx(linear.score(frame))
    for column in ("late", "flag", "number"):
        labelled = frame.assign(flag=frame["late"] == "yes", number=np.where(frame["late"] == "yes", 1, -1))
        logistic = halfwidth.fit(labelled, formula=f"{column} ~ a + kind", family="logistic")
        assert logistic.score(labelled) == logistic.score(labelled, labelled[column]) > 0.6
    counts = halfwidth.fit(frame, formula="count ~ a + offset(log(exposure))", family="poisson")
    assert counts.score(frame) == counts.score(frame, frame["count"])
    pipeline = Pipeline([("same", FunctionTransformer()), ("model", linear)])
    assert pipeline.score(frame) == linear.score(frame)


def test_score_without_a_target_says_what_is_missing(frame: pd.DataFrame) -> None:
    model = halfwidth.fit(frame, formula="late ~ a", family="logistic")
    with pytest.raises(BadRow, match="column 'late': there is no such column"):
        model.score(frame.drop(columns="late"))
    with pytest.raises(InputError, match=r"y must hold the classes \['no', 'yes'\] only; got 'perhaps'"):
        model.score(frame.assign(late="perhaps"))
    with pytest.raises(InputError, match="y must be given: only a model"):
        model.score(frame[["a"]].to_numpy())


def test_paths_are_read_by_models_that_know_their_columns(frame: pd.DataFrame, tmp_path: Path) -> None:
    model = halfwidth.fit(frame, formula="y ~ a + kind")
    frame.to_csv(tmp_path / "x.csv", index=False, sep=";", decimal=",")
    np.testing.assert_allclose(model.predict(tmp_path / "x.csv"), model.predict(frame), rtol=1e-12)
    assert model.score(str(tmp_path / "x.csv")) == pytest.approx(model.score(frame))
    bounds = model.inference().get_prediction(tmp_path / "x.csv").conf_int()
    np.testing.assert_allclose(bounds, model.inference().get_prediction(frame).conf_int(), rtol=1e-12)
    matrix = halfwidth.LinearRegression().fit(frame[["a"]], frame["y"])
    with pytest.raises(InputError, match=r"X must be a matrix or a frame; halfwidth.fit reads files"):
        matrix.predict("x.csv")
    with pytest.raises(InputError, match=r"y must be given: .* or in a file"):
        matrix.score("x.csv")
