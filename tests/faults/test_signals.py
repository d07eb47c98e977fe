"""Signals to the command itself: the run ends at the next chunk with a checkpoint, a second signal ends it at once."""

from __future__ import annotations

import select
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import halfwidth

COMMAND = [sys.executable, "-c", "from halfwidth.cli import main; main()"]
CHUNK = 4_096
ROUNDS = 4_000


def listen():
    """What a shell's background jobs, or `nohup`, ignore is not to be ignored."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture
def running(tmp_path):
    """A run that reads rows from a pipe for as long as they come."""
    checkpoint = tmp_path / "run.ck"
    command = [*COMMAND, "fit", "-", "--format", "csv", "--target", "y", "--checkpoint", str(checkpoint)]
    command += ["--every", str(CHUNK)]
    rng = np.random.default_rng(0)
    lines = [b"%.6f,%.6f\n" % (a, a + b) for a, b in rng.standard_normal((CHUNK, 2))]
    with subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1, bufsize=0, preexec_fn=listen) as process:
        process.stdin.write(b"a,y\n")
        yield process, checkpoint, b"".join(lines)
        process.kill()


def feed(process, rows, until):
    """Give rows until something has happened."""
    for _ in range(ROUNDS):
        if until():
            return
        try:
            process.stdin.write(rows)
        except BrokenPipeError:
            return
        time.sleep(0.05)
    raise AssertionError("nothing happened")


def noticed(process):
    """Whether the run has begun: it prints a line after every chunk."""
    return bool(select.select([process.stdout], [], [], 0.0)[0])


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_ends_the_run_with_a_checkpoint_and_says_how_to_go_on(running, name):
    process, checkpoint, rows = running
    number = getattr(signal, name)
    feed(process, rows, lambda: noticed(process))
    process.send_signal(number)
    feed(process, rows, lambda: process.poll() is not None)
    _, said = process.communicate()
    assert process.returncode == 128 + number, said
    assert b"Traceback" not in said
    assert b"ended by a signal after" in said
    assert b"--resume" in said
    model = halfwidth.load(checkpoint)
    assert model.n_seen_ > 0
    assert abs(float(model.coef_[0]) - 1.0) < 0.2


@pytest.mark.parametrize("second", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_second_signal_ends_the_process_at_once(running, second):
    process, _, rows = running
    feed(process, rows, lambda: noticed(process))
    time.sleep(0.5)  # it waits for rows that do not come
    process.send_signal(signal.SIGTERM)
    time.sleep(0.2)
    process.send_signal(getattr(signal, second))
    assert process.wait(60) == -getattr(signal, second)
