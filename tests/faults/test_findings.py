"""What half an hour of attack once found, each as a test; the others are in the files that the table names.

| finding | test |
|---|---|
| a formula in a checkpoint was evaluated on resume | here, `test_resuming.py` |
| a negative count in a watcher's state crashed | here |
| a checkpoint replaced a device or a symlink | `test_places.py` |
| a read-only disk, a full disk for --json, stdin closed | `test_places.py` |
| resuming on another, shorter or grown file | `test_resuming.py` |
| rows counted twice after an interrupted partial_fit, one model in two threads | `test_guard.py` |
| truncated Parquet or Arrow files, deep NDJSON, long headers | `tests/unit/test_readers_attacked.py` |
"""

from __future__ import annotations

import numpy as np
import pytest
from state_table import WATCHERS, frame

import halfwidth as hw
from halfwidth.errors import BadState, InputError
from halfwidth.state.checkpoint import read_checkpoint, write_checkpoint


def test_a_formula_in_a_checkpoint_is_never_run(tmp_path):
    checkpoint, mark = tmp_path / "run.ck", tmp_path / "mark"
    hw.fit(frame(), formula="y ~ a", checkpoint=checkpoint)
    state = read_checkpoint(checkpoint)
    evil = f"y ~ a + __import__('pathlib').Path({str(mark)!r}).touch()"
    plan = state["stream"]["plan"]
    plan["options"]["formula"] = evil
    if "formula" in plan["design"]:
        plan["design"]["formula"] = evil
    write_checkpoint(checkpoint, state)
    for given in ({}, {"formula": "y ~ a"}, {"formula": evil}):
        with pytest.raises(InputError):
            hw.fit(frame(), checkpoint=checkpoint, resume=True, **given)
    assert not mark.exists()


@pytest.mark.parametrize("count", range(4))
def test_a_negative_count_is_refused(count):
    row = WATCHERS["fixed"]
    state = row.make()
    state["counts"][count] = -(2**40)
    with pytest.raises(BadState, match=r"state\.counts must lie between 0"):
        row.load(state)


def test_a_count_that_does_not_follow_from_the_rows_is_refused():
    row = WATCHERS["obm"]
    state = row.make()
    with pytest.raises(BadState, match="follow from `n_seen`"):
        row.load(state | {"n_seen": state["n_seen"] * 2})
    assert np.isfinite(row.load(state).interval().half_width).all()
