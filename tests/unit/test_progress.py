"""How far a run is: percent from rows or bytes, the time left, and where the line goes."""

import gzip
import sqlite3
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import halfwidth as hw
from halfwidth.models import progress
from halfwidth.models.progress import Meter
from halfwidth.streams import open_stream


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame({"x": rng.standard_normal(60_000), "y": rng.standard_normal(60_000)})


def shares(source, **options):
    stream = open_stream(source, target="y", **options)
    return [stream.share for _ in stream]


def test_rows_of_parquet_and_tables_give_the_exact_share(frame, tmp_path):
    frame.to_parquet(tmp_path / "rows.parquet")
    for source in (tmp_path / "rows.parquet", frame, pl.from_pandas(frame), pa.table(frame), frame.to_dict("list")):
        found = shares(source)
        assert found[-1] == 1.0
        assert found[0] == pytest.approx(8_192 / 60_000)


@pytest.mark.parametrize("compressed", [False, True])
def test_bytes_of_csv_give_the_share(frame, tmp_path, compressed):
    path = tmp_path / ("rows.csv.gz" if compressed else "rows.csv")
    text = frame.to_csv(index=False).encode()
    path.write_bytes(gzip.compress(text) if compressed else text)
    found = shares(path)
    assert found == sorted(found)
    assert found[0] < 1.0
    assert found[-1] == 1.0


def test_several_files_count_together_and_some_sources_are_not_known(frame, tmp_path):
    for part in range(3):
        frame.iloc[part * 20_000 : (part + 1) * 20_000].to_csv(tmp_path / f"part-{part}.csv", index=False)
    found = shares(tmp_path)
    assert found == sorted(found)
    assert found[-1] == 1.0
    with sqlite3.connect(tmp_path / "rows.db") as connection:
        frame.head(100).to_sql("t", connection, index=False)
    assert shares(f"sqlite:///{tmp_path / 'rows.db'}", query="select * from t") == [None]
    assert shares(iter([frame.head(100)])) == [None]
    assert shares(pl.from_pandas(frame.head(100)).lazy()) == [None]


@pytest.fixture
def now(monkeypatch):
    """The clock of the module, a list of one time."""
    time = [0.0]
    monkeypatch.setattr(progress.clock, "perf_counter", lambda: time[0])
    return time


def test_the_line_tells_rows_speed_percent_and_the_time_left(now):
    stream = SimpleNamespace(position=0, share=0.0)
    meter = Meter(stream)
    stream.share, now[0] = 0.25, 2.0
    assert meter.line(1_000) == "1,000 rows, 500 rows/s, 25%, 6 s left"
    stream.share, now[0] = 1.0, 8.0
    assert meter.line(4_000) == "4,000 rows, 500 rows/s, 100%, 0 s left"
    stream.share, now[0] = 0.1, 9.0
    assert meter.line(400) == "pass 2: 400 rows, 400 rows/s, 10%, 9 s left"
    stream.share = None
    assert meter.line(800).count(",") == 1


def test_a_resumed_run_counts_its_own_time_only(now):
    stream = SimpleNamespace(position=3_000, share=0.5)
    meter = Meter(stream)
    stream.share, now[0] = 0.75, 5.0
    assert meter.line(4_500) == "4,500 rows, 300 rows/s, 75%, 5 s left"


def test_a_log_gets_lines_and_a_notebook_an_output_that_changes(frame, capsys, monkeypatch):
    hw.fit(frame, target="y", progress=True)
    assert capsys.readouterr().err.startswith("8,192 rows, ")
    lines = []
    handle = SimpleNamespace(update=lambda line: lines.append(repr(line)))
    monkeypatch.setattr(progress, "_notebook", lambda: lambda text, display_id: handle)
    hw.fit(frame, target="y", progress=True)
    assert lines[0].startswith("8,192 rows, ")
    assert "%" in lines[0]
    assert capsys.readouterr().err == ""


def test_a_function_of_ones_own_is_called_and_false_is_silent(frame, capsys):
    rows = []
    hw.fit(frame, target="y", progress=rows.append)
    assert rows[-1] == 60_000
    hw.fit(frame, target="y", progress=False)
    assert capsys.readouterr().err == ""


def test_outside_a_notebook_there_is_no_display(monkeypatch):
    assert progress._notebook() is None
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert progress._notebook() is None
