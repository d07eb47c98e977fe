"""Tables as people have them: CSV of every dialect, partitions, JSON arrays, rows, lazy tables, databases."""

from __future__ import annotations

import bz2
import io
import json
import sqlite3
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import halfwidth
from halfwidth.errors import BadRow, InputError
from halfwidth.streams import open_stream


def _write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def _read(source: Any, **options: Any) -> tuple[list[list[float]], list[float]]:
    chunks = list(open_stream(source, target="y", features=["a", "b"], **options))
    return np.vstack([c.X for c in chunks]).tolist(), np.concatenate([c.y for c in chunks]).tolist()


ROWS = ([[1.5, 2.0], [-1000.25, 4.0]], [3.0, 5.5])

DIALECTS: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "tab": ("x.csv", "a\tb\ty\n1.5\t2\t3\n-1000.25\t4\t5.5\n", {}, r"separator '\t'"),
    "tsv": ("x.tsv", "a\tb\ty\n1.5\t2\t3\n-1000.25\t4\t5.5\n", {}, ""),
    "bar": ("x.csv", "a|b|y\n1.5|2|3\n-1000.25|4|5.5\n", {}, "separator '|'"),
    "german": ("x.csv", "a;b;y\n1,5;2;3\n-1000,25;4;5,5\n", {}, "separator ';', decimal ','"),
    "german thousands": (
        "x.csv",
        "a;b;y\n1,5;2;3\n-1.000,25;4;5,5\n",
        {},
        "separator ';', decimal ',', thousands '.'",
    ),
    "quoted decimal commas": ("x.csv", 'a,b,y\n"1,5",2,3\n"-1000,25",4,"5,5"\n', {"decimal": ","}, ""),
    "american thousands": ("x.csv", 'a,b,y\n1.5,2,3\n"-1,000.25",4,5.5\n', {"thousands": ","}, ""),
    "swiss": ("x.csv", "a;b;y\n1.5;2;3\n-1'000.25;4;5.5\n", {"thousands": "'"}, "separator ';'"),
    "blank": ("x.csv", "a b y\n1.5 2 3\n-1000.25 4 5.5\n", {"separator": "space"}, ""),
    "names with commas": ("x.csv", '"x,1";a;b;y\n0;1.5;2;3\n0;-1000.25;4;5.5\n', {}, "separator ';'"),
}


@pytest.mark.parametrize("name", DIALECTS)
def test_dialects_are_found_and_stated(tmp_path: Path, name: str) -> None:
    file, text, options, said = DIALECTS[name]
    path = _write(tmp_path / file, text)
    assert _read(path, **options) == ROWS
    stream = open_stream(path, target="y", features=["a", "b"], **options)
    assert stream.dialect is not None
    assert stream.dialect.describe().replace("\t", "\\t") == said
    resumed = open_stream(path, state=stream.to_state())
    assert resumed.dialect == stream.dialect
    assert len(list(resumed)) == 1


def test_a_point_between_thousands_implies_a_decimal_comma(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a;b;y\n1.234,5;2;3\n2.000;4;5,5\n")
    assert _read(path, thousands=".")[0] == [[1234.5, 2.0], [2000.0, 4.0]]
    with pytest.raises(InputError, match="thousands must differ from the decimal mark"):
        _read(path, thousands=".", decimal=".")


def test_dates_with_the_day_first_are_those_of_iso() -> None:
    moments = pd.date_range("2024-01-01", periods=400, freq="7h")
    y = np.arange(400.0)
    found = []
    for text in (moments.strftime("%Y-%m-%d %H:%M"), moments.strftime("%d.%m.%Y %H:%M")):
        stream = open_stream(pd.DataFrame({"t": text, "y": y}), formula="y ~ harmonics(t, 'year')", time="t")
        found.append(np.vstack([chunk.X for chunk in stream]))
    np.testing.assert_array_equal(*found)
    with pytest.raises(
        InputError, match=r"t in 400 .'Jan 01, 2024' is no time like 2024-01-31 12:00 or 31.01.2024 12:00"
    ):
        open_stream(pd.DataFrame({"t": moments.strftime("%b %d, %Y"), "y": y}), formula="y ~ harmonics(t, 'year')")


def test_what_could_be_decimals_or_thousands_is_refused(tmp_path: Path) -> None:
    path = _write(tmp_path / "x.csv", "a;b;y\n1,234;2;3\n5,678;4;5\n")
    with pytest.raises(InputError, match=r"'1,234' may be a decimal number or one with thousands apart; give decimal"):
        _read(path)
    assert _read(path, decimal=",")[0] == [[1.234, 2.0], [5.678, 4.0]]
    assert _read(path, thousands=",")[0] == [[1234.0, 2.0], [5678.0, 4.0]]


def test_a_point_in_a_file_of_decimal_commas_is_not_guessed(tmp_path: Path) -> None:
    path = _write(tmp_path / "x.csv", "a;b;y\n1,5;2;3\n" + "2,5;2;3\n" * 2000 + "1.5;4;5\n")
    with pytest.raises(BadRow, match="row 2002, column 'a'"):
        _read(path)


def test_the_result_says_what_was_found(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = "".join(f"{a:.3f};{a + e:.3f}\n".replace(".", ",") for a, e in rng.normal(size=(200, 2)))
    model = halfwidth.fit(_write(tmp_path / "x.csv", "a;y\n" + lines), target="y")
    assert "separator ';', decimal ','" in str(model.inference().summary())


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "cp1252"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    path = _write(tmp_path / "x.csv", "ä,b,y\nü,2,3\n".encode(encoding))
    stream = open_stream(path, target="y", features=["b"], encoding=None if encoding == "utf-16" else encoding)
    assert next(iter(stream)).y.tolist() == [3.0]
    with pytest.raises(InputError, match="encoding must be a codec"):
        open_stream(path, target="y", encoding="klingon")


def test_bz2_files(tmp_path: Path) -> None:
    assert _read(_write(tmp_path / "x.csv.bz2", bz2.compress(b"a,b,y\n1.5,2,3\n-1000.25,4,5.5\n"))) == ROWS


def test_partition_keys_are_columns(tmp_path: Path) -> None:
    for b, shop in ((2, "x y"), (4, "z")):
        folder = tmp_path / f"b={b}" / f"shop={shop.replace(' ', '%20')}"
        folder.mkdir(parents=True)
        row = 0 if b == 2 else 1
        pq.write_table(pa.table({"a": [ROWS[0][row][0]], "y": [ROWS[1][row]]}), folder / "part.parquet")
    assert _read(tmp_path) == ROWS
    assert open_stream(tmp_path, formula="y ~ shop").feature_names == ("shop[T.z]",)
    assert _read(f"{tmp_path}/*/*/*.parquet") == ROWS
    single = open_stream(tmp_path / "b=2" / "shop=x%20y" / "part.parquet", target="y")
    assert single.feature_names == ("a",)


def test_rows_as_dictionaries() -> None:
    rows = [{"a": a, "b": b, "y": y} for (a, b), y in zip(*ROWS, strict=True)]
    assert _read(rows) == ROWS
    assert _read(iter(rows)) == ROWS
    mixed = [{"a": "1.5", "b": 2, "y": 3}, {"b": 4.0, "y": 5.5, "a": -1000.25}]
    assert _read(mixed) == ROWS
    with pytest.raises(BadRow, match="row 2, column 'a': the value is missing"):
        _read([rows[0], {"b": 1, "y": 2}])
    with pytest.raises(InputError, match="row 1 of <rows> must be a dictionary"):
        _read(iter([rows[0], 5]))


def test_json_arrays(tmp_path: Path) -> None:
    rows = [{"a": a, "b": b, "y": y} for (a, b), y in zip(*ROWS, strict=True)]
    for indent in (None, 2):
        assert _read(_write(tmp_path / "x.json", json.dumps(rows, indent=indent))) == ROWS


def _frame() -> pd.DataFrame:
    return pd.DataFrame({"a": [1.5, -1000.25], "b": [2, 4], "t": ["u", "v"], "y": [3.0, 5.5]})


def test_lazy_tables(tmp_path: Path) -> None:
    table = pl.from_pandas(_frame())
    assert _read(table.lazy()) == ROWS
    table.write_parquet(tmp_path / "x.parquet")
    stream = open_stream(pl.scan_parquet(tmp_path / "x.parquet"), target="y", features=["a", "b"])
    assert stream.rereadable
    assert len(list(stream)) == 1
    assert _read(pa.dataset.dataset(tmp_path / "x.parquet")) == ROWS
    views = pa.table({"t": pa.array(["u", "v"], pa.string_view()), "y": [3.0, 5.5]})
    assert open_stream(views, formula="y ~ t").feature_names == ("t[T.v]",)


QUERY = "select a, b, y from t order by b"


def _sqlite(path: Path) -> str:
    with sqlite3.connect(path) as connection:
        _frame()[::-1].to_sql("t", connection, index=False)
    return f"sqlite:///{path}"


def _duckdb(path: Path) -> str:
    frame = pa.Table.from_pandas(_frame()[::-1], preserve_index=False)
    with duckdb.connect(str(path)) as connection:
        connection.register("frame", frame)
        connection.execute("create table t as select * from frame")
    return f"duckdb:///{path}"


@pytest.mark.parametrize("make", [_sqlite, _duckdb])
def test_databases(tmp_path: Path, make: Any) -> None:
    address = make(tmp_path / "rows with #?.db")
    assert _read(address, query=QUERY) == ROWS
    assert open_stream(address, target="y", query=QUERY).rereadable
    assert not open_stream(address, target="y", query="select * from t").rereadable
    with pytest.raises(InputError, match="needs a query"):
        _read(address)
    with pytest.raises(InputError, match=r"the query 'select nothing from nowhere' failed: .*nowhere"):
        _read(address, query="select nothing from nowhere")
    with pytest.raises(InputError, match="failed"):
        _read(address, query="delete from t")
    assert _read(address, query=QUERY) == ROWS
    with pytest.raises(InputError, match="existing database file"):
        _read(address + "x", query=QUERY)
    assert not (tmp_path / "rows with #?.dbx").exists()


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"x": [1, 10**30], "y": [1.0, 2.0]}, "whole numbers in a column must fit 64 bits"),
        ([{"x": 10**30, "y": 1.0}], "whole numbers in a column must fit 64 bits"),
        (pd.DataFrame({"x": [1, 10**30], "y": [1.0, 2.0]}), "whole numbers in a column must fit 64 bits"),
        ({"x": [1.0, 2.0, 3.0], "y": [1.0, 2.0]}, r"must have columns of one length; got \{'x': 3, 'y': 2\}"),
    ],
)
def test_tables_that_arrow_does_not_take_are_refused_with_the_rule(table: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        open_stream(table, target="y")


def test_a_query_needs_a_database(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="query must come with a database address"):
        _read(_write(tmp_path / "x.csv", "a,b,y\n1,2,3\n"), query=QUERY)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"separator": "::"}, "separator must be one ASCII character"),
        ({"decimal": ";"}, "decimal must be"),
        ({"thousands": ".", "decimal": "."}, "thousands must differ"),
        ({"quote": ",", "separator": ","}, "quote must differ"),
        ({"delimiter": ","}, "no argument named 'delimiter'"),
        ({"format": "xls"}, "no format named 'xls'"),
    ],
)
def test_bad_reader_options_are_named(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        _read(_write(tmp_path / "x.csv", "a,b,y\n1,2,3\n"), **options)


def test_a_name_that_two_columns_share_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"a,b,y,c,c\n1,2,3,4,5\n"
    path = _write(tmp_path / "x.csv", text)
    assert _read(path)[1] == [3.0]
    for source in (path, "-"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        with pytest.raises(BadRow, match=r"column 'c': there is no such column.*two columns share"):
            open_stream(source, target="y", features=["a", "c"])
    frame = pd.DataFrame([[1.0, 2.0, 3.0, 4.0]], columns=["a", "b", "y", "a"])
    with pytest.raises(BadRow, match="column 'a': there is no such column"):
        _read(frame)


def test_a_decimal_comma_that_was_not_found_is_suggested(tmp_path: Path) -> None:
    path = _write(tmp_path / "x.csv", 'a,b,y\n1.5,2,3\n"2,5",2,3\n')
    with pytest.raises(BadRow, match=r"'2,5' is not a number \(a decimal comma\? decimal=',', --decimal ,"):
        _read(path)
