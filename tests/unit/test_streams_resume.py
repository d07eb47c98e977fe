"""A stream stopped anywhere and opened again from its state goes on with the same chunks, to the bit."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfwidth.errors import InputError
from halfwidth.state.checkpoint import read_checkpoint, write_checkpoint
from halfwidth.streams import Chunk, open_stream
from halfwidth.streams.sources import source as sources

ROWS = 90
FORMULA = "y ~ b + C(k) + center(c) + bs(c, df=4)"


def _frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "y": rng.choice(["no", "yes"], ROWS),
            "b": np.resize(["u", "v", "w"], ROWS),
            "k": np.resize([1, 2, 3, 4], ROWS),
            "c": np.resize(rng.permutation(np.linspace(0, 1, 18)), ROWS),
            "w": rng.uniform(size=ROWS),
            "t": np.arange(ROWS) // 2,
        }
    )


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same rows in three files of each format, with a few bad cells."""
    frame = _frame().astype({"c": object})
    frame.loc[[4, 33, 34, 89], "c"] = None
    base = tmp_path_factory.mktemp("resume")
    parts = [frame[:30], frame[30:37], frame[37:]]
    for format in ("csv", "parquet", "ndjson", "arrow"):
        (base / format).mkdir()
    for number, part in enumerate(parts):
        typed = part.astype({"c": float})
        part.to_csv(base / "csv" / f"{number}.csv", index=False)
        typed.to_parquet(base / "parquet" / f"{number}.parquet", row_group_size=8)
        typed.to_feather(base / "arrow" / f"{number}.feather")
        part.to_json(base / "ndjson" / f"{number}.ndjson", orient="records", lines=True, double_precision=15)
    return {path.name: path for path in base.iterdir()}


def _bits(chunks: list[Chunk]) -> list[Any]:
    arrays = [(c.X, c.y, c.weight) for c in chunks]
    where = [(c.first_row, c.rows_read) for c in chunks]
    return [[array.tobytes() for array in row if array is not None] for row in arrays] + where


OPTIONS: list[dict[str, Any]] = [
    {"formula": FORMULA, "labels": "binary", "weight": "w", "time": "t"},
    {"target": "y", "features": ["c", "k"], "labels": "binary", "weight": "w"},
    {"target": "y", "labels": "binary"},
]


@pytest.mark.parametrize("format", ["csv", "parquet", "ndjson", "arrow"])
@pytest.mark.parametrize("options", OPTIONS)
@settings(max_examples=5)
@given(stop=st.integers(1, 20), chunk_rows=st.integers(5, 40))
def test_resumed_chunks_are_the_same_bits(
    folders: dict[str, Path], format: str, options: dict[str, Any], stop: int, chunk_rows: int
) -> None:
    def opened(**more: Any) -> Any:
        return open_stream(folders[format], buffer_rows=20, chunk_rows=chunk_rows, bad_rows="skip", **options, **more)

    whole = list(stream := opened())
    stop = min(stop, len(whole))
    first = opened()
    chunks = iter(first)
    before = [next(chunks) for _ in range(stop)]
    path = folders[format].parent / "run.ckpt"
    write_checkpoint(path, first.to_state())
    after = list(resumed := open_stream(folders[format], state=read_checkpoint(path), formula=options.get("formula")))
    assert _bits(before + after) == _bits(whole)
    assert (resumed.position, resumed.skipped, resumed.classes) == (ROWS, stream.skipped, stream.classes)
    assert resumed.feature_names == stream.feature_names
    assert json.loads(json.dumps(resumed.skipped)) == {"missing value": 4}


@settings(max_examples=20)
@given(row=st.integers(0, ROWS + 5), chunk_rows=st.integers(1, 40))
def test_skip_to_starts_after_so_many_rows(folders: dict[str, Path], row: int, chunk_rows: int) -> None:
    for format in ("csv", "parquet"):
        stream = open_stream(folders[format], target="w", features=["k"], chunk_rows=chunk_rows)
        stream.skip_to(row)
        rows = [value for chunk in stream for value in chunk.y.tolist()]
        assert rows == _frame()["w"].tolist()[row:]
        stream.skip_to(0)
        assert sum(map(len, stream)) == ROWS


def test_skipping_parquet_opens_only_what_it_needs(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    stream = open_stream(folders["parquet"], target="w", features=["k"])
    opened: list[str] = []
    read_blocks: Callable[..., Any] = sources.read_blocks
    monkeypatch.setattr(
        sources, "read_blocks", lambda file, *rest: opened.append(file.name) or read_blocks(file, *rest)
    )
    groups: list[int] = []
    iter_batches = pq.ParquetFile.iter_batches

    def noting(self: Any, size: int, row_groups: list[int], **options: Any) -> Any:
        groups.extend(row_groups)
        return iter_batches(self, size, row_groups=row_groups, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", noting)
    stream.skip_to(37 + 20)
    assert sum(map(len, stream)) == ROWS - 57
    assert [Path(name).name for name in opened] == ["2.parquet"]
    assert groups == [2, 3, 4, 5, 6]


def test_a_one_time_source_resumes_by_reading_past_what_was_used(monkeypatch: pytest.MonkeyPatch) -> None:
    text = ("a,y\n" + "".join(f"{i},{i}\n" for i in range(50))).encode()

    def stdin() -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))

    stdin()
    stream = open_stream("-", target="y", chunk_rows=20)
    next(iter(stream))
    stdin()
    assert [c.y.tolist() for c in open_stream("-", state=stream.to_state(), resume_at=1)] == [
        [float(i) for i in range(20, 40)],
        [float(i) for i in range(40, 50)],
    ]


def test_after_a_bad_row_is_repaired_the_stream_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,y\n1,1\n2,2\nx,3\n4,4\n")
    stream = open_stream(path, target="y")
    chunks = iter(stream)
    assert next(chunks).y.tolist() == [1.0, 2.0]
    with pytest.raises(InputError, match="row 3"):
        next(chunks)
    path.write_text("a,y\n1,1\n2,2\n3,3\n4,4\n")
    (rest,) = open_stream(path, state=stream.to_state())
    assert (rest.y.tolist(), rest.first_row, rest.rows_read) == ([3.0, 4.0], 2, 4)


def test_bad_rows_may_be_skipped_after_all_but_meanings_stay(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b,y\n1,1,1\nx,1,3\n4,4,4\n")
    stream = open_stream(tmp_path, target="y")
    next(iter(stream))
    resumed = open_stream(tmp_path, state=stream.to_state(), bad_rows="skip")
    assert [chunk.y.tolist() for chunk in resumed] == [[4.0]]
    for changed in ({"target": "b"}, {"features": ["b"]}, {"labels": "binary"}, {"chunk_rows": 3}):
        with pytest.raises(InputError, match=f"{next(iter(changed))} must stay"):
            open_stream(tmp_path, state=stream.to_state(), **changed)
    with pytest.raises(InputError, match=r"state\.kind must be 'stream'"):
        open_stream(tmp_path, state={"kind": "model"})


def test_time_order_is_checked_across_a_resumption() -> None:
    frame = pd.DataFrame({"a": range(4), "y": range(4), "t": [1, 5, 3, 6]})
    stream = open_stream(frame, target="y", time="t", chunk_rows=2)
    next(iter(stream))
    with pytest.raises(InputError, match="row 3, column 't'"):
        list(open_stream(frame, state=stream.to_state()))


def test_a_lone_class_stays_zero_across_a_resumption() -> None:
    frame = pd.DataFrame({"a": range(4), "y": ["yes", "yes", "no", "yes"]})
    stream = open_stream(frame, target="y", labels="binary", chunk_rows=2, buffer_rows=2)
    assert next(iter(stream)).y.tolist() == [0, 0]
    resumed = open_stream(frame, state=stream.to_state())
    assert [chunk.y.tolist() for chunk in resumed] == [[1, 0]]
    assert resumed.classes == ("yes", "no")


def test_a_state_holds_plain_data_only(tmp_path: Path) -> None:
    stream = open_stream(_frame(), formula=FORMULA, labels="binary", group="b")
    write_checkpoint(tmp_path / "x", stream.to_state())
    inputs = read_checkpoint(tmp_path / "x")["plan"]["design"]["inputs"]
    assert inputs["constants"]["center(c)"]["mean"] == pytest.approx([_frame()["c"].mean()])
    assert inputs["levels"]["b"]["names"] == ["u", "v", "w"]
