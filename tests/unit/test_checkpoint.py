"""A checkpoint gives back exactly what was written, or says clearly that it cannot."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from halfwidth.errors import BrokenCheckpoint, InputError
from halfwidth.state.checkpoint import read_checkpoint, write_checkpoint
from halfwidth.state.packing import pack, unpack

_arrays = hnp.arrays(
    dtype=st.sampled_from(["f8", "f4", "i8", "u1", "?", "c16", "U3", ">f8"]),
    shape=hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)
_leaves = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), _arrays, st.floats().map(np.float64)
)
_states = st.dictionaries(
    st.text(),
    st.recursive(
        _leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3), st.tuples(inner, inner)
        ),
        max_leaves=8,
    ),
    max_size=4,
)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        native = a.astype(a.dtype.newbyteorder("="))
        return native.dtype == b.dtype and a.shape == b.shape and native.tobytes() == b.tobytes()
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return struct.pack("<d", a) == struct.pack("<d", b)
    if isinstance(a, dict):
        return list(a) == list(b) and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b)


@settings(max_examples=150, deadline=None)
@given(_states)
def test_round_trip_keeps_every_bit(state: dict[str, Any]) -> None:
    assert _same(state, unpack(memoryview(pack(state))))


def test_file_round_trip_replaces_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    write_checkpoint(path, {"n": 1})
    write_checkpoint(path, {"n": 2, "theta": np.array([0.1, np.nan, -0.0])})
    state = read_checkpoint(path)
    assert state["n"] == 2
    assert state["theta"].tobytes() == np.array([0.1, np.nan, -0.0]).tobytes()
    assert state["theta"].flags.writeable
    assert [file.name for file in tmp_path.iterdir()] == ["run.ckpt"]


def test_a_failed_write_keeps_the_old_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.ckpt"
    write_checkpoint(path, {"n": 1})

    def full_disk(_: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(InputError, match=r"run\.ckpt.*no space left"):
        write_checkpoint(path, {"n": 2})
    assert read_checkpoint(path) == {"n": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["run.ckpt"]


def test_every_truncation_added_byte_and_altered_byte_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "run"
    write_checkpoint(path, {"theta": np.arange(3.0), "name": "x"})
    content = path.read_bytes()
    damaged = [content[:cut] for cut in range(len(content))] + [content + b"\0", content + content]
    for place in range(len(content)):
        altered = bytearray(content)
        altered[place] ^= 1
        damaged.append(bytes(altered))
    for wrong in damaged:
        path.write_bytes(wrong)
        with pytest.raises(BrokenCheckpoint, match="run'"):
            read_checkpoint(path)


def test_the_one_before_is_offered_when_the_newest_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    for n in (1, 2):
        write_checkpoint(path, {"n": n}, keep_previous=True)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(BrokenCheckpoint, match=r"run\.ckpt\.previous', is whole: rename it"):
        read_checkpoint(path)
    (tmp_path / "run.ckpt.previous").replace(path)
    assert read_checkpoint(path) == {"n": 1}


def test_a_file_of_the_first_release_is_refused_with_advice(tmp_path: Path) -> None:
    path = tmp_path / "old"
    body = pack({"kind": "model", "version": 1})
    path.write_bytes(b"halfwidth-ck" + (1).to_bytes(4, "little") + hashlib.sha256(body).digest() + body)
    with pytest.raises(BrokenCheckpoint, match=r"halfwidth 0\.1.*start it again"):
        read_checkpoint(path)


@pytest.mark.parametrize(
    ("state", "place"),
    [
        ({"a": {"b": object()}}, r"state\['a'\]\['b'\]"),
        ({"a": [1, {2: 3}]}, r"state\['a'\]\[1\]"),
        ({"a": np.array([None])}, r"state\['a'\]"),
    ],
)
def test_what_is_not_plain_data_is_refused_by_name(tmp_path: Path, state: dict[str, Any], place: str) -> None:
    with pytest.raises(InputError, match=place):
        write_checkpoint(tmp_path / "x", state)


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no file .*nothing\.ckpt"):
        read_checkpoint(tmp_path / "nothing.ckpt")


def test_a_checkpoint_never_replaces_another_kind_of_file(tmp_path):
    data = tmp_path / "data.csv"
    data.write_text("x,y\n1,2\n")
    with pytest.raises(InputError, match="exists and is not a checkpoint"):
        write_checkpoint(data, {"n": 1})
    assert data.read_text() == "x,y\n1,2\n"
