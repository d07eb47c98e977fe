"""Ctrl-C in real processes: one line that says what is kept and how to go on, exit code 130, and the way on works."""

import os
import signal
import subprocess
import sys
import time
from functools import partial

import pytest


def start(tmp_path, arguments, stdin=None):
    """The command in a process group of its own, as a terminal gives it one."""
    command = [sys.executable, "-c", "from halfwidth.cli import main; main()", *map(str, arguments)]
    environment = os.environ | {"HALFWIDTH_CACHE": str(tmp_path / "cache"), "COLUMNS": "160"}
    usual = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # which background jobs of a shell ignore
    return subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, preexec_fn=usual,
    )  # fmt: skip


def interrupt_when(process, there):
    """Ctrl-C: the signal goes to the whole group once `there()` is true."""
    for _ in range(4_800):
        if there():
            break
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    else:
        pytest.fail("nothing was kept after 4,800 looks")
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=120)
    return out, err


def spans(tmp_path):
    return list((tmp_path / "cache").rglob("*.span"))


STUDY = "study swap-game --steps 100000 --replicates 400 --methods fixed-batches --jobs 2".split()
BATTERY = "battery --rows swap-game:rho=0.5 --methods fixed-batches --replicates 20000 --jobs 2".split()
REPRODUCE = "reproduce independent --jobs 2".split()


@pytest.mark.parametrize(
    ("arguments", "again"), [(STUDY, []), (BATTERY, []), (REPRODUCE, ["--resume"])], ids=lambda a: a[0] if a else ""
)
def test_studies_keep_what_is_finished_and_say_so(tmp_path, arguments, again):
    process = start(tmp_path, arguments)
    _, err = interrupt_when(process, lambda: spans(tmp_path))
    assert process.returncode == 130, err
    assert "Traceback" not in err
    (last,) = [line for line in err.splitlines() if line.startswith("interrupted; ")]
    assert last.startswith("interrupted; finished replicates are kept in ")
    assert last.endswith(f"the same command{' with --resume' if again else ''} goes on from there")
    assert str(tmp_path / "cache") in last
    kept = {path: path.stat().st_mtime_ns for path in spans(tmp_path)}
    if arguments is not STUDY:
        return
    process = start(tmp_path, arguments)
    interrupt_when(process, lambda: len(spans(tmp_path)) > len(kept))
    assert {path: path.stat().st_mtime_ns for path in kept} == kept  # nothing was computed again


def test_a_fit_without_a_checkpoint_says_that_nothing_was_kept(tmp_path):
    process = start(tmp_path, ["fit", "-", "--target", "y", "--every", 20_000], stdin=subprocess.PIPE)
    process.stdin.write("x,y\n" + "".join(f"{i % 7},{i % 11}\n" for i in range(600_000)))
    process.stdin.flush()
    process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert err.splitlines()[-1] == (
        "interrupted; nothing was kept: with --checkpoint FILE an interrupted run goes on with --resume"
    )
