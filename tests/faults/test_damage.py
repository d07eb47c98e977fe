"""Damaged files: every flipped bit, cut and added byte is found, whatever the file holds."""

from __future__ import annotations

import numpy as np
import pytest
from campaign import SEED, count
from state_table import frame

import halfwidth
from halfwidth.errors import BrokenCheckpoint
from halfwidth.state.checkpoint import read_checkpoint
from halfwidth.study import Spec, run_study
from halfwidth.study.store import Store

ALL = 10_000
FILES = ("checkpoint", "model", "study")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    model = halfwidth.fit(frame(), target="y", features=["a", "b"], checkpoint=folder / "checkpoint")
    model.save(folder / "model")
    spec = Spec("iid-linear", {"dim": 2}, steps=1_000, replicates=2, checkpoints=(1_000,))
    run_study(spec, jobs=1, store=Store(folder))
    span = min(Store(folder).place(spec).glob("*.span"))
    contents = {"checkpoint": folder / "checkpoint", "model": folder / "model", "study": span}
    return {name: path.read_bytes() for name, path in contents.items()}


def damaged(content, rng):
    """One of: a flipped bit, a changed run of bytes, a cut, bytes added at the end or within, two parts swapped."""
    data, at = bytearray(content), int(rng.integers(len(content)))
    kind = int(rng.integers(6))
    if kind == 0:
        data[at] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        data[at : at + 8] = rng.bytes(len(data[at : at + 8]))
    elif kind == 2:
        del data[at:]
    elif kind == 3:
        data += rng.bytes(int(rng.integers(1, 100)))
    elif kind == 4:
        data[at:at] = rng.bytes(int(rng.integers(1, 100)))
    else:
        data = data[at:] + data[:at]
    return bytes(data)


@pytest.mark.parametrize("name", FILES)
def test_every_damage_is_found(files, name, tmp_path):
    rng = np.random.default_rng(SEED)
    path = tmp_path / name
    path.write_bytes(files[name])
    read_checkpoint(path)  # the negative control: the whole file is read
    for _ in range(count(ALL // len(FILES))):
        content = damaged(files[name], rng)
        if content == files[name]:
            continue
        path.write_bytes(content)
        with pytest.raises(BrokenCheckpoint):
            read_checkpoint(path)
