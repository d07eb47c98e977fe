"""The same rows from any source are the same matrix, in any chunks; files come in natural order."""

from __future__ import annotations

import gzip
import io
import json
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfwidth.errors import BadRow, InputError, MissingExtra, NotEnoughData
from halfwidth.streams import Chunk, Stream, open_stream
from halfwidth.streams.sources import byte_stream
from halfwidth.streams.sources.files import find_files, natural_key

Rows = list[tuple[float, int, bool, float]]
_finite = st.floats(-1e100, 1e100)
_rows = st.lists(st.tuples(_finite, st.integers(-(2**53), 2**53), st.booleans(), _finite), min_size=1, max_size=60)
_NAMES = ("a", "i", "flag", "y")


def _table(rows: Rows) -> Any:
    kinds = (pa.float64(), pa.int64(), pa.bool_(), pa.float64())
    columns = zip(*rows, strict=True)
    return pa.table([pa.array(c, k) for c, k in zip(columns, kinds, strict=True)], names=list(_NAMES))


def _csv(rows: Rows) -> bytes:
    return "".join(["a,i,flag,y\n", *(",".join(map(str, row)) + "\n" for row in rows)]).encode()


def _ndjson(rows: Rows) -> bytes:
    return "".join(json.dumps(dict(zip(_NAMES, row, strict=True))) + "\n" for row in rows).encode()


def _write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def _zstd(path: Path, content: bytes) -> Path:
    with pa.output_stream(path, compression="zstd") as out:
        out.write(content)
    return path


def _parquet(path: Path, rows: Rows) -> Path:
    pq.write_table(_table(rows), path, row_group_size=7)
    return path


def _ipc(path: Path, rows: Rows, opened: Callable[..., Any]) -> Path:
    with opened(str(path), _table(rows).schema) as writer:
        writer.write_table(_table(rows), max_chunksize=5)
    return path


def _pairs(rows: Rows) -> Any:
    frame = pd.DataFrame(rows, columns=list(_NAMES))
    return ((part[["a", "i", "flag"]], part["y"]) for part in (frame.iloc[:3], frame.iloc[3:]))


SOURCES: dict[str, Callable[[Path, Rows], Any]] = {
    "csv": lambda folder, rows: _write(folder / "x.csv", _csv(rows)),
    "csv.gz": lambda folder, rows: _write(folder / "x.csv.gz", gzip.compress(_csv(rows))),
    "csv.zst": lambda folder, rows: _zstd(folder / "x.csv.zst", _csv(rows)),
    "ndjson": lambda folder, rows: _write(folder / "x.ndjson", _ndjson(rows)),
    "parquet": lambda folder, rows: _parquet(folder / "x.parquet", rows),
    "ipc file": lambda folder, rows: _ipc(folder / "x.arrow", rows, pa.ipc.new_file),
    "ipc stream": lambda folder, rows: _ipc(folder / "y.arrows", rows, pa.ipc.new_stream),
    "pandas": lambda folder, rows: pd.DataFrame(rows, columns=list(_NAMES)),
    "polars": lambda folder, rows: pl.DataFrame(_table(rows)),
    "arrow": lambda folder, rows: _table(rows),
    "arrow reader": lambda folder, rows: _table(rows).to_reader(max_chunksize=4),
    "duckdb": lambda folder, rows: duckdb.from_arrow(_table(rows)),
    "pairs": lambda folder, rows: _pairs(rows),
    "chunks": lambda folder, rows: [_table(rows[:2]), *([_table(rows[2:])] if rows[2:] else [])],
}


def _expected(rows: Rows) -> tuple[Any, Any]:
    matrix = np.array([[float(cell) for cell in row] for row in rows])
    return matrix[:, :3], matrix[:, 3]


def _read(source: Any, **options: Any) -> tuple[Any, Any, Any]:
    stream = open_stream(source, target="y", **options)
    chunks = list(stream)
    return np.vstack([c.X for c in chunks]), np.concatenate([c.y for c in chunks]), stream


@pytest.mark.parametrize("kind", SOURCES)
@settings(max_examples=15, deadline=None)
@given(rows=_rows, chunk_rows=st.integers(1, 70), buffer_rows=st.integers(1, 70), block=st.integers(300, 900))
def test_same_rows_same_bits(kind: str, rows: Rows, chunk_rows: int, buffer_rows: int, block: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(byte_stream, "BLOCK_BYTES", block)
        source = SOURCES[kind](Path(folder), rows)
        X, y, stream = _read(source, chunk_rows=chunk_rows, buffer_rows=buffer_rows)
    expected_X, expected_y = _expected(rows)
    assert X.tobytes() == expected_X.tobytes()
    assert y.tobytes() == expected_y.tobytes()
    assert stream.feature_names == ("a", "i", "flag")
    assert stream.position == len(rows)


@settings(max_examples=25, deadline=None)
@given(rows=_rows, chunk_rows=st.integers(1, 70))
def test_chunks_end_at_multiples_of_their_size(rows: Rows, chunk_rows: int) -> None:
    chunks = list(open_stream(_table(rows), target="y", chunk_rows=chunk_rows))
    ends = [*range(chunk_rows, len(rows), chunk_rows), len(rows)]
    assert [c.rows_read for c in chunks] == ends
    assert [c.first_row for c in chunks] == [0, *ends[:-1]]
    assert all(c.X.dtype == np.float64 for c in chunks)


def rows_until_error(stream: Stream) -> tuple[list[Chunk], BadRow]:
    """The chunks that come before the error, and the error, which must come."""
    chunks, rows = [], iter(stream)
    with pytest.raises(BadRow) as caught:
        chunks.extend(rows)
    return chunks, caught.value


def _stdin(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.parametrize("format", [None, "csv", "ndjson", "arrow"])
def test_standard_input_is_read_once(format: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: Rows = [(0.5, 1, True, 2.0), (1.5, 2, False, 3.0)]
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, _table(rows).schema) as writer:
        writer.write_table(_table(rows))
    _stdin(monkeypatch, {"ndjson": _ndjson(rows), "arrow": sink.getvalue()}.get(format or "csv", _csv(rows)))
    X, _, stream = _read("-", format=format)
    assert X.tolist() == _expected(rows)[0].tolist()
    assert not stream.rereadable
    stream.skip_to(0)
    with pytest.raises(InputError, match="<stdin> can be read only once"):
        list(stream)


def test_an_integer_looking_start_does_not_decide_for_later_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_stream, "BLOCK_BYTES", 64)
    cells = ["1"] * 200 + ["2.5", "1e3", " 7 ", "+4", "true"]
    expected = [1.0] * 200 + [2.5, 1000.0, 7.0, 4.0, 1.0]
    _stdin(monkeypatch, ("a,y\n" + "".join(f"{cell},0\n" for cell in cells)).encode())
    assert _read("-")[0][:, 0].tolist() == expected
    lines = "".join(json.dumps({"a": value, "y": 0}) + "\n" for value in [1] * 200 + [2.5, "1e3", 7, "4", True])
    _stdin(monkeypatch, lines.encode())
    assert _read("-", format="ndjson")[0][:, 0].tolist() == expected


def test_quoted_newlines_and_other_delimiters(tmp_path: Path) -> None:
    quoted = _write(tmp_path / "q.csv", b'"a\nb",note,y\n1,"two\nlines",2\n3,"x,y",4\n')
    X, y, stream = _read(quoted)
    assert (X.tolist(), y.tolist(), stream.feature_names) == ([[1.0], [3.0]], [2.0, 4.0], ("a\nb",))
    assert _read(_write(tmp_path / "s.csv", b"\xef\xbb\xbfa;y\r\n1;2\r\n"))[2].feature_names == ("a",)


def test_files_of_a_folder_come_in_natural_order(tmp_path: Path) -> None:
    for number in (10, 9, 1, 2):
        _write(tmp_path / f"part-{number}.csv", f"a,y\n{number},0\n".encode())
    _write(tmp_path / "_SUCCESS", b"")
    _write(tmp_path / "notes.txt", b"")
    for source in (tmp_path, tmp_path / "*.csv"):
        X, _, stream = _read(source)
        assert X[:, 0].tolist() == [1, 2, 9, 10]
        assert [Path(file).name for file in stream.files] == [f"part-{n}.csv" for n in (1, 2, 9, 10)]
    given_order = [tmp_path / "part-9.csv", tmp_path / "part-2.csv"]
    assert _read(given_order)[0][:, 0].tolist() == [9, 2]


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=8, unique=True))
def test_natural_order_is_numeric_order(numbers: list[int]) -> None:
    names = [f"part-{number}.csv" for number in numbers]
    random.Random(0).shuffle(names)
    assert sorted(names, key=natural_key) == [f"part-{number}.csv" for number in sorted(numbers)]


def test_only_the_needed_columns_are_read(tmp_path: Path) -> None:
    table = pa.table({"a": [1.0], "unused": ["text"], "pm2.5": [3.0], "y": [2.0]})
    pq.write_table(table, tmp_path / "x.parquet")
    stream = open_stream(tmp_path / "x.parquet", target="y", features=["pm2.5"])
    assert stream.columns == ("pm2.5", "y")
    assert next(iter(stream)).X.tolist() == [[3.0]]


@pytest.mark.parametrize("text", [b"a,y\n", b"a,y", b"a,y\n\n \n"])
def test_a_source_without_rows_says_so(tmp_path: Path, text: bytes) -> None:
    path = _write(tmp_path / "x.csv", text)
    with pytest.raises(NotEnoughData, match=r"x\.csv"):
        open_stream(path, target="y")


@pytest.mark.parametrize(
    ("name", "rule"),
    [("no.csv", "exist"), ("no*.csv", "match at least one file"), ("x.docx", "format="), (".", "data file")],
)
def test_a_source_that_is_not_there_is_named(tmp_path: Path, name: str, rule: str) -> None:
    _write(tmp_path / "x.docx", b"")
    with pytest.raises(InputError, match=rule):
        find_files(tmp_path / name)


@pytest.mark.parametrize("source", [np.zeros((3, 2)), 3, None])
def test_a_source_of_another_kind_is_refused(source: Any) -> None:
    with pytest.raises(InputError, match="source must be a path"):
        open_stream(source, target="y")


def test_a_broken_file_gives_the_rows_before_it(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    good = pa.table({"a": rng.normal(size=5000), "y": rng.normal(size=5000)})
    pq.write_table(good, tmp_path / "1.parquet")
    content = (tmp_path / "1.parquet").read_bytes()
    _write(tmp_path / "2.parquet", content[: len(content) // 2])
    chunks, error = rows_until_error(open_stream(tmp_path, target="y"))
    assert sum(map(len, chunks)) == chunks[-1].rows_read == 5000
    assert "2.parquet, row 1: the file cannot be read" in str(error)
    assert (error.row, error.reason) == (1, "broken file")


def _gzip(path: Path, content: bytes) -> Path:
    return _write(path, gzip.compress(content, mtime=0))


@pytest.mark.parametrize("compress", [_gzip, _zstd])
@pytest.mark.parametrize("format", ["csv", "ndjson"])
@pytest.mark.parametrize("keep", [0.3, 0.75])
def test_a_truncated_file_gives_the_same_rows_every_time_up_to_the_last_four_kilobytes(
    tmp_path: Path, compress: Callable[[Path, bytes], Path], format: str, keep: float
) -> None:
    """Arrow's reader of CSV streams reads ahead: there the failure overtook good rows, how many was chance."""
    rng = np.random.default_rng(0)
    rows = [(i, float(value)) for i, value in enumerate(rng.normal(size=30_000))]
    lines = [f"{a},{y}\n" if format == "csv" else f'{{"a": {a}, "y": {y}}}\n' for a, y in rows]
    content = "".join((["a,y\n"] if format == "csv" else []) + lines).encode()
    path = compress(tmp_path / f"x.{format}.{'gz' if compress is _gzip else 'zst'}", content)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * keep)])
    outcomes = []
    for _ in range(4):
        chunks, error = rows_until_error(open_stream(path, target="y"))
        read = [pair for c in chunks for pair in zip(c.X[:, 0].tolist(), c.y.tolist(), strict=True)]
        assert read == rows[: len(read)]
        assert (error.row, error.reason) == (len(read) + 1, "broken file")
        outcomes.append(len(read))
    assert len(set(outcomes)) == 1
    pieces: list[bytes] = []
    with (
        pa.input_stream(path, compression="gzip" if compress is _gzip else "zstd") as stream,
        pytest.raises(OSError, match=r"[Tt]runcated"),
    ):
        pieces.extend(iter(lambda: stream.read(64), b""))
    whole = b"".join(pieces).count(b"\n") - (format == "csv")
    lost = sum(len(line) for line in lines[outcomes[0] : whole])
    assert lost <= 4096 + 100


def test_a_second_file_without_the_column_is_named(tmp_path: Path) -> None:
    _write(tmp_path / "1.csv", b"a,y\n1,2\n")
    _write(tmp_path / "2.csv", b"b,y\n1,2\n")
    chunks = iter(open_stream(tmp_path, target="y"))
    assert next(chunks).X.tolist() == [[1.0]]
    with pytest.raises(BadRow, match=r"2\.csv, column 'a': there is no such column; the columns are 'b', 'y'"):
        next(chunks)


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"pyarrow.*halfwidth\[streams\]"):
        open_stream({"a": [1.0], "y": [2.0]}, target="y")
