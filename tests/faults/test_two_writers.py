"""Two processes that run one study in one store, and two runs that share a checkpoint."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import halfwidth as hw
from halfwidth.study.store import Store

SCRIPT = """
import json, sys
from pathlib import Path
from halfwidth.study import Spec, run_study
from halfwidth.study.store import Store
folder, start = map(Path, sys.argv[1:])
methods = ("fixed-batches", "obm")
spec = Spec("iid-linear", {"dim": 2}, methods=methods, steps=1_000, replicates=40, checkpoints=(1_000,))
print("ready", flush=True)
sys.stdin.readline()
rows = run_study(spec, jobs=1, store=Store(folder))
print(json.dumps([[row["method"], row["coverage"], row["width"]] for row in rows]))
"""


def spec():
    methods = ("fixed-batches", "obm")
    return hw.Spec("iid-linear", {"dim": 2}, methods=methods, steps=1_000, replicates=40, checkpoints=(1_000,))


def test_two_processes_write_one_study(tmp_path):
    command = [sys.executable, "-c", SCRIPT, str(tmp_path), "x"]
    writers = [subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1, text=True) for _ in range(2)]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:  # both start at once
        writer.stdin.write("\n")
        writer.stdin.flush()
    found = []
    for writer in writers:
        out, err = writer.communicate()
        assert writer.returncode == 0, err
        found.append(json.loads(out))
    alone = [[row["method"], row["coverage"], row["width"]] for row in hw.run_study(spec(), jobs=1)]
    assert found == [alone, alone]
    kept = Store(tmp_path).load(spec())
    assert {name: sorted(notes) for name, notes in kept.items()} == {name: list(range(40)) for name in spec().methods}
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".tmp", ".old")]


def test_a_damaged_span_is_computed_again_and_replaced(tmp_path):
    hw.run_study(spec(), jobs=1, store=Store(tmp_path))
    spans = sorted(Store(tmp_path).place(spec()).glob("*.span"))
    whole = spans[0].read_bytes()
    spans[0].write_bytes(whole[:-9] + b"\0" + whole[-8:])
    hw.run_study(spec(), jobs=1, store=Store(tmp_path))
    assert spans[0].read_bytes() == whole


@pytest.mark.parametrize("what", ["spec.json", "times.json"])
def test_other_files_of_a_store_may_be_damaged(tmp_path, what):
    first = hw.run_study(spec(), jobs=1, store=Store(tmp_path))
    (Store(tmp_path).place(spec()) / what).write_bytes(b"\xff{[")
    again = hw.run_study(spec(), jobs=1, store=Store(tmp_path))
    assert [row["coverage"] for row in again] == [row["coverage"] for row in first]
