"""A bad cell is named by file, row and column; the rows before it come out first; skipped rows are counted."""

from __future__ import annotations

import io
import json
import pickle
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfwidth.errors import BadRow, InputError
from halfwidth.streams import Chunk, Stream, open_stream
from halfwidth.streams.sources import byte_stream

BAD = {
    "": "missing value",
    "nan": "missing value",
    "abc": "not a number",
    "1,5x": "not a number",
    "-inf": "infinite value",
}


def rows_until_error(stream: Stream) -> tuple[list[Chunk], BadRow]:
    """The chunks that come before the error, and the error, which must come."""
    chunks, rows = [], iter(stream)
    with pytest.raises(BadRow) as caught:
        chunks.extend(rows)
    return chunks, caught.value


def _write(folder: str, format: str, files: list[list[dict[str, str]]]) -> None:
    for number, rows in enumerate(files):
        name = Path(folder) / f"part-{number}.{format}"
        if format == "csv":
            name.write_text("a,b,y\n" + "".join(",".join(f'"{v}"' for v in row.values()) + "\n" for row in rows))
        elif format == "ndjson":
            name.write_text("".join(json.dumps(row) + "\n" for row in rows))
        else:
            pq.write_table(pa.Table.from_pylist(rows), name, row_group_size=3)


_places = st.tuples(
    st.integers(0, 2), st.integers(0, 8), st.sampled_from(["a", "b", "y"]), st.sampled_from(sorted(BAD))
)


def _files() -> list[list[dict[str, str]]]:
    return [[{"a": f"{f}.{r}", "b": str(r), "y": str(f)} for r in range(9)] for f in range(3)]


@pytest.mark.parametrize("format", ["csv", "ndjson", "parquet"])
@settings(max_examples=25)
@given(place=_places, chunk_rows=st.integers(1, 30))
def test_a_bad_cell_is_named_exactly(format: str, place: tuple[int, int, str, str], chunk_rows: int) -> None:
    file, row, column, cell = place
    files = _files()
    files[file][row][column] = cell
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(byte_stream, "BLOCK_BYTES", 80)
        _write(folder, format, files)
        chunks, error = rows_until_error(open_stream(folder, target="y", features=["a", "b"], chunk_rows=chunk_rows))
    assert Path(error.file).name == f"part-{file}.{format}"
    assert (error.row, error.column, error.reason) == (row + 1, column, BAD[cell])
    assert f"part-{file}.{format}, row {row + 1}, column {column!r}: " in str(error)
    expected = [float(f["a"]) for f in [f for file_rows in _files() for f in file_rows][: file * 9 + row]]
    assert [v for chunk in chunks for v in chunk.X[:, 0].tolist()] == expected


@pytest.mark.parametrize("format", ["csv", "ndjson", "parquet"])
@settings(max_examples=25)
@given(places=st.lists(_places, max_size=12, unique_by=lambda p: p[:2]), chunk_rows=st.integers(1, 30))
def test_skipped_rows_are_counted_by_reason(format: str, places: list[Any], chunk_rows: int) -> None:
    files = _files()
    expected: dict[str, int] = {}
    for file, row, column, cell in places:
        files[file][row][column] = cell
        expected[BAD[cell]] = expected.get(BAD[cell], 0) + 1
    bad = {place[:2] for place in places}
    kept = [float(f"{f}.{r}") for f in range(3) for r in range(9) if (f, r) not in bad]
    with tempfile.TemporaryDirectory() as folder:
        _write(folder, format, files)
        stream = open_stream(folder, target="y", features=["a", "b"], chunk_rows=chunk_rows, bad_rows="skip")
        rows = [v for chunk in stream for v in chunk.X[:, 0].tolist()]
    assert rows == kept
    assert stream.skipped == expected
    assert stream.position == 27


def test_rows_that_cannot_be_parsed_keep_their_place(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,y\n1,2\n3\n4,5\n\n6,7,8\n9,x\n1\n")
    chunks, error = rows_until_error(open_stream(tmp_path, target="y"))
    assert [len(chunk) for chunk in chunks] == [1]
    assert (error.row, error.reason) == (2, "broken row")
    assert "it has 1 fields where the header has 2" in str(error)
    stream = open_stream(tmp_path, target="y", bad_rows="skip")
    assert [chunk.X[:, 0].tolist() for chunk in stream] == [[1.0, 4.0]]
    assert stream.skipped == {"broken row": 3, "not a number": 1}
    assert stream.skipped_for == {"y": 1}
    assert stream.position == 6


def test_broken_lines_of_json_keep_their_place(tmp_path: Path) -> None:
    lines = ['{"a": 1, "y": 1}', "{oops", "", "[1, 2]", '{"y": 2}', '{"a": Infinity, "y": 2}', '{"a": 7, "y": 3}']
    (tmp_path / "x.ndjson").write_text("\n".join(lines))
    error = rows_until_error(open_stream(tmp_path, target="y"))[1]
    assert (error.row, error.column, error.reason) == (2, None, "broken row")
    stream = open_stream(tmp_path, target="y", bad_rows="skip")
    assert [chunk.X[:, 0].tolist() for chunk in stream] == [[1.0, 7.0]]
    assert stream.skipped == {"broken row": 2, "missing value": 1, "infinite value": 1}


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_missing_values_of_tables(missing: Any) -> None:
    frame = pd.DataFrame({"a": [1, missing, 3], "y": [1.0, 2.0, 3.0]})
    error = rows_until_error(open_stream(frame, target="y", features=["a"]))[1]
    assert (error.file, error.row, error.column, error.reason) == ("<table>", 2, "a", "missing value")


def test_one_bad_cell_among_the_first_rows_does_not_drop_its_column() -> None:
    frame = pd.DataFrame({"a": ["1", "oops", "2"], "word": ["u", "v", "w"], "y": [1.0, 2.0, 3.0]})
    stream = open_stream(frame, target="y")
    assert stream.feature_names == ("a",)
    assert rows_until_error(stream)[1].row == 2


def test_weights_counts_offsets_and_groups_are_checked() -> None:
    frame = pd.DataFrame({"a": [1.0, 2, 3], "y": [0.0, 1, 2], "w": [1.0, 0, 2], "o": [0.5, 1, 2], "g": ["p", "p", "q"]})
    stream = open_stream(frame, target="y", weight="w", offset="o", group="g", labels="count")
    (chunk,) = stream
    assert stream.feature_names == ("a",)
    assert (chunk.weight.tolist(), chunk.offset.tolist(), chunk.group.tolist()) == (
        [1, 0, 2],
        [0.5, 1, 2],
        ["p", "p", "q"],
    )
    for column, options in (("y", {"labels": "count"}), ("w", {"weight": "w"})):
        bad = frame.assign(**{column: [1.0, -1, 2]})
        error = rows_until_error(open_stream(bad, target="y", features=["a"], **options))[1]
        assert (error.row, error.column, error.reason) == (2, column, "negative value")
    error = rows_until_error(open_stream(frame.assign(g=["p", None, "q"]), target="y", features=["a"], group="g"))[1]
    assert (error.row, error.column, error.reason) == (2, "g", "missing value")


def test_long_ids_of_groups_stay_apart() -> None:
    ids = np.array([2**60, 2**60 + 1])
    (chunk,) = open_stream(pa.table({"a": [1.0, 2.0], "y": [1.0, 2.0], "g": ids}), target="y", group="g")
    assert chunk.group.tolist() == ids.tolist()


TIMES = {
    "numbers": [1.0, 2.0, 2.0, 3.0, 1.5, 9.0],
    "dates": pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-02", "2020-01-03", "2020-01-01", "2020-02-01"]),
    "text": [f"2020-01-0{day}T00:00:00Z" for day in (1, 2, 2, 3, 1, 4)],
    "mixed text": ["2020-01-01", "2020-01-01T05:00:00+00:00", "2020-01-02", "2020-01-03", "2020-01-01", "2020-01-04"],
}


@pytest.mark.parametrize("kind", TIMES)
@pytest.mark.parametrize("chunk_rows", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("bad_rows", ["error", "skip"])
def test_a_row_out_of_time_order_is_named(kind: str, chunk_rows: int, bad_rows: str) -> None:
    frame = pd.DataFrame({"a": range(6), "y": range(6), "t": TIMES[kind]})
    stream = open_stream(frame, target="y", time="t", chunk_rows=chunk_rows, bad_rows=bad_rows)
    chunks, error = rows_until_error(stream)
    assert (error.row, error.column, error.reason) == (5, "t", "out of time order")
    assert sum(map(len, chunks)) == stream.position == 4
    assert stream.feature_names == ("a",)


def test_a_skipped_row_has_no_say_in_the_order() -> None:
    frame = pd.DataFrame({"a": [1.0, np.nan, 3.0], "y": [1.0, 2, 3], "t": [1.0, 99.0, 2.0]})
    stream = open_stream(frame, target="y", time="t", bad_rows="skip")
    assert [chunk.y.tolist() for chunk in stream] == [[1.0, 3.0]]


def test_the_error_survives_a_process_border() -> None:
    error = rows_until_error(open_stream({"a": [1.0, np.nan], "y": [1.0, 2.0]}, target="y"))[1]
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.row, copy.column) == (str(error), 2, "a")
    assert isinstance(copy, InputError)


def test_a_bad_row_of_standard_input_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,y\n1,2\n3,oops\n")))
    chunks, error = rows_until_error(open_stream("-", target="y"))
    assert [len(chunk) for chunk in chunks] == [1]
    assert str(error).startswith("<stdin>, row 2, column 'y': 'oops' is not a number")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": "z"}, "column 'z': there is no such column"),
        ({"target": "y", "features": ["b"]}, "column 'b': there is no such column"),
        ({"target": "y", "weight": "w"}, "column 'w': there is no such column"),
        ({"features": ["a"], "target": "a"}, "not hold the target 'a'"),
        ({"target": "y", "features": ["a", "a"]}, "each once"),
        ({"target": "y", "features": "a"}, "be a list"),
        ({"target": "y", "formula": "y ~ a", "features": ["a"]}, "not both"),
        ({"target": "y", "bad_rows": "ignore"}, "no bad_rows named 'ignore'"),
        ({"target": "y", "chunk_rows": 0}, "chunk_rows must be at least 1"),
        ({"target": "y", "format": "xml"}, "no format named 'xml'"),
        ({"target": "y", "classes": (0, 1)}, "labels be 'binary'"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        open_stream({"a": [1.0], "y": [2.0]}, **options)


def test_a_file_needs_a_target(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,y\n1,2\n")
    with pytest.raises(InputError, match=r"give target.*'a', 'y'"):
        open_stream(tmp_path)
