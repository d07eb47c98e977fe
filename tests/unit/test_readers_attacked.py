"""Files that are damaged, change while they are read, or were made to break a reader: our own error, with the place."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfwidth.errors import BadRow, InputError, NotEnoughData
from halfwidth.streams import open_stream, read_ahead
from halfwidth.streams.sources import byte_stream
from halfwidth.streams.sources.row_ends import MOST_FAULTS, Marks, scan_csv


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_stream, "BLOCK_BYTES", 1 << 12)
    monkeypatch.setattr(byte_stream, "LONGEST_ROW", 1 << 14)
    monkeypatch.setattr(read_ahead, "MOST_BYTES", 1 << 12)


def _write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def _rows(source: Any, **options: Any) -> tuple[int, Any]:
    stream = open_stream(source, target="y", bad_rows="skip", **options)
    return sum(map(len, stream)), stream


def _error(source: Any, **options: Any) -> BadRow:
    with pytest.raises(BadRow) as caught:
        list(open_stream(source, target="y", **options))
    return caught.value


# Quotes ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [None, ["a"]])
def test_an_unclosed_quote_costs_one_row_not_the_rest_of_the_file(tmp_path: Path, columns: Any) -> None:
    text = b"a,note,y\n" + b"1,fine,2\n" * 100 + b'1,"open,2\n' + b"1,fine,2\n" * 2899
    path = _write(tmp_path / "x.csv", text)
    error = _error(path, features=columns)
    assert (error.row, error.reason) == (101, "broken row")
    assert "a quote opens here and never closes" in str(error)
    read, stream = _rows(path, features=["a"])
    assert (read, stream.position, stream.skipped) == (2999, 3000, {"broken row": 1})


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'1,"open,2\n', "never closes"),
        (b'1,"half"way,2\n', "in the middle of a field"),
        (b'"1""x,3,2\n', "never closes"),
    ],
)
def test_broken_quotes_are_found_across_blocks(tmp_path: Path, line: bytes, why: str) -> None:
    text = b"a,note,y\n" + b"1,fine,2\n" * 3000 + line + b"1,fine,2\n" * 5000
    path = _write(tmp_path / "x.csv", text)
    assert why in str(_error(path))
    read, stream = _rows(path, features=["a"])
    assert (read, stream.position) == (8000, 8001)


def test_a_quote_that_closes_rows_later_swallows_nothing(tmp_path: Path) -> None:
    text = b"a,note,y\n" + b'1,"open,2\n' + b"1,fine,2\n" * 50 + b'1,",",2\n' + b"1,fine,2\n" * 50
    read, stream = _rows(_write(tmp_path / "x.csv", text), features=["a"])
    assert (read, stream.position, stream.skipped) == (101, 102, {"broken row": 1})


def test_quotes_that_mean_something_keep_their_meaning(tmp_path: Path) -> None:
    text = b'a,note,y\r\n1,"x, ""y""\r\nz, w, v",2\r\n3,5" pipe,4\r\n5,"",6\r\n'
    chunks = list(open_stream(_write(tmp_path / "x.csv", text), target="y", features=["a"]))
    assert chunks[0].X[:, 0].tolist() == [1.0, 3.0, 5.0]
    text = b"a,note,y\n1,'x,y',2\n"
    chunks = list(open_stream(_write(tmp_path / "z.csv", text), target="y", features=["a"], quote="'"))
    assert chunks[0].y.tolist() == [2.0]
    text = b'a,note,y\n1,"open,2\n3,"open,4\n'
    chunks = list(open_stream(_write(tmp_path / "w.csv", text), target="y", features=["a"], quote="none"))
    assert chunks[0].y.tolist() == [2.0, 4.0]


def test_carriage_returns_alone_end_rows_too(tmp_path: Path) -> None:
    chunks = list(open_stream(_write(tmp_path / "x.csv", b'a,y\r1,2\r"3",4\r5,6'), target="y"))
    assert chunks[0].X[:, 0].tolist() == [1.0, 3.0, 5.0]


def _steps(text: bytes, limit: int) -> int:
    """How many bytes the scanner looks at: the same code in Python, with an array that counts its reads."""

    class Counting(np.ndarray):
        reads = 0

        def __getitem__(self, index: Any) -> Any:
            Counting.reads += 1
            return super().__getitem__(index)

    data, faults = np.frombuffer(text, dtype=np.uint8).view(Counting), np.empty((MOST_FAULTS, 3), dtype=np.int64)
    scan_csv.python(data, Marks(44, 34, 3), True, limit, faults)
    return Counting.reads


@pytest.mark.parametrize("line", [b'1,"a,2\n', b'"\n', b'""""x,\n', b'1,"",2\n', b"1,2,3\n", b'"""a,\n'])
def test_the_work_on_quotes_is_linear(line: bytes) -> None:
    once, twice = (_steps(b"1,2,3\n" + b'1,"open,2\n' + line * n, 1 << 24) for n in (400, 800))
    assert twice <= 2.1 * once
    assert once <= 12 * 400 * len(line) + 200


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet='ab1",\n\r', max_size=60), st.integers(8, 40))
def test_any_small_csv_ends_in_rows_or_in_our_error(text: str, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        results = []
        for size in (block, 1 << 20):
            patch.setattr(byte_stream, "BLOCK_BYTES", size)
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,y\n" + text.encode())))
            try:
                stream = open_stream("-", target="y", features=["a"], bad_rows="skip", format="csv")
                results.append((sum(map(len, stream)), stream.position, stream.skipped))
            except (BadRow, NotEnoughData, InputError) as error:
                results.append(type(error).__name__)
    assert results[0] == results[1]


# Text -----------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_blocks")
def test_text_that_is_not_utf8_is_named_by_row_and_column(tmp_path: Path) -> None:
    path = _write(tmp_path / "x.csv", b"a,y\n" + b"1,2\n" * 20_000 + b"\xe9,2\n" + b"1,2\n" * 20_000)
    error = _error(path)
    assert (error.row, error.reason) == (20_001, "broken row")
    assert "column 'a' holds bytes that are not UTF-8" in str(error)
    assert _rows(path)[0] == 40_000
    only_elsewhere = _write(tmp_path / "z.csv", b"a,n,y\n1,\xe9,2\n")
    assert _rows(only_elsewhere, features=["a"])[0] == 1
    header = _write(tmp_path / "h.csv", b"\xe9,y\n1,2\n")
    assert "header is not UTF-8" in str(_error(header))


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (b"a" * 131_073 + b",y", "more than 1,000 characters"),
        (b"a," * 200_000 + b"y", "more than 100,000 columns"),
        (b"a,y" * 600_000, "no end within a megabyte"),
        (b'a,"y', "a quote opens in its header"),
        (b"   ", "no header row"),
    ],
)
def test_absurd_headers_are_refused(tmp_path: Path, header: bytes, words: str) -> None:
    error = _error(_write(tmp_path / "x.csv", header + b"\n1,2\n"))
    assert (error.reason, error.file) == ("broken file", str(tmp_path / "x.csv"))
    assert words in str(error)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("format", ["csv", "ndjson"])
def test_a_row_without_an_end_is_refused_before_it_fills_the_memory(tmp_path: Path, format: str) -> None:
    line = b"1" * (1 << 16)
    good = b"a,y\n1,2\n" if format == "csv" else b'{"a": 1, "y": 2}\n'
    error = _error(_write(tmp_path / f"x.{format}", good + line))
    assert (error.row, error.reason) == (2, "broken file")
    assert "a row is longer than 16,384 bytes" in str(error)


def test_deep_json_is_a_broken_row(tmp_path: Path) -> None:
    deep = '{"a": ' + "[" * 200_000 + "]" * 200_000 + ', "y": 1}'
    path = _write(tmp_path / "x.ndjson", f'{{"a": 1, "y": 1}}\n{deep}\n{{"a": 2, "y": 2}}'.encode())
    error = _error(path)
    assert (error.row, error.reason) == (2, "broken row")
    assert "nested more than 64 deep" in str(error)
    assert _rows(path)[0] == 2


def test_json_with_endless_keys_is_refused_before_it_becomes_a_table(tmp_path: Path) -> None:
    lines = "".join(json.dumps({"y": 1, f"k{i}": 1}) + "\n" for i in range(30_000))
    error = _error(_write(tmp_path / "x.ndjson", lines.encode()))
    assert "too many different keys" in str(error)


@pytest.mark.parametrize("line", [b'{"a": "\xff", "y": 1}', b'{"a": "\\ud800", "y": 1}', b"[" * 10, b'{"a": 1'])
def test_broken_json_is_named_by_row(tmp_path: Path, line: bytes) -> None:
    path = _write(tmp_path / "x.ndjson", b'{"a": 1, "y": 1}\n' + line + b'\n{"a": 2, "y": 2}\n')
    error = _error(path)
    assert (error.row, error.reason) == (2, "broken row")
    assert _rows(path)[0] == 2


def test_a_json_array_without_its_end_is_no_whole_array(tmp_path: Path) -> None:
    rows = [{"a": i, "y": i, "t": "x,]\n"} for i in range(50)]
    text = json.dumps(rows, indent=1).encode()
    assert _rows(_write(tmp_path / "x.json", text))[0] == 50
    for cut in (1, 4):
        error = _error(_write(tmp_path / "cut.json", text[:-cut]))
        assert "the JSON array has no end" in str(error)


# Files that change ----------------------------------------------------------------------------------------------------


def _table(rows: int) -> Any:
    rng = np.random.default_rng(0)
    return pa.table({"a": rng.normal(size=rows), "t": [f"t{i}" for i in range(rows)], "y": rng.normal(size=rows)})


def _csv(path: Path, rows: int) -> None:
    path.write_text("a,t,y\n" + "".join(f"{i}.5,t,{i}\n" for i in range(rows)))


def _ndjson(path: Path, rows: int) -> None:
    path.write_text("".join(json.dumps({"a": i, "t": "t", "y": i}) + "\n" for i in range(rows)))


def _parquet(path: Path, rows: int) -> None:
    pq.write_table(_table(rows), path, row_group_size=1000, use_dictionary=False)


def _ipc(opened: Callable[..., Any]) -> Callable[[Path, int], None]:
    def write(path: Path, rows: int) -> None:
        table = _table(rows)
        with opened(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=1000)

    return write


WRITERS: dict[str, Callable[[Path, int], None]] = {
    "csv": _csv,
    "ndjson": _ndjson,
    "parquet": _parquet,
    "arrow": _ipc(pa.ipc.new_file),
    "arrows": _ipc(pa.ipc.new_stream),
}


def _partly_read(path: Path) -> tuple[int, Iterator[Any]]:
    chunks = iter(open_stream(path, target="y", features=["a"], chunk_rows=100, buffer_rows=100))
    return len(next(chunks)), chunks


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("format", WRITERS)
@pytest.mark.parametrize("change", ["truncate", "grow", "rewrite", "empty"])
def test_a_file_that_changes_while_it_is_read_never_ends_quietly(tmp_path: Path, format: str, change: str) -> None:
    path = tmp_path / f"x.{format}"
    WRITERS[format](path, 20_000)
    size = path.stat().st_size
    read, chunks = _partly_read(path)
    if change in ("truncate", "empty"):
        os.truncate(path, size // 2 if change == "truncate" else 0)
    elif change == "grow":
        with path.open("ab") as file:
            file.write(path.read_bytes()[-500:])
    else:
        with path.open("r+b") as file:
            file.seek(size - 100)
            file.write(b"1" * 50)
    later: list[Any] = []
    found: BadRow | None = None
    try:
        later.extend(chunks)
    except BadRow as error:
        found = error
    if found is None:  # a thread reads ahead, and blocks of Parquet are large: all had been read before the change
        assert format == "parquet"
        y = np.concatenate([chunk.y for chunk in later])
        np.testing.assert_array_equal(y, _table(20_000)["y"].to_numpy()[read:])
        return
    read += sum(map(len, later))
    assert found.file == str(path)
    assert found.row is not None
    assert read <= 20_000
    if format == "csv" and change == "grow":
        assert read == 20_000
        assert "it grew from" in str(found)


def test_a_file_that_is_replaced_between_two_readings_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    _csv(path, 100)
    stream = open_stream(path, target="y", features=["a"])
    _csv(tmp_path / "new.csv", 100)
    os.replace(tmp_path / "new.csv", path)
    with pytest.raises(BadRow, match="another file has taken its place"):
        list(stream)


@pytest.mark.parametrize("format", WRITERS)
def test_damaged_files_end_in_rows_or_in_our_error(tmp_path: Path, format: str) -> None:
    path = tmp_path / f"x.{format}"
    WRITERS[format](path, 60)
    good = path.read_bytes()
    rng = np.random.default_rng(1)
    for _ in range(150):
        data = bytearray(good[: rng.integers(1, len(good))] if rng.random() < 0.3 else good)
        for place in rng.integers(0, len(data), rng.integers(0, 4)):
            data[place] = rng.integers(0, 256)
        damaged = _write(tmp_path / f"damaged.{format}", bytes(data))
        try:
            stream = open_stream(damaged, formula="y ~ a + C(t)", bad_rows="skip")
            assert sum(map(len, stream)) <= 61
        except InputError as error:
            assert str(error)  # noqa: PT017


@pytest.mark.parametrize("format", ["csv", "ndjson", "parquet", "arrow", "arrows"])
def test_an_empty_file_says_so(tmp_path: Path, format: str) -> None:
    with pytest.raises((BadRow, NotEnoughData), match=f"x.{format}"):
        list(open_stream(_write(tmp_path / f"x.{format}", b""), target="y"))


def test_another_type_in_the_second_file_is_named(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1.0, 2.0], "y": [1.0, 2.0]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": ["3", "no"], "y": [1.0, 2.0]}), tmp_path / "2.parquet")
    error = _error(tmp_path)
    assert (Path(error.file).name, error.row, error.column, error.reason) == ("2.parquet", 2, "a", "not a number")


# Pipes ----------------------------------------------------------------------------------------------------------------


def test_closed_standard_input_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="standard input, which is closed"):
        open_stream("-", target="y")


def test_a_named_pipe_is_read_once_and_whole(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    code = f"open({str(pipe)!r}, 'w').write('a,y\\n' + '1,2\\n' * 50_000)"
    with subprocess.Popen([sys.executable, "-c", code]) as writer:
        stream = open_stream(pipe, target="y", format="csv")
        assert sum(map(len, stream)) == 50_000
        writer.wait()
    assert not stream.rereadable


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lambda b: pa.compress(b, "zstd", asbytes=True)])
def test_compressed_standard_input(compress: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    text = compress(b"a,y\n" + b"1,2\n" * 30_000)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert sum(map(len, open_stream("-", target="y"))) == 30_000
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text[:-20])))
    with pytest.raises(BadRow, match="cannot be read from this row on"):
        list(open_stream("-", target="y"))


@pytest.mark.parametrize("format", ["parquet", "arrow", "arrows", "ndjson"])
def test_other_formats_on_standard_input(tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    WRITERS[format](tmp_path / "x", 3000)
    content = (tmp_path / "x").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert sum(map(len, open_stream("-", target="y", features=["a"]))) == 3000
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content[:-2000])))
    with pytest.raises(BadRow, match="<stdin>"):
        list(open_stream("-", target="y", features=["a"]))
