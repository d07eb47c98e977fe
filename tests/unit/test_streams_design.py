"""Formulas and labels: what the first buffer fixes, and what later rows may still bring."""

from __future__ import annotations

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
    "y ~ bs(c, df=4) + `d e` + Q('d e'):a",
    "log(y) ~ C(b, Sum) + I(a**2) + {c * 2}",
    "{y > 1.5} ~ a*c",
]


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("chunk_rows", [1, 7, 100])
def test_a_formula_gives_formulaics_matrix_without_the_intercept(formula: str, chunk_rows: int) -> None:
    frame = _frame()
    expected = formulaic.model_matrix(formula, frame)
    X, y = _all(stream := open_stream(frame, formula=formula, chunk_rows=chunk_rows))
    columns = [name for name in expected.rhs.columns if name != "Intercept"]
    assert list(stream.feature_names) == columns
    assert stream.has_intercept == ("Intercept" in expected.rhs.columns)
    np.testing.assert_allclose(X, expected.rhs[columns].to_numpy(float), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(y, expected.lhs.to_numpy(float)[:, -1], rtol=1e-12)


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
def test_transforms_are_fixed_on_the_first_buffer(buffer_rows: int, chunk_rows: int) -> None:
    frame = _frame()
    stream = open_stream(frame, formula="y ~ center(c)", buffer_rows=buffer_rows, chunk_rows=chunk_rows)
    expected = frame["c"] - frame["c"][:buffer_rows].mean()
    np.testing.assert_allclose(_all(stream)[0][:, 0], expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("column", "formula"), [("b", "y ~ b"), ("b", "y ~ a + C(b)"), ("k", "y ~ C(k)")])
@pytest.mark.parametrize("chunk_rows", [1, 4, 64])
def test_a_level_that_the_first_buffer_lacks(column: str, formula: str, chunk_rows: int) -> None:
    frame = _frame()
    new = np.flatnonzero(frame[column] == frame[column][2])
    frame = frame.drop(index=[2, 5, 8]).reset_index(drop=True)
    late = np.flatnonzero(frame[column] == _frame()[column][2])
    options: dict[str, Any] = {"formula": formula, "buffer_rows": 6, "chunk_rows": chunk_rows}
    with pytest.raises(BadRow) as caught:
        list(open_stream(frame, **options))
    assert (caught.value.row, caught.value.column, caught.value.reason) == (late[0] + 1, column, "unknown level")
    X, _ = _all(other := open_stream(frame, unknown_level="other", **options))
    assert not X[late, -1].any()
    assert other.other_levels == {column: len(late)} == {column: len(new) - 3}
    assert len(X) == len(frame)
    X, _ = _all(skipping := open_stream(frame, bad_rows="skip", **options))
    assert skipping.skipped == {"unknown level": len(late)}
    assert len(X) == len(frame) - len(late)


def test_a_row_outside_a_transforms_domain_is_named() -> None:
    frame = _frame()
    frame.loc[30, "c"] = -1.0
    with pytest.raises(BadRow, match=r"row 31, column 'log\(c\)': the formula gives no finite number"):
        list(open_stream(frame, formula="y ~ log(c)"))
    frame.loc[30, "c"] = 99.0
    with pytest.raises(BadRow, match=r"row 31: formula: .*bounds") as caught:
        list(open_stream(frame, formula="y ~ bs(c, df=4)", buffer_rows=20))
    assert caught.value.reason == "formula not defined"
    X, _ = _all(open_stream(frame, formula="y ~ bs(c, df=4)", buffer_rows=30, bad_rows="skip"))
    assert 30 <= len(X) < 40


@pytest.mark.parametrize("term", ["lag(a)", "{a - a.mean()}", "{a.rank()}", "np.cumsum(a)"])
def test_a_term_that_looks_at_other_rows_is_refused(term: str) -> None:
    with pytest.raises(InputError, match="each row from that row alone"):
        open_stream(_frame(), formula=f"y ~ {term}")


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("y ~ a +", "cannot be read"),
        ("y ~ nothing", "column 'nothing': there is no such column"),
        ("y ~ log(nothing)", "column 'nothing': there is no such column"),
        ("nothing ~ a", "column 'nothing': there is no such column"),
        ("y + a ~ c", "one target"),
        ("~ a", "give target"),
        ("y ~ log(b)", "fails on the first 40 rows"),
    ],
)
def test_a_formula_that_cannot_work_says_why(formula: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        open_stream(_frame(), formula=formula, unknown_level="error")


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
    stream = open_stream(_frame(), formula="{c > 2} ~ a", labels="binary")
    assert _all(stream)[1].tolist() == (_frame()["c"] > 2).astype(float).tolist()
    assert stream.columns == ("a", "c")
