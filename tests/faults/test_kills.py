"""Runs killed or ended by a signal at random moments, and resumed: the same bits as a run that nobody touched."""

from __future__ import annotations

import contextlib
import json
import math
import multiprocessing
import os
import signal

import numpy as np
import pandas as pd
import pytest
from campaign import SEED, count

import halfwidth

ALL = 100
KILLS = 3
ROWS = 60_000
MOST_TURNS = 6_000

CASES = {
    "csv": {"target": "y", "features": ["a", "b"]},
    "parquet": {"target": "l", "features": ["a", "b"], "family": "logistic"},
    "csv-formula": {"formula": "y ~ a + C(k) + log(b)"},
    "parquet-groups": {"target": "y", "features": ["a"], "group": "g", "weight": "b"},
    "csv-skip": {"target": "y", "features": ["a", "h"], "bad_rows": "skip"},
    "parquet-sgd": {"target": "y", "features": ["a", "b"], "engine": "sgd"},
    "csv-multinomial": {"target": "k", "features": ["a", "b"], "family": "multinomial"},
    "csv-huber": {"target": "y", "features": ["a", "b"], "family": "huber"},
    "parquet-two-passes": {"target": "l", "features": ["a", "b"], "family": "logistic", "passes": 2},
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    rng = np.random.default_rng(8)
    table = pd.DataFrame({"a": rng.standard_normal(ROWS), "b": rng.uniform(1, 2, ROWS)})
    table["k"], table["g"] = np.resize(list("uvw"), ROWS), np.arange(ROWS) // 7
    table["h"] = np.where(rng.uniform(size=ROWS) < 0.01, np.nan, table["a"] ** 2)
    table["y"] = table["a"] + table["b"] + rng.standard_normal(ROWS)
    table["l"] = np.where(rng.uniform(size=ROWS) < 1 / (1 + np.exp(-table["a"])), "yes", "no")
    folder = tmp_path_factory.mktemp("rows")
    table.to_csv(folder / "rows.csv", index=False)
    table.to_parquet(folder / "rows.parquet", row_group_size=9_000)
    return {"csv": folder / "rows.csv", "parquet": folder / "rows.parquet"}


def learn(source, options, checkpoint, out):
    """A run with a checkpoint after every chunk; its report goes to a file, with every bit."""
    from halfwidth.errors import Interrupted
    from halfwidth.models import run

    run.CHECKPOINT_SECONDS = 0.0
    try:
        model = halfwidth.fit(source, **options, checkpoint=checkpoint, resume=True)
    except Interrupted as ended:
        os._exit(128 + ended.signal)
    result = model.inference()
    bits = [result.params.tolist(), result.bse.tolist(), result.n, model.report()["diagnostics"].get("skipped_rows")]
    with open(out, "w") as file:
        json.dump(bits, file)


@pytest.fixture(scope="module")
def processes():
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["halfwidth.models", "pandas", "pyarrow.parquet", "test_kills"])
    return context


def ran(processes, arguments, wait=None, number=None):
    """Start a run; end it by a signal after `wait` turns of 20 ms if it still goes on. Its exit code and its turns."""
    process = processes.Process(target=learn, args=arguments)
    process.start()
    turns = 0
    while process.is_alive() and turns < MOST_TURNS:
        if turns == wait and number is not None:
            with contextlib.suppress(ProcessLookupError):  # it may have ended since it was asked
                os.kill(process.pid, number)
        process.join(0.02)
        turns += 1
    return process.exitcode, turns


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["kill", "term"])
@pytest.mark.parametrize("case", list(CASES))
def test_an_ended_run_goes_on_to_the_same_bits(files, tmp_path, processes, case, number):
    rng = np.random.default_rng(SEED)
    source, options = str(files[case.split("-")[0]]), CASES[case]
    out = str(tmp_path / "out.json")
    code, usual = ran(processes, (source, options, str(tmp_path / "whole.ck"), out))
    assert code == 0
    expected = (tmp_path / "out.json").read_text()
    for attempt in range(math.ceil(count(ALL) / (KILLS * len(CASES)))):
        checkpoint = tmp_path / f"{attempt}.ck"
        os.unlink(out)
        ended, code = 0, None
        while code != 0:
            wait = int(rng.integers(0, usual + 1))
            code, _ = ran(processes, (source, options, str(checkpoint), out), wait, None if ended == KILLS else number)
            ended += 1
            assert code in (0, -number, 128 + number)
            if number == signal.SIGTERM and code == 128 + number:
                assert checkpoint.exists()
        with open(out) as file:
            assert file.read() == expected
    assert [name for name in os.listdir(tmp_path) if name.endswith(".tmp")] == []
