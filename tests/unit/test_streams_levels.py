"""Levels: declared or seen, late ones, one for all unknown ones, too many, and text that only looks like levels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfwidth.errors import BadRow, InputError
from halfwidth.streams import Stream, open_stream


def _stacked(stream: Stream) -> Any:
    """All rows, with zeros in the columns that came later."""
    chunks = list(stream)
    wide = len(stream.feature_names)
    return np.vstack([np.pad(c.X, ((0, 0), (0, wide - c.X.shape[1]))) for c in chunks])


def _dummies(values: list[str], levels: list[str]) -> Any:
    return np.array([[float(value == level) for level in levels] for value in values])


DECLARED = {
    "pandas": lambda values, levels: pd.DataFrame({"b": pd.Categorical(values, categories=levels)}),
    "polars enum": lambda values, levels: pl.DataFrame({"b": pl.Series(values, dtype=pl.Enum(levels))}),
    "arrow": lambda values, levels: pa.table(
        {"b": pa.DictionaryArray.from_arrays([levels.index(v) for v in values], levels)}
    ),
}


@pytest.mark.parametrize("kind", DECLARED)
def test_the_first_declared_level_is_the_reference(kind: str) -> None:
    values = ["v", "u", "w", "v", "u"]
    table = DECLARED[kind](values, ["w", "never", "u", "v"])
    table = pa.table(table).append_column("y", pa.array([1.0] * 5))
    stream = open_stream(table, formula="y ~ b")
    assert stream.feature_names == ("b[T.u]", "b[T.v]")
    assert _stacked(stream).tolist() == _dummies(values, ["u", "v"]).tolist()


@pytest.mark.parametrize("kind", DECLARED)
@pytest.mark.parametrize("formula", ["y ~ b", "y ~ .", "y ~ C(b)"])
def test_declared_levels_that_look_like_numbers_are_levels(kind: str, formula: str, tmp_path: Path) -> None:
    levels = [*(str(i) for i in range(1, 12)), "001"]
    values = [*levels, *levels[::-1]]
    table = pa.table(DECLARED[kind](values, levels)).append_column("y", pa.array([1.0] * len(values)))
    sources: list[Any] = [table]
    if kind != "polars enum":  # its text is of a type that pyarrow does not write
        pq.write_table(table, tmp_path / "x.parquet")
        sources += [tmp_path / "x.parquet"]
    for source in sources:
        stream = open_stream(source, formula=formula)
        name = "C(b)" if "C(" in formula else "b"
        assert stream.feature_names == tuple(f"{name}[T.{level}]" for level in levels[1:])
        assert _stacked(stream).tolist() == _dummies(values, levels[1:]).tolist()


def test_declared_numbers_are_no_features() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": pd.Categorical([1, 2, 1]), "y": [1.0, 2.0, 3.0]})
    assert open_stream(frame, formula="y ~ b").feature_names == ("b[T.2]",)
    stream = open_stream(frame, target="y")
    assert (stream.feature_names, stream.left_out) == (("a",), ["b (not numeric)"])
    with pytest.raises(InputError, match=r"column 'b' is a category by its type: enter it by a formula, as C\(b\)"):
        open_stream(frame, target="y", features=["a", "b"])


def test_text_by_type_that_reads_as_numbers_is_refused(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": ["1", "2", None], "y": [1.0, 2.0, 3.0]})
    pq.write_table(pa.table(frame), tmp_path / "x.parquet")
    rows = frame.to_dict("records")
    for table in (frame, frame.astype(object), pl.from_pandas(frame), tmp_path / "x.parquet", rows, iter(rows)):
        with pytest.raises(InputError, match=r"'b' is text that reads as numbers \('1'\): convert it .* C\(b\) in a"):
            open_stream(table, formula="y ~ b")
    for chosen in ({"formula": "y ~ ."}, {"target": "y"}):
        with pytest.raises(InputError, match="'b' is text that reads as numbers"):
            open_stream(frame, **chosen)
    assert open_stream(frame, formula="y ~ C(b)").feature_names == ("C(b)[T.2]",)
    assert open_stream(frame, target="y", features=["b"]).feature_names == ("b",)
    frame.to_csv(tmp_path / "x.csv", index=False)
    frame.to_json(tmp_path / "x.ndjson", orient="records", lines=True)
    for name in ("x.csv", "x.ndjson"):  # without types
        assert open_stream(tmp_path / name, formula="y ~ b").feature_names == ("b",)
    mixed = frame.assign(b=[1.0, 2.0, "n/a"])  # numbers, and one bad cell: told with its row
    with pytest.raises(BadRow, match="row 3, column 'b': 'n/a' is not a number"):
        list(open_stream(mixed, formula="y ~ b"))


def test_partition_keys_are_numbers(tmp_path: Path) -> None:
    for year in (2023, 2024):
        (tmp_path / f"year={year}").mkdir()
        pq.write_table(pa.table({"y": [1.0, 2.0]}), tmp_path / f"year={year}" / "x.parquet")
    assert open_stream(tmp_path, formula="y ~ year").feature_names == ("year",)


def test_otherwise_the_first_seen_is(tmp_path: Path) -> None:
    frame = pd.DataFrame({"b": ["v", "u", "w"], "y": [1.0, 2.0, 3.0]})
    assert open_stream(frame, formula="y ~ b").feature_names == ("b[T.u]", "b[T.w]")
    assert open_stream(pl.from_pandas(frame), formula="y ~ b").feature_names == ("b[T.u]", "b[T.w]")
    lexical = pl.from_pandas(frame).with_columns(pl.col("b").cast(pl.Categorical))
    assert open_stream(lexical, formula="y ~ b").feature_names == ("b[T.u]", "b[T.w]")
    pq.write_table(pa.table(frame.assign(b=pd.Categorical(frame["b"]))), tmp_path / "x.parquet")
    assert len(open_stream(tmp_path / "x.parquet", formula="y ~ b").feature_names) == 2
    assert open_stream(frame, formula="y ~ C(b, reference='w')").feature_names[0] == "C(b, reference='w')[T.v]"
    with pytest.raises(InputError, match="be a level of the first rows"):
        open_stream(frame, formula="y ~ C(b, reference='z')")


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.sampled_from("uvwxz"), min_size=1, max_size=40),
    others=st.lists(st.sampled_from("pqr"), min_size=40, max_size=40),
    chunk_rows=st.integers(1, 50),
    buffer_rows=st.integers(1, 50),
    formula=st.sampled_from(["y ~ b", "y ~ 0 + b", "y ~ b*g", "y ~ b:g + a:b"]),
)
def test_late_levels_get_columns_and_chunks_do_not_matter(
    values: list[str], others: list[str], chunk_rows: int, buffer_rows: int, formula: str
) -> None:
    frame = pd.DataFrame({"b": values, "g": others[: len(values)], "y": 1.0})
    frame["a"] = np.arange(len(values)) + 1.0
    stream = open_stream(frame, formula=formula, chunk_rows=chunk_rows, buffer_rows=buffer_rows)
    X = _stacked(stream)
    twin = open_stream(frame, formula=formula, chunk_rows=1, buffer_rows=buffer_rows)
    assert _stacked(twin).tolist() == X.tolist()
    assert stream.feature_names == twin.feature_names
    whole = open_stream(frame, formula=formula)
    known = _stacked(whole)
    if buffer_rows >= 1 and values:
        order = [stream.feature_names.index(name) for name in whole.feature_names]
        assert sorted(order) == list(range(X.shape[1]))
        assert known.tolist() == X[:, order].tolist()
    assert X.any(axis=0).all()


def test_a_late_level_survives_a_resumption() -> None:
    frame = pd.DataFrame({"b": ["u"] * 10 + ["v"] * 10 + ["w"] * 10, "y": 1.0})
    options: dict[str, Any] = {"formula": "y ~ b", "buffer_rows": 5, "chunk_rows": 4}
    stream = open_stream(frame, **options)
    for chunk in stream:
        if chunk.rows_read == 16:
            break
    assert stream.feature_names == ("b[T.v]",)
    resumed = open_stream(frame, formula="y ~ b", state=stream.to_state())
    rest = _stacked(resumed)
    assert resumed.feature_names == ("b[T.v]", "b[T.w]")
    assert rest.tolist() == _dummies(frame["b"].tolist()[16:], ["v", "w"]).tolist()


@pytest.mark.parametrize("chunk_rows", [1, 4, 64])
def test_unknown_levels_may_be_one_level_or_an_error(chunk_rows: int) -> None:
    values = ["u", "v", "u", "x", "other", "v", "z"]
    frame = pd.DataFrame({"b": values, "y": 1.0})
    options: dict[str, Any] = {"formula": "y ~ b", "buffer_rows": 3, "chunk_rows": chunk_rows}
    stream = open_stream(frame, unknown_level="other", **options)
    X = _stacked(stream)
    assert stream.feature_names == ("b[T.v]", "b[T.other]")
    assert X.tolist() == _dummies(["u", "v", "u", "other", "other", "v", "other"], ["v", "other"]).tolist()
    assert stream.other_levels == {"b": 3}
    with pytest.raises(BadRow) as caught:
        list(open_stream(frame, unknown_level="error", **options))
    assert (caught.value.row, caught.value.column, caught.value.reason) == (4, "b", "unknown level")
    skipping = open_stream(frame, unknown_level="error", bad_rows="skip", **options)
    assert len(_stacked(skipping)) == 4
    assert skipping.skipped == {"unknown level": 3}


def test_a_row_that_is_not_used_brings_no_level() -> None:
    frame = pd.DataFrame({"b": ["u", "v", "w", "z", "v"], "a": [1.0, 2.0, np.nan, -1.0, 3.0], "y": 1.0})
    stream = open_stream(frame, formula="y ~ b + log(a)", buffer_rows=2, chunk_rows=5, bad_rows="skip")
    assert len(_stacked(stream)) == 3
    assert stream.feature_names == ("b[T.v]", "log(a)")
    stopping = open_stream(frame, formula="y ~ b + a", buffer_rows=2, chunk_rows=5)
    with pytest.raises(BadRow):
        list(stopping)
    assert stopping.feature_names == ("b[T.v]", "a")


def test_numbers_as_levels_are_the_same_however_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("k,y\n1,1\n2.0,1\n1.0,1\n2,1\n2.5,1\n")
    stream = open_stream(tmp_path / "x.csv", formula="y ~ C(k)")
    assert stream.feature_names == ("C(k)[T.2]", "C(k)[T.2.5]")
    assert _stacked(stream)[:, 0].tolist() == [0.0, 1.0, 0.0, 1.0, 0.0]


def test_long_numbers_as_levels_stay_apart() -> None:
    table = {"k": [2**53, 2**53 + 1, 2**63 - 1], "y": [1.0, 2.0, 3.0]}
    assert len(open_stream(table, formula="y ~ C(k)").feature_names) == 2


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([f"id{i}" for i in range(5000)], "identifier explains nothing"),
        ([f"id{i}" for i in range(1200)] * 5, "join rare levels first"),
        ([f"{i},5" for i in range(5000)], "look like numbers .*decimal="),
        ([f"20{i % 90 + 10}-{i % 12 + 1}-{i % 28 + 1}" for i in range(5000)], "look like dates: enter a time"),
    ],
)
def test_too_many_levels_are_refused_with_the_likely_cause(values: list[str], words: str) -> None:
    with pytest.raises(InputError, match=f"column 'b' has .* levels .*at most 1,000 are possible; .*{words}"):
        open_stream({"b": values, "y": [1.0] * len(values)}, formula="y ~ b")


def test_too_many_levels_that_come_one_by_one() -> None:
    values = ["u"] * 3000 + [f"v{i}" for i in range(1500)]
    stream = open_stream({"b": values, "y": [1.0] * 4500}, formula="y ~ b", buffer_rows=100, chunk_rows=500)
    with pytest.raises(InputError, match="column 'b' has 1,001 levels so far, and at most 1,000"):
        list(stream)


@pytest.mark.parametrize(
    ("values", "words"),
    [([f"{i}.5 %" for i in range(30)], "numbers"), ([f"2024-01-{i + 1}" for i in range(28)], "dates")],
)
def test_text_that_looks_like_numbers_or_dates_is_refused(values: list[str], words: str) -> None:
    table = {"b": values, "y": [1.0] * len(values)}
    with pytest.raises(InputError, match=rf"column 'b' is text, and its \d+ levels look like {words}"):
        open_stream(table, formula="y ~ b")
    assert len(open_stream(table, formula="y ~ C(b)").feature_names) == len(values) - 1


@pytest.mark.parametrize("cells", [[[1], [2]], [b"\xff", b"a"]])
def test_a_column_that_is_neither_numbers_nor_text_is_no_category(cells: list[Any]) -> None:
    with pytest.raises(InputError, match=r"a column must hold numbers, text \(UTF-8\) or times"):
        open_stream(pa.table({"b": cells, "y": [1.0, 2.0]}), formula="y ~ C(b)")


def test_levels_encoded_by_the_reading_thread_are_those_of_the_rows(tmp_path: Path) -> None:
    cells = ["v", None, "u", "v", "w", "late", None, "u", "w", "late"] * 30
    table = pa.table({"b": cells, "m": [1, 2, 3] * 100, "y": np.arange(300.0), "x": [0.5, 1e60, 2.0] * 100})
    pq.write_table(table, tmp_path / "rows.parquet")
    for formula in ("y ~ b*C(m) + x", "y ~ 0 + C(m) + m + x:b", "y ~ x:x + b"):
        streams = [
            open_stream(source, formula=formula, bad_rows="skip", chunk_rows=64, buffer_rows=5)
            for source in (table, str(tmp_path / "rows.parquet"))
        ]
        np.testing.assert_array_equal(*map(_stacked, streams))
        assert streams[0].feature_names == streams[1].feature_names
        assert streams[0].skipped == streams[1].skipped
        assert streams[0].skipped["missing value"] == 60


def test_a_product_that_is_no_number_is_marked_and_its_factors_are_not() -> None:
    table = {"x": [1.0, 1e60, 2.0], "z": [1.0, 1e60, 3.0], "b": ["u", "v", "v"], "y": [1.0, 2.0, 3.0]}
    alone = open_stream(table, formula="y ~ x + z + b", bad_rows="skip")
    assert len(_stacked(alone)) == 3
    together = open_stream(table, formula="y ~ x:z + b", bad_rows="skip")
    np.testing.assert_array_equal(_stacked(together), [[0.0, 1.0], [1.0, 6.0]])
    assert together.skipped == {"formula not defined": 1}
