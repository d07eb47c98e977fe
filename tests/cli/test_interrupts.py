"""Ctrl-C in real processes: one line that says what is kept and how to go on, exit code 130, and the way on works."""

import os
import signal
import subprocess
import sys
import time
from functools import partial

import pytest

from halfwidth import Spec, run_study
from halfwidth.errors import Interrupted
from halfwidth.study import replicate
from halfwidth.study.store import Store


def start(tmp_path, arguments, stdin=None):
    """The command in a process group of its own, as a terminal gives it one."""
    command = [sys.executable, "-c", "from halfwidth.cli import main; main()", *map(str, arguments)]
    environment = os.environ | {"HALFWIDTH_CACHE": str(tmp_path / "cache"), "COLUMNS": "160"}
    usual = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # which background jobs of a shell ignore
    return subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, preexec_fn=usual,
    )  # fmt: skip


def interrupt_when(process, there, number=signal.SIGINT, after=0.0):
    """Ctrl-C: the signal goes to the whole group once `there()` is true."""
    for _ in range(24_000):
        if there():
            break
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    else:
        pytest.fail("nothing happened in 24,000 looks")
    time.sleep(after)
    if process.poll() is None:
        os.killpg(process.pid, number)
    out, err = process.communicate(timeout=120)
    return out, err


def spans(tmp_path):
    return list((tmp_path / "cache").rglob("*.span"))


STUDY = "study swap-game --steps 100000 --replicates 400 --methods fixed-batches".split()
BATTERY = "battery --rows swap-game:rho=0.5 --methods fixed-batches --replicates 20000".split()
REPRODUCE = "reproduce independent".split()


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(
    ("arguments", "again"), [(STUDY, []), (BATTERY, []), (REPRODUCE, ["--resume"])], ids=lambda a: a[0] if a else ""
)
def test_studies_keep_what_is_finished_and_say_so(tmp_path, arguments, again, jobs):
    process = start(tmp_path, [*arguments, "--jobs", jobs])
    _, err = interrupt_when(process, lambda: spans(tmp_path))
    assert process.returncode == 130, err
    assert "Traceback" not in err
    (last,) = [line for line in err.splitlines() if line.startswith("interrupted")]
    assert last.startswith("interrupted; finished replicates are kept in ")
    assert last.endswith(f"the same command{' with --resume' if again else ''} goes on from there")
    assert str(tmp_path / "cache") in last
    kept = {path: path.stat().st_mtime_ns for path in spans(tmp_path)}
    if arguments is not STUDY:
        return
    process = start(tmp_path, [*arguments, "--jobs", jobs])
    interrupt_when(process, lambda: len(spans(tmp_path)) > len(kept))
    assert {path: path.stat().st_mtime_ns for path in kept} == kept  # nothing was computed again


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_end_a_study_the_same_way(tmp_path, number, jobs):
    process = start(tmp_path, [*STUDY, "--jobs", jobs])
    _, err = interrupt_when(process, lambda: spans(tmp_path), number)
    assert process.returncode == 128 + number, err
    (last,) = [line for line in err.splitlines() if line.startswith("interrupted")]
    assert last.endswith("the same command goes on from there")


def test_the_replicates_of_an_unfinished_span_are_kept(tmp_path, monkeypatch):
    spec = Spec("swap-game", {}, ("fixed-batches",), 2_000, 40)
    whole = run_study(spec, jobs=1)
    store, run = Store(tmp_path), replicate.run_replicate

    def interrupted(part, index, problem):
        if index == 8:
            raise Interrupted("interrupted", signal.SIGTERM)
        return run(part, index, problem)

    monkeypatch.setattr(replicate, "run_replicate", interrupted)
    with pytest.raises(Interrupted) as ended:
        run_study(spec, jobs=1, store=store)
    assert ended.value.signal == signal.SIGTERM
    assert [path.name[:17] for path in sorted(tmp_path.rglob("*.span"))] == ["00000000-00000004", "00000005-00000007"]
    done = []
    monkeypatch.setattr(replicate, "run_replicate", lambda part, at, problem: done.append(at) or run(part, at, problem))
    again = run_study(spec, jobs=1, store=store)
    assert done == list(range(8, 40))
    assert [row["coverage"] for row in again] == [row["coverage"] for row in whole]


def begun(process):
    """Whether the command answers signals: SIGHUP is caught."""
    with open(f"/proc/{process.pid}/status") as file:
        caught = next(line for line in file if line.startswith("SigCgt"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGHUP - 1) & 1)


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="asks the kernel which signals are caught")
@pytest.mark.parametrize(
    ("command", "delay"),
    [("demo", 0.0), ("demo", 0.4), ("study swap-game --jobs 1", 0.2), ("fit rows.csv --target y", 0.3)],
)
def test_an_interruption_while_the_command_starts_is_one_line(tmp_path, command, delay):
    (tmp_path / "rows.csv").write_text("x,y\n" + "".join(f"{i % 7},{i % 11}\n" for i in range(200_000)))
    process = start(tmp_path, command.split())
    _, err = interrupt_when(process, lambda: begun(process) or process.poll() is not None, after=delay)
    if process.returncode == 0:  # it was faster
        return
    assert process.returncode == 130, err
    said = [line for line in err.splitlines() if not line.startswith("halfwidth: compiling")]
    assert [line.partition(";")[0] for line in said] == ["interrupted"]


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
