"""`halfwidth.fit`: sources, families, bad rows, checkpoints, passes."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import halfwidth
from halfwidth.errors import BadRow, InputError, NotEnoughData, UnknownName
from halfwidth.families.linear import Linear
from halfwidth.models import FitWarning, LinearRegression, LogisticRegression


def make(n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"time": np.arange(n), "a": rng.standard_normal(n), "b": 1e4 + 1e3 * rng.standard_normal(n)})
    frame["kind"] = np.array(["x", "y", "z"])[rng.integers(0, 3, n)]
    eta = 1.0 + frame["a"] - 1e-3 * (frame["b"] - 1e4)
    frame["y"] = eta + (frame["kind"] == "y") + rng.standard_normal(n)
    frame["late"] = np.where(rng.random(n) < 1 / (1 + np.exp(-eta)), "yes", "no")
    frame["count"] = rng.poisson(np.exp(0.3 * eta))
    frame["group"] = np.arange(n) // 25
    frame["w"] = rng.integers(1, 3, n)
    return frame


@pytest.fixture(scope="module")
def frame():
    return make()


@pytest.fixture(scope="module")
def parquet(frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("fit") / "rows.parquet"
    frame.to_parquet(path, row_group_size=3_000)
    return path


def test_a_file_and_a_table_and_arrays_agree(frame, parquet, tmp_path):
    frame.to_csv(tmp_path / "rows.csv", index=False)
    arrays = LinearRegression().fit(frame[["a", "b"]].to_numpy(), frame["y"]).inference()
    for source in (parquet, frame, tmp_path / "rows.csv"):
        model = halfwidth.fit(source, target="y", features=["a", "b"])
        result = model.inference()
        assert result.params.index.tolist() == ["Intercept", "a", "b"]
        np.testing.assert_array_equal(result.params, arrays.params)
        np.testing.assert_array_equal(result.bse, arrays.bse)


def test_a_formula_brings_levels_and_may_drop_the_intercept(parquet):
    result = halfwidth.fit(parquet, formula="y ~ a + C(kind, reference='x')").inference()
    assert len(result.params) == 4
    assert result.params.iloc[0] == pytest.approx(1.0, abs=0.1)
    without = halfwidth.fit(parquet, formula="y ~ 0 + a + b").inference()
    assert without.params.index.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("family", "target"),
    [("gaussian", "y"), ("binomial", "late"), ("poisson", "count"), ("quantile", "y"), ("huber", "y")],
)
def test_every_family(parquet, family, target):
    result = halfwidth.fit(parquet, target=target, features=["a", "b"], family=family).inference()
    assert result.params["a"] > 0.0
    assert result.pvalues["a"] < 1e-6


def test_text_labels_come_back_in_predictions(parquet, frame):
    model = halfwidth.fit(parquet, target="late", features=["a"], family="logistic")
    assert isinstance(model, LogisticRegression)
    assert model.classes_.tolist() == ["no", "yes"]
    assert set(model.predict(frame[["a"]][:50])) == {"no", "yes"}


def test_weights_groups_and_time_reach_the_model(parquet, frame):
    model = halfwidth.fit(parquet, target="y", features=["a"], weight="w", group="group", time="time")
    direct = LinearRegression().fit(frame[["a"]], frame["y"], sample_weight=frame["w"], groups=frame["group"])
    np.testing.assert_array_equal(model.inference().bse, direct.inference().bse)


@pytest.mark.parametrize("family", ["linear", "logistic"])
def test_two_passes_are_the_offline_fit(parquet, frame, family):
    target = {"linear": "y", "logistic": "late"}[family]
    result = halfwidth.fit(parquet, target=target, features=["a", "b"], family=family, passes=2).inference()
    import statsmodels.api as sm

    X = sm.add_constant(frame[["a", "b"]])
    theirs = sm.OLS(frame["y"], X) if family == "linear" else sm.Logit((frame["late"] == "yes").astype(int), X)
    offline = theirs.fit() if family == "linear" else theirs.fit(disp=0)
    assert (np.abs(result.params.to_numpy() - offline.params.to_numpy()) < 1e-4 * offline.bse.to_numpy()).all()
    assert "passes: 2" in result.summary()


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("family", ["linear", "logistic"])
def test_an_interrupted_run_ends_with_the_same_bits(parquet, tmp_path, family, passes):
    options = {"target": {"linear": "y", "logistic": "late"}[family], "features": ["a", "b"], "family": family}
    whole = halfwidth.fit(parquet, passes=passes, **options).inference()
    checkpoint = tmp_path / "run.ck"
    for stop_after in (1, 2, 3):
        chunks = 0

        def interrupt(_rows, stop_after=stop_after):
            nonlocal chunks
            chunks += 1
            if chunks == stop_after:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            halfwidth.fit(parquet, passes=passes, checkpoint=checkpoint, resume=True, progress=interrupt, **options)
        if passes == 1 and stop_after == 2:
            break
    resumed = halfwidth.fit(parquet, passes=passes, checkpoint=checkpoint, resume=True, **options).inference()
    np.testing.assert_array_equal(resumed.params, whole.params)
    np.testing.assert_array_equal(resumed.bse, whole.bse)
    assert resumed.n == whole.n
    np.testing.assert_array_equal(halfwidth.load(checkpoint).inference().bse, whole.bse)


def test_a_bad_row_names_its_place_and_what_was_learned_is_kept(frame, tmp_path):
    bad = frame.copy()
    bad["a"] = bad["a"].astype(object)
    bad.loc[12_345, "a"] = "oops"
    path = tmp_path / "bad.csv"
    bad.to_csv(path, index=False)
    checkpoint = tmp_path / "run.ck"
    with pytest.raises(BadRow, match=r"bad.csv, row 12346, column 'a'"):
        halfwidth.fit(path, target="y", features=["a", "b"], checkpoint=checkpoint)
    assert halfwidth.load(checkpoint).n_seen_ == 12_345
    model = halfwidth.fit(path, target="y", features=["a", "b"], checkpoint=checkpoint, resume=True, bad_rows="skip")
    assert model.n_seen_ == 19_999
    report = model.report()
    assert sum(report["diagnostics"]["skipped_rows"].values()) == 1
    straight = halfwidth.fit(frame.drop(index=12_345), target="y", features=["a", "b"])
    np.testing.assert_array_equal(model.coef_, straight.coef_)


def test_when_no_row_is_left_the_error_says_what_was_skipped_and_for_which_columns():
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0] * 10, "b": [1.0, None, None] * 10, "y": ["?", 1, 2] * 10})
    model = halfwidth.fit(table, target="y", features=["a", "b"], bad_rows="skip")
    said = "30 rows were skipped: not a number 10, missing value 20; by column: y 10, b 20"
    with pytest.raises(NotEnoughData, match=f"no row could be used: {said}"):
        model.inference()
    with pytest.raises(InputError, match=r"none of the first 30 rows has all of \['a', 'b'\]; missing or bad: b in 30"):
        halfwidth.fit(table.assign(b=np.nan), formula="y ~ a + b", bad_rows="skip")


def test_when_too_few_rows_are_left_the_report_says_what_was_skipped():
    table = pd.DataFrame({"a": np.arange(30.0), "y": [None] * 25 + [1.0] * 5})
    report = halfwidth.fit(table, target="y", bad_rows="skip").report()
    assert report["status"] == "too-few-rows"
    assert report["diagnostics"]["skipped_rows_by_column"] == {"y": 25}
    (text,) = report["diagnostics"]["warnings"]
    assert text.startswith("5 rows are too few for 2 coefficients")
    assert text.endswith("(25 rows were skipped: missing value 25; by column: y 25)")


def test_reports_come_exactly_when_asked(parquet):
    seen = []
    halfwidth.fit(parquet, target="y", features=["a"], every=3_000, report=lambda model: seen.append(model.n_seen_))
    assert seen == [3_000, 6_000, 9_000, 12_000, 15_000, 18_000]
    seen.clear()
    halfwidth.fit(parquet, target="y", features=["a"], every="doubling", report=lambda m: seen.append(m.n_seen_))
    assert seen == [1_000, 2_000, 4_000, 8_000, 16_000]


def test_an_iterator_can_be_read_once_only(frame):
    def chunks():
        for at in range(0, 20_000, 3_000):
            part = frame[at : at + 3_000]
            yield part[["a", "b", "y"]]

    model = halfwidth.fit(chunks(), target="y")
    assert model.n_seen_ == 20_000
    with pytest.raises(InputError, match="passes must be 1"):
        halfwidth.fit(chunks(), target="y", passes=2)


def test_contradictions_are_refused(parquet, tmp_path):
    with pytest.raises(UnknownName, match="there is no family named 'probit'"):
        halfwidth.fit(parquet, target="y", family="probit")
    with pytest.raises(InputError, match="quantile must be given with family='quantile' only"):
        halfwidth.fit(parquet, target="y", quantile=0.3)
    with pytest.raises(InputError, match=r"resume .--resume. needs the checkpoint .--checkpoint FILE."):
        halfwidth.fit(parquet, target="y", resume=True)
    halfwidth.fit(parquet, target="y", features=["a"], checkpoint=tmp_path / "ck")
    with pytest.raises(InputError, match=r"resume_at \(--resume-at\) needs resume"):
        halfwidth.fit(parquet, target="y", checkpoint=tmp_path / "other", resume_at=5)
    with pytest.raises(InputError, match=r"settings that it began with: ridge \(--ridge\) was 0.0; got 1.0"):
        halfwidth.fit(parquet, target="y", features=["a"], ridge=1.0, checkpoint=tmp_path / "ck", resume=True)


@pytest.mark.filterwarnings(f"error::{FitWarning.__module__}.FitWarning")
def test_undetermined_streams_have_a_status(frame):
    model = halfwidth.fit(frame.assign(c=7.0), target="y", features=["a", "c"])
    report = {row["name"]: row for row in model.report()["coefficients"]}
    assert model.status_ == "ok"
    assert report["c"]["status"] == report["Intercept"]["status"] == "unidentified"
    assert report["c"]["std_err"] is None
    assert report["a"]["status"] == "ok"


def test_an_interruption_within_a_chunk_loses_no_row(parquet, tmp_path):
    """The report comes in the middle of a chunk, where the stream is ahead of the model."""
    options = {"target": "y", "features": ["a", "b"], "checkpoint": tmp_path / "run.ck", "resume": True}
    whole = halfwidth.fit(parquet, target="y", features=["a", "b"]).inference()

    def interrupt(model):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        halfwidth.fit(parquet, every=10_000, report=interrupt, **options)
    resumed = halfwidth.fit(parquet, **options).inference()
    assert resumed.n == whole.n
    np.testing.assert_array_equal(resumed.params, whole.params)
    np.testing.assert_array_equal(resumed.bse, whole.bse)


def test_columns_that_default_features_leave_out_are_named():
    table = {"x": np.arange(60.0) % 7, "city": ["a", "b", "c"] * 20, "y": np.arange(60.0) % 5}
    summary = halfwidth.fit(table, target="y").inference().summary()
    assert "columns left out: city (not numeric)" in summary
    assert "left out" not in halfwidth.fit(table, target="y", features=["x"]).inference().summary()


@pytest.mark.parametrize("asked", [{"target": "y"}, {"formula": "y ~ ."}])
def test_columns_that_share_a_name_or_have_none_are_named(asked, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 5)), columns=["x", "x", "y", "k", ""])
    frame.to_csv(tmp_path / "x.csv", index=False)
    with pa.ipc.new_file(tmp_path / "x.arrow", (table := pa.table(list(frame.to_numpy().T), [*frame])).schema) as file:
        file.write_table(table)
    for source in (frame, tmp_path / "x.csv", tmp_path / "x.arrow", table):
        result = halfwidth.fit(source, **asked).inference()
        assert list(result.names) == ["Intercept", "k"]
        assert "columns left out: x (several columns have this name), '' (no name)" in result.summary()
    with pytest.raises(BadRow, match="column 'x'"):
        halfwidth.fit(frame, formula="y ~ x")


def test_two_coefficients_of_one_name_are_refused():
    frame = make(200).assign(Intercept=lambda t: t["a"] ** 2, **{"a:b": lambda t: t["a"] ** 3})
    for asked in ({"formula": "y ~ Intercept"}, {"target": "y", "features": ["a", "Intercept"]}):
        with pytest.raises(InputError, match=r"two coefficients would be named 'Intercept'.*rename a column"):
            halfwidth.fit(frame, **asked)
    with pytest.raises(InputError, match="would be named 'Intercept'"):
        LinearRegression().fit(frame[["Intercept"]], frame["y"])
    with pytest.raises(InputError, match="two coefficients would be named 'a:b'"):
        halfwidth.fit(frame, formula="y ~ a*b + `a:b`")
    assert list(halfwidth.fit(frame, formula="y ~ 0 + Intercept").inference().names) == ["Intercept"]
    count = np.arange(10_100)  # the last level comes after the first 10,000 rows
    kind = np.where(count < 10_050, np.array(["u", "v"])[count % 2], "w")
    late = pd.DataFrame({"y": count % 7 * 1.0, "k": kind, "k[T.w]": count % 5 * 1.0})
    with pytest.raises(InputError, match=r"would be named 'k\[T.w\]'"):
        halfwidth.fit(late, formula="y ~ k + `k[T.w]`")


def test_a_target_that_the_family_does_not_allow_is_refused_whatever_the_reader_lets_through(monkeypatch):
    monkeypatch.setattr(Linear, "allows", lambda self, y: y > 0.0)
    monkeypatch.setattr(Linear, "target", "be positive")
    table = {"x": np.arange(50.0), "y": np.arange(50.0) - 3.0}
    with pytest.raises(InputError, match="y must be positive; got -3"):
        halfwidth.fit(table, target="y")


@pytest.mark.parametrize("gaps", ["missing hours", "unequal", "none"])
def test_spacing_in_time_is_not_looked_at_and_the_summary_says_so(gaps):
    frame = make(3_000)
    hours = np.arange(3_000.0)
    rng = np.random.default_rng(1)
    frame["time"] = {
        "missing hours": hours + 500.0 * (hours > 1_000) + 2_000.0 * (hours > 2_500),
        "unequal": np.cumsum(rng.exponential(size=3_000) ** 3),
        "none": hours,
    }[gaps]
    model = halfwidth.fit(frame, target="y", features=["a", "b"], time="time")
    result, plain = model.inference(), halfwidth.fit(frame, target="y", features=["a", "b"]).inference()
    sentence = "rows are taken as equally spaced in time; gaps in it are not looked at"
    assert sentence in result.summary()
    assert model.report()["diagnostics"]["spacing"] == sentence
    np.testing.assert_array_equal(result.bse, plain.bse)
    assert "equally spaced" not in plain.summary()
    grouped = halfwidth.fit(frame, target="y", features=["a", "b"], time="time", group="group")
    assert "equally spaced" not in grouped.inference().summary()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"formula": "y ~ 0"}, "the formula has no columns and no intercept"),
        ({"formula": "y ~ 1", "fit_intercept": False}, "the formula has no columns and no intercept"),
        ({"formula": "x"}, "formula must have a left side and ~, like 'y ~ x'; got 'x'"),
        ({"formula": "y ~ x", "level": 0.9}, r"level is given to inference\(level=...\)"),
        ({"formula": "y ~ x", "rigde": 0.9}, "no argument named 'rigde'; known: .*decimal.*Did you mean 'ridge'"),
    ],
)
def test_what_is_wrong_is_said_in_the_words_of_the_caller(arguments, message):
    table = pd.DataFrame({"x": np.arange(50.0), "y": np.arange(50.0) % 7})
    with pytest.raises(InputError, match=message):
        halfwidth.fit(table, **arguments)


def test_a_model_file_that_is_not_there_is_no_broken_checkpoint(tmp_path):
    with pytest.raises(InputError, match=r"^there is no file '.*nofile.hw'$"):
        halfwidth.load(tmp_path / "nofile.hw")
