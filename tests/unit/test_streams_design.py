"""Formulas and labels: what the first buffer fixes, and what later rows may still bring."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import formulaic
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfwidth.errors import BadRow, InputError
from halfwidth.streams import Stream, open_stream


def _frame(rows: int = 40, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "y": rng.uniform(1, 2, rows),
            "a": rng.normal(size=rows),
            "b": np.resize(["u", "v", "w"], rows),
            "k": np.resize([1, 2, 10], rows),
            "c": rng.uniform(1, 3, rows),
            "d e": rng.normal(size=rows),
            "g": rng.choice(["p", "q"], rows),
        }
    )


def _all(stream: Stream) -> tuple[Any, Any]:
    chunks = list(stream)
    return np.vstack([c.X for c in chunks]), np.concatenate([c.y for c in chunks])


FORMULAS = [
    "y ~ a",
    "y ~ a + C(b) + log(c)",
    "y ~ b + C(k) + a:C(k)",
    "y ~ 0 + C(b)",
    "y ~ center(c) + scale(a) + poly(c, 2)",
    "y ~ bs(c, df=4) + `d e` + a:`d e`",
    "y ~ bs(c, knots=[1.5, 2], degree=2, lower_bound=1, upper_bound=3)",
    "y ~ a*b + a*c",
    "y ~ 0 + b*g",
    "y ~ b:g",
    "y ~ b + b:poly(c, 2)",
    "y ~ (a + b + c)**2 - a:c",
    "y ~ . - k - `d e`",
    "log(y) ~ b:g:a + I(a**2 + c / 2)",
    "y ~ a - 1",
]


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("chunk_rows", [1, 7, 100])
def test_a_formula_gives_formulaics_matrix_without_the_intercept(formula: str, chunk_rows: int) -> None:
    frame = _frame()
    expected = formulaic.model_matrix(formula, frame)
    ours = formula.replace("lower_bound", "lower").replace("upper_bound", "upper")
    X, y = _all(stream := open_stream(frame, formula=ours, chunk_rows=chunk_rows))
    columns = [name for name in expected.rhs.columns if name != "Intercept"]
    renamed = [name.replace("lower_bound", "lower").replace("upper_bound", "upper") for name in columns]
    assert [name.replace(" ", "") for name in stream.feature_names] == [name.replace(" ", "") for name in renamed]
    assert stream.has_intercept == ("Intercept" in expected.rhs.columns)
    np.testing.assert_allclose(X, expected.rhs[columns].to_numpy(float), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(y, expected.lhs.to_numpy(float)[:, -1], rtol=1e-12)


def test_natural_splines_span_patsys_and_are_linear_outside() -> None:
    patsy = pytest.importorskip("patsy")
    x = np.random.default_rng(0).uniform(0, 10, 300)
    frame = pd.DataFrame({"x": x, "y": x})
    X, _ = _all(open_stream(frame, formula="y ~ ns(x, df=4)"))
    knots = np.quantile(x, [0.25, 0.5, 0.75])
    twin = np.asarray(patsy.dmatrix("cr(x, knots=knots)", {"x": x, "knots": knots}))
    ours = np.column_stack([np.ones(300), X])
    assert np.linalg.matrix_rank(np.hstack([ours, twin]), tol=1e-8) == ours.shape[1] == 5
    far = pd.DataFrame({"x": np.r_[x, 20.0, 30.0, 40.0], "y": 0.0})
    beyond, _ = _all(open_stream(far, formula="y ~ ns(x, df=4)", buffer_rows=300))
    np.testing.assert_allclose(np.diff(beyond[300:], 2, axis=0), 0.0, atol=1e-9)


def test_harmonics_of_numbers_and_of_dates() -> None:
    hours = np.arange(0.0, 60.0)
    frame = pd.DataFrame({"t": hours, "y": hours})
    X, _ = _all(stream := open_stream(frame, formula="y ~ harmonics(t, 24, 2)"))
    assert stream.feature_names[:3] == tuple(f"harmonics(t, 24, 2)[{name}]" for name in ("sin1", "cos1", "sin2"))
    np.testing.assert_allclose(X[:, 3], np.cos(4 * np.pi * hours / 24), atol=1e-12)
    dates = frame.assign(t=pd.Timestamp("2024-01-01") + pd.to_timedelta(hours, "h"))
    for source in (dates, dates.assign(t=dates["t"].astype(str))):
        Z, _ = _all(open_stream(source, formula="y ~ harmonics(t, 'day', k=2)"))
        np.testing.assert_allclose(Z, X, atol=1e-9)
    with pytest.raises(InputError, match="column 't' is not numeric, so log"):
        open_stream(dates, formula="y ~ log(t)")


def test_the_offset_of_a_formula_adds_to_the_offset_column() -> None:
    frame = _frame()
    stream = open_stream(frame, formula="y ~ a + offset(log(c)) + offset(2 * a)", offset="d e")
    offset = np.concatenate([c.offset for c in stream if c.offset is not None])
    np.testing.assert_allclose(offset, np.log(frame["c"]) + 2 * frame["a"] + frame["d e"])
    assert stream.feature_names == ("a",)


def test_comparisons_and_arithmetic() -> None:
    frame = _frame()
    X, y = _all(open_stream(frame, formula="y > 1.5 ~ I(a > 0) + I(-a ** 2 / 2) + abs(a) + I((a + c) * 2 - 1)"))
    a, c = frame["a"], frame["c"]
    expected = np.column_stack([a > 0, -(a**2) / 2, a.abs(), (a + c) * 2 - 1])
    np.testing.assert_allclose(X, expected)
    assert y.tolist() == (frame["y"] > 1.5).astype(float).tolist()


def test_the_same_design_from_text_and_from_typed_columns(tmp_path: Path) -> None:
    frame = _frame()
    frame.to_csv(tmp_path / "x.csv", index=False)
    frame.to_parquet(tmp_path / "x.parquet")
    formula = "y ~ b + C(k) + log(c)"
    results = [_all(open_stream(tmp_path / name, formula=formula))[0] for name in ("x.csv", "x.parquet")]
    assert results[0].tobytes() == results[1].tobytes()
    assert open_stream(tmp_path / "x.csv", formula=formula).feature_names[2:4] == ("C(k)[T.2]", "C(k)[T.10]")


@settings(max_examples=20)
@given(buffer_rows=st.integers(5, 40), chunk_rows=st.integers(1, 50))
def test_transforms_are_fixed_on_the_first_buffer_and_stated(buffer_rows: int, chunk_rows: int) -> None:
    frame = _frame()
    stream = open_stream(frame, formula="y ~ center(c)", buffer_rows=buffer_rows, chunk_rows=chunk_rows)
    mean = frame["c"][:buffer_rows].mean()
    np.testing.assert_allclose(_all(stream)[0][:, 0], frame["c"] - mean, rtol=1e-12, atol=1e-14)
    assert stream.design.notes == {"center(c)": f"mean {mean:.6g}"}


def test_a_row_outside_a_transforms_domain_is_named() -> None:
    frame = _frame()
    frame.loc[30, "c"] = -1.0
    with pytest.raises(BadRow, match=r"row 31, column 'log\(c\)': the formula gives no finite number"):
        list(open_stream(frame, formula="y ~ log(c)"))
    frame.loc[30, "c"] = 99.0
    with pytest.raises(BadRow, match=r"column 'bs\(c, df=4\)': the formula gives no finite number") as caught:
        list(open_stream(frame, formula="y ~ bs(c, df=4)", buffer_rows=20))
    assert caught.value.reason == "formula not defined"
    X, _ = _all(open_stream(frame, formula="y ~ bs(c, df=4)", buffer_rows=30, bad_rows="skip"))
    assert 30 <= len(X) < 40


@pytest.mark.parametrize(
    "term",
    [
        "lag(a)",
        "np.cumsum(a)",
        "__import__('os').system('true')",
        "{a - a.mean()}",
        "a.rank()",
        "eval(a)",
        "hashed(b)",
        "lambda(a)",
        "exec('1')",
        "I(open('x'))",
        "log(a, b)",
        "C(b, Sum)",
        "C(a > 1)",
        "5",
        "a/b",
        "a|b",
        "bs(a)",
        "bs(a, df=4, knots=[1])",
        "poly(a, 0)",
        "poly(a, 1.5)",
        "harmonics(a)",
        "harmonics(a, 'fortnight')",
        "scale(a, 2)",
        "a:offset(c)",
        "a ~ c",
        "(a",
        "a)",
        "",
        "(" * 100 + "a" + ")" * 100,
        "I(" + "a+" * 300 + "a)",
        "(" + "+".join(f"x{i}" for i in range(40)) + ")**10",
        "a" * 30_000,
    ],
)
def test_everything_outside_the_list_is_refused(term: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"formula|must"):
        open_stream(_frame(), formula=f"y ~ {term}")
    assert not list(tmp_path.iterdir())


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="yabc01.~+-*:()[], '`^<=>/{}|logpysIC", max_size=40))
def test_any_text_is_a_formula_or_an_input_error(text: str) -> None:
    names: list[str] = []
    with contextlib.suppress(InputError):
        names = list(open_stream(_frame(), formula=text, target="y").feature_names)
    assert all(isinstance(name, str) and name for name in names)


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("y ~ a +", "ends too early"),
        ("y ~ nothing", "column 'nothing': there is no such column"),
        ("y ~ log(nothing)", "column 'nothing': there is no such column"),
        ("nothing ~ a", "column 'nothing': there is no such column"),
        ("y, a ~ c", "one target"),
        ("~ a", "have a left side and ~"),
        ("y ~ log(b)", r"column 'b' is not numeric, so log\(b\) cannot be computed"),
        ("y ~ cosh(a)", "'cosh' is not in the list of transforms; known: log"),
    ],
)
def test_a_formula_that_cannot_work_says_why(formula: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        open_stream(_frame(), formula=formula)


@pytest.mark.parametrize(
    "formula", ["y ~ scale(a) + poly(c, 3) + bs(c, df=4, lower=1, upper=3) + b*C(k) + offset(a)", "log(y) ~ . + g:a"]
)
def test_a_design_goes_through_its_state(formula: str) -> None:
    frame = _frame()
    stream = open_stream(frame, formula=formula, chunk_rows=10, buffer_rows=5)
    first = next(iter(stream))
    resumed = open_stream(frame, formula=formula, state=json.loads(json.dumps(stream.to_state())))
    rest = list(resumed)
    whole = list(open_stream(frame, formula=formula, chunk_rows=10, buffer_rows=5))
    assert first.X.tobytes() == whole[0].X.tobytes()
    assert [c.X.tobytes() for c in rest] == [c.X.tobytes() for c in whole[1:]]


def test_a_formula_without_a_left_side_takes_the_target() -> None:
    X, y = _all(open_stream(_frame(), formula="~ a", target="y"))
    assert (X[:, 0].tolist(), y.tolist()) == (_frame()["a"].tolist(), _frame()["y"].tolist())


def _labels(labels: list[Any], **options: Any) -> tuple[list[float], Any]:
    frame = pd.DataFrame({"a": np.arange(float(len(labels))), "y": labels})
    stream = open_stream(frame, target="y", labels="binary", **options)
    return _all(stream)[1].tolist(), stream.classes


@pytest.mark.parametrize("chunk_rows", [1, 2, 10])
@pytest.mark.parametrize(
    ("labels", "codes", "classes"),
    [
        ([True, False, True], [1, 0, 1], (False, True)),
        ([1, 0, 1], [1, 0, 1], (0, 1)),
        ([1, 1, -1], [1, 1, 0], (-1, 1)),
        ([1.0, 1.0, 1.0], [1, 1, 1], None),
        (["yes", "no", "yes"], [1, 0, 1], ("no", "yes")),
        (["True", "False", "True"], [1, 0, 1], (0, 1)),
        (["0", "1", "1"], [0, 1, 1], (0, 1)),
        (["no", "no", "no"], [0, 0, 0], None),
    ],
)
def test_two_class_labels(labels: list[Any], codes: list[int], classes: Any, chunk_rows: int) -> None:
    assert _labels(labels, chunk_rows=chunk_rows) == (codes, classes)


@pytest.mark.parametrize("chunk_rows", [1, 2, 10])
def test_a_string_seen_alone_in_the_first_buffer_is_class_zero(chunk_rows: int) -> None:
    labels = ["yes", "yes", "no", "yes", "no"]
    assert _labels(labels, buffer_rows=2, chunk_rows=chunk_rows) == ([0, 0, 1, 0, 1], ("yes", "no"))
    assert _labels(labels, buffer_rows=3, chunk_rows=chunk_rows) == ([1, 1, 0, 1, 0], ("no", "yes"))
    given_classes = _labels(labels, buffer_rows=2, chunk_rows=chunk_rows, classes=("no", "yes"))
    assert given_classes == ([1, 1, 0, 1, 0], ("no", "yes"))


def test_named_classes_may_be_any_two_numbers() -> None:
    assert _labels([2, 1, 2], classes=(1, 2)) == ([1, 0, 1], (1, 2))


@pytest.mark.parametrize(
    ("labels", "row"),
    [([0, 1, 2], 3), ([0, -1, 1], 2), ([1, 0.5, 0], 2), (["no", "yes", "maybe"], 3), ([3, 1, 0], 1)],
)
@pytest.mark.parametrize("chunk_rows", [1, 10])
def test_a_label_outside_its_set_is_named(labels: list[Any], row: int, chunk_rows: int) -> None:
    with pytest.raises(BadRow, match=f"row {row}, column 'y': the label {labels[row - 1]!r} ") as caught:
        _labels(labels, chunk_rows=chunk_rows)
    assert caught.value.reason == "label outside its set"


def test_a_computed_response_is_labelled_too() -> None:
    stream = open_stream(_frame(), formula="c > 2 ~ a", labels="binary")
    assert _all(stream)[1].tolist() == (_frame()["c"] > 2).astype(float).tolist()
    assert stream.columns == ("a", "c")
