"""Disks and pipes that fail, by real means: a clear message, no traceback, and nothing lost that was there."""

from __future__ import annotations

import os
import resource
import signal
import stat
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import pandas as pd
import pytest

import halfwidth
from halfwidth.errors import CannotWrite, InputError
from halfwidth.models import FitWarning
from halfwidth.state.atomic import check_output, write_output
from halfwidth.state.checkpoint import check_checkpoint_place, read_checkpoint, write_checkpoint

COMMAND = [sys.executable, "-c", "from halfwidth.cli import main; main()"]
AS_ROOT = os.geteuid() == 0


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"a": rng.standard_normal(3_000), "b": rng.standard_normal(3_000)})
    table["y"] = table["a"] + rng.standard_normal(3_000)
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    table.to_csv(path, index=False)
    return path


@pytest.fixture
def small_disk(tmp_path):
    """A tmpfs of 64 kB; where mounting is not allowed, the same by a limit on the size of files."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], capture_output=True)
    if mounted.returncode == 0:
        yield place
        subprocess.run(["umount", place], check=True)
        return
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
    yield place
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def run(*arguments, **options):
    environment = {**os.environ, "COLUMNS": "200"} | options.pop("env", {})
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, env=environment, **options)


def assert_said(done, *words, code=2):
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


def test_a_full_disk_keeps_the_old_checkpoint_and_leaves_nothing_behind(small_disk):
    path = small_disk / "run.ck"
    write_checkpoint(path, {"n": 1})
    with pytest.raises(CannotWrite, match=r"run\.ck.*(disk is full|larger than this process may write)"):
        write_checkpoint(path, {"n": np.zeros(100_000)})
    assert read_checkpoint(path) == {"n": 1}
    assert os.listdir(small_disk) == ["run.ck"]


def test_a_disk_that_is_full_from_the_start_is_noticed_before_the_run(small_disk, rows):
    (small_disk / "filler").write_bytes(b"x" * 60_000)
    if os.statvfs(small_disk).f_bavail == 0 or os.path.ismount(small_disk):
        (small_disk / "more").write_bytes(b"x" * (os.statvfs(small_disk).f_bavail * 4096))
        with pytest.raises(CannotWrite, match="disk is full"):
            halfwidth.fit(rows, target="y", checkpoint=small_disk / "run.ck")


def test_a_full_disk_may_only_warn(small_disk, rows, monkeypatch):
    monkeypatch.setattr("halfwidth.models.run.CHECKPOINT_SECONDS", 0.0)
    wide = pd.DataFrame(np.random.default_rng(0).standard_normal((3_000, 60)), columns=[f"x{i}" for i in range(60)])
    with pytest.raises(CannotWrite, match=r"disk is full|larger than"):
        halfwidth.fit(wide, target="x0", checkpoint=small_disk / "run.ck")
    with pytest.warns(FitWarning, match="The run goes on without it"), warnings.catch_warnings(record=False):
        model = halfwidth.fit(wide, target="x0", checkpoint=small_disk / "run.ck", checkpoint_errors="warn")
    assert model.n_seen_ == 3_000


@pytest.fixture
def nobody():
    """Permissions do not bind root, so that root becomes somebody else for a moment."""
    if AS_ROOT:
        os.seteuid(65_534)
    yield
    if AS_ROOT:
        os.seteuid(0)


def test_a_folder_without_permission(nobody):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o500)
        with pytest.raises(CannotWrite, match="not permitted"):
            check_checkpoint_place(os.path.join(folder, "run.ck"))
        os.chmod(folder, 0o700)


@pytest.mark.skipif(not AS_ROOT, reason="needs the right to mount; permissions are tested above")
def test_a_read_only_disk(small_disk, rows):
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(CannotWrite, match="read-only"):
        check_checkpoint_place(small_disk / "run.ck")
    for option in ("--checkpoint", "--json", "--save"):
        assert_said(run("fit", rows, "--target", "y", option, small_disk / "out"), "read-only")


def test_a_folder_that_vanishes(tmp_path, rows, monkeypatch):
    monkeypatch.setattr("halfwidth.models.run.CHECKPOINT_SECONDS", 0.0)
    folder = tmp_path / "gone"
    folder.mkdir()
    with pytest.raises(CannotWrite, match="folder does not exist"):
        halfwidth.fit(rows, target="y", checkpoint=folder / "run.ck", progress=lambda _: _remove(folder))


def _remove(folder):
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


@pytest.mark.parametrize("write", [check_checkpoint_place, lambda path: write_checkpoint(path, {"n": 1})])
def test_only_regular_files_are_replaced(tmp_path, write):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for place, kind in ((pipe, "a pipe"), (tmp_path, "a folder"), ("/dev/null", "a device")):
        before = os.stat(place).st_mode
        with pytest.raises(CannotWrite, match=kind):
            write(place)
        assert os.stat(place).st_mode == before
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_symlink_keeps_pointing(tmp_path):
    (tmp_path / "real").mkdir()
    link, dangling = tmp_path / "link", tmp_path / "dangling"
    write_checkpoint(tmp_path / "real" / "run.ck", {"n": 1})
    link.symlink_to(tmp_path / "real" / "run.ck")
    dangling.symlink_to(tmp_path / "real" / "new.ck")
    for path in (link, dangling):
        write_checkpoint(path, {"n": 2}, keep_previous=True)
        assert path.is_symlink()
        assert read_checkpoint(path) == {"n": 2}
    assert sorted(os.listdir(tmp_path / "real")) == ["new.ck", "run.ck", "run.ck.previous"]
    link.unlink()
    link.symlink_to(link)
    with pytest.raises(InputError, match=r"circle|symlinks"):
        write_checkpoint(link, {"n": 3})


@pytest.mark.parametrize(
    ("name", "words"),
    [("x" * 300, "too long"), ("missing/run.ck", "folder does not exist"), ("rows.csv/run.ck", "folder is a file")],
)
def test_places_that_cannot_be(tmp_path, name, words):
    (tmp_path / "rows.csv").write_text("a\n1\n")
    for check in (check_checkpoint_place, lambda path: write_checkpoint(path, {"n": 1})):
        with pytest.raises(CannotWrite, match=words):
            check(tmp_path / name)


def test_what_a_killed_process_left_is_cleaned(tmp_path):
    path = tmp_path / "run.ck"
    script = (
        "import os, sys; from halfwidth.state import atomic\n"
        "atomic.os.replace = lambda *a: os._exit(9)\n"
        "from halfwidth.state.checkpoint import write_checkpoint; write_checkpoint(sys.argv[1], {'n': 1})"
    )
    subprocess.run([sys.executable, "-c", script, path], check=False)
    assert len(os.listdir(tmp_path)) == 1
    write_checkpoint(path, {"n": 2})
    assert os.listdir(tmp_path) == ["run.ck"]


@pytest.mark.parametrize("option", ["--json", "--save", "--plot", "--checkpoint"])
def test_an_output_that_is_a_folder_is_refused_before_the_run(tmp_path, rows, option):
    place = tmp_path / "out.png"
    place.mkdir()
    assert_said(run("fit", rows, "--target", "y", option, place), "is a folder")


def test_outputs_to_devices_and_pipes_go_there(tmp_path, rows):
    done = run("fit", rows, "--target", "y", "--json", "/dev/null")
    assert done.returncode == 0, done.stderr
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    check_output("/dev/null", "JSON file")
    write_output("/dev/null", b"x", "JSON file")


def test_a_full_output_says_so_and_the_checkpoint_holds_what_was_learned(tmp_path, rows):
    checkpoint = tmp_path / "run.ck"
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "fit", rows, "--target", "y", "--checkpoint", checkpoint], stdout=full, stderr=-1, text=True
        )
    assert_said(done, "No space left")
    assert halfwidth.load(checkpoint).n_seen_ == 3_000
    assert_said(run("fit", rows, "--target", "y", "--json", "/dev/full"), "the disk is full")


def test_a_closed_output(tmp_path, rows):
    script = f"exec {' '.join(map(repr, COMMAND))} fit {rows} --target y"
    assert_said(subprocess.run(["bash", "-c", script + " >&-"], stderr=-1, text=True), "standard output is closed")


@pytest.mark.parametrize("reader", ["true", "head -n 1 > /dev/null"])
def test_a_pipe_that_its_reader_closes(tmp_path, rows, reader):
    halfwidth.fit(rows, target="y", checkpoint=tmp_path / "model")
    head, *lines = rows.read_text().splitlines(keepends=True)
    many = tmp_path / "many.csv"  # whose predictions are more than a pipe holds
    many.write_text(head + "".join(lines) * (1 + 100_000 // len(lines)))
    script = f"{' '.join(map(repr, COMMAND))} predict {tmp_path / 'model'} {many} | {reader}; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    said = [line for line in done.stderr.splitlines() if "compiling" not in line]
    assert done.stdout.strip() == "141", done.stderr  # 128 + SIGPIPE, as of any program in front of `head`
    assert said == []


@pytest.mark.parametrize("command", ["problems", "methods", "fit {rows} --target y", "show {model} --json -"])
def test_a_pipe_that_was_closed_before_the_first_line(tmp_path, rows, command):
    halfwidth.fit(rows, target="y").save(tmp_path / "model")
    words = command.format(rows=rows, model=tmp_path / "model")
    script = f"(sleep 0.1; exec {' '.join(map(repr, COMMAND))} {words}) | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "141", done.stderr
    assert [line for line in done.stderr.splitlines() if "compiling" not in line] == []


def test_a_killed_prediction_leaves_no_file_and_the_next_one_cleans_up(tmp_path, rows):
    """Killed while it writes: there is no file under the name, or the one before."""
    halfwidth.fit(rows, target="y").save(tmp_path / "model")
    head, *lines = rows.read_text().splitlines(keepends=True)
    many, out = tmp_path / "many.csv", tmp_path / "out"
    many.write_text(head + "".join(lines) * 50)
    out.mkdir()
    command = [*COMMAND, "predict", tmp_path / "model", many, "--interval", "mean", "--out", out / "found.csv"]
    for before in (None, "old"):
        if before is not None:
            (out / "found.csv").write_text(before)
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            while not any(name.endswith(".tmp") and (out / name).stat().st_size for name in os.listdir(out)):
                assert process.poll() is None
                time.sleep(0.001)
            process.kill()
        assert (out / "found.csv").exists() == (before is not None)
        assert before is None or (out / "found.csv").read_text() == before
    assert subprocess.run(command, capture_output=True, check=True).stdout.endswith(b"150,000 predictions\n")
    assert os.listdir(out) == ["found.csv"]
    assert len((out / "found.csv").read_text().splitlines()) == 150_001


def test_an_interrupted_prediction_cleans_up_itself(tmp_path, rows):
    halfwidth.fit(rows, target="y").save(tmp_path / "model")
    (tmp_path / "out").mkdir()
    pipe = tmp_path / "rows.pipe"
    os.mkfifo(pipe)
    command = [
        *COMMAND,
        "predict",
        tmp_path / "model",
        pipe,
        "--format",
        "csv",
        "--out",
        tmp_path / "out" / "found.csv",
    ]
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True) as process, open(pipe, "w") as file:
        file.write(rows.read_text())
        file.flush()
        while not os.listdir(tmp_path / "out"):
            assert process.poll() is None
            time.sleep(0.01)
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate()
    assert process.returncode == 143, said
    assert [line for line in said.splitlines() if "compiling" not in line] == ["interrupted"]
    assert os.listdir(tmp_path / "out") == []


def test_predictions_to_a_full_standard_output(tmp_path, rows):
    halfwidth.fit(rows, target="y", checkpoint=tmp_path / "model")
    with open("/dev/full", "w") as full:
        done = subprocess.run([*COMMAND, "predict", tmp_path / "model", rows], stdout=full, stderr=-1, text=True)
    assert_said(done, "No space left")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_of_predictions_is_replaced_whole_or_not_at_all(tmp_path, rows, small_disk, ending):
    halfwidth.fit(rows, target="y", checkpoint=tmp_path / "model")
    out, link = small_disk / f"out.{ending}", tmp_path / f"link.{ending}"
    out.write_text("old")
    link.symlink_to(out)
    many = tmp_path / "many.csv"
    body = rows.read_text().partition("\n")
    many.write_text(body[0] + body[1] + 20 * body[2])
    done = run("predict", tmp_path / "model", many, "--out", link)
    assert_said(done, "could not be written", "full" if os.path.ismount(small_disk) else "larger than")
    assert out.read_text() == "old"
    assert sorted(os.listdir(small_disk)) == [out.name]
    link.unlink()
    link.symlink_to(tmp_path / "real")
    assert run("predict", tmp_path / "model", rows, "--out", link).returncode == 0
    assert link.is_symlink()
    assert (tmp_path / "real").stat().st_size > 10_000
    place = tmp_path / f"folder.{ending}"
    place.mkdir()
    assert_said(run("predict", tmp_path / "model", rows, "--out", place), "is a folder")


def test_a_closed_input(rows):
    done = subprocess.run(
        ["bash", "-c", f"exec {' '.join(map(repr, COMMAND))} fit - --target y <&-"], capture_output=True, text=True
    )
    assert_said(done, "error")
