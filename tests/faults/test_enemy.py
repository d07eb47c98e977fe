"""What somebody would do who wants to break it: each once, with a limit on time and memory.

Other attacks have files of their own: `test_readers_attacked.py` (quotes, headers, deep JSON, files that change while
they are read), `test_resuming.py` (another source under an old checkpoint), `test_places.py` (disks and pipes).
"""

from __future__ import annotations

import gzip
import os
import resource
import sys
import threading

import numpy as np
import pandas as pd
import pytest
from campaign import HANG_SECONDS, within
from state_table import frame

import halfwidth as hw
from halfwidth.cli import main
from halfwidth.errors import BadRow, BrokenCheckpoint, CannotWrite, InputError
from halfwidth.state.checkpoint import read_checkpoint, write_checkpoint

WIDE = [f"x{i}" for i in range(30)]
ROWS = b"a,y\n" + b"".join(b"%d,%d\n" % (i % 7, i % 7 + i % 3) for i in range(60))


def learned(path, content, **options):
    path.write_bytes(content)
    with within(5 * HANG_SECONDS):
        return hw.fit(path, **{"target": "y"} | options).n_seen_


@pytest.mark.parametrize(
    "formula",
    [
        "y ~ " + "*".join(WIDE),
        f"y ~ (({' + '.join(WIDE[:8])})**8)**8",
        f"y ~ ({' + '.join(WIDE)})**10",
        "y ~ " + ":".join(f"C({name})" for name in WIDE),
        "y ~ " + "(" * 9_000 + "x0" + ")" * 9_000,
        "y ~ " + "log(" * 4_000 + "x0" + ")" * 4_000,
        "y ~ x0" + " - x1" * 50_000,
        "y ~ bs(x0, df=1000000000)",
        "y ~ x0\0",
    ],
    ids=range(9),
)
def test_a_formula_that_explodes_is_refused_at_once(formula):
    table = pd.DataFrame(np.random.default_rng(0).standard_normal((100, 30)), columns=WIDE)
    with pytest.raises(InputError, match=r"formula|bs\(\)"), within(HANG_SECONDS):
        hw.fit(table.assign(y=table["x0"]), formula=formula)


@pytest.mark.parametrize(
    "content",
    [
        ROWS + b"x" * (32 << 20),
        ROWS + b"\0" * (32 << 20),
        b"x" * (32 << 20),
        ROWS + b'"' + b"1,2\n" * (4 << 20),
    ],
    ids=["line", "zeros", "header", "quote"],
)
def test_a_compressed_bomb_ends_before_the_memory(tmp_path, content):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(BadRow, match=r"rows\.csv\.gz"):
        learned(tmp_path / "rows.csv.gz", gzip.compress(content, 1))
    assert (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000
    )  # kB; a block of short rows takes most of it


@pytest.mark.parametrize(
    ("content", "options", "rows"),
    [
        (b"\xef\xbb\xbf" + ROWS, {}, 60),
        (ROWS.decode().encode("utf-16"), {}, 60),
        (ROWS.decode().encode("utf-16-be"), {"encoding": "utf-16-be"}, 60),
        (ROWS + b"1\x00,2\n", {"bad_rows": "skip"}, 60),
        (ROWS + b"\n" * (4 << 20), {}, 60),
        (ROWS + b"," * (2 << 20) + b"\n" + ROWS[4:], {"bad_rows": "skip"}, 120),
    ],
    ids=["bom", "utf-16", "utf-16-be", "nul", "newlines", "commas"],
)
def test_odd_bytes_are_read_or_counted(tmp_path, content, options, rows):
    assert learned(tmp_path / "rows.csv", content, **options) == rows


@pytest.mark.parametrize(
    "content",
    [
        ROWS.decode().encode("utf-32"),
        ROWS.decode().encode("utf-16-le"),
        ROWS.decode().encode("cp037"),
        b"\xff\xfe" + ROWS.decode().encode("utf-16-le") + b"\x00\xd8\x00\xd8",
        b"a\0b,y\n1,2\n" * 9,
    ],
    ids=["utf-32", "utf-16-le", "cp037", "surrogate", "nul"],
)
def test_text_of_other_encodings_is_refused(tmp_path, content):
    with pytest.raises(BadRow, match=r"rows\.csv"):
        learned(tmp_path / "rows.csv", content)


@pytest.mark.parametrize("engine", ["auto", "sgd"])
def test_thirty_thousand_columns_take_linear_work(tmp_path, engine):
    head = ",".join(f"c{i}" for i in range(30_000)) + ",y\n"
    row = ",".join(str(i % 7) for i in range(30_000)) + ",1\n"
    assert learned(tmp_path / "rows.csv", (head + 20 * row).encode(), engine=engine) == 20


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom", "/dev/null", "/proc/self/mem"])
def test_a_device_is_no_table(device):
    with pytest.raises(InputError, match=device), within(5 * HANG_SECONDS):
        hw.fit(device, target="y", format="csv")


def test_a_parquet_file_that_promises_anything_is_refused(tmp_path):
    """Every few bytes become the largest number that fits; 2 GB for one page is what Arrow may ask for."""
    path = tmp_path / "rows.parquet"
    frame()[["a", "y"]][:50].to_parquet(path)
    whole, refused = path.read_bytes(), 0
    for patch, step in ((b"\xfe\xff\xff\xff\x0f", 23), (b"\xfe" + b"\xff" * 7 + b"\x7f", 29)):
        for at in range(4, len(whole) - 8, step):
            path.write_bytes(whole[:at] + patch + whole[at + len(patch) :])
            try:
                with within(5 * HANG_SECONDS):
                    hw.fit(path, target="y", bad_rows="skip")
            except InputError:
                refused += 1
    assert refused > 30


def test_a_pipe_or_a_device_is_no_model(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for place in (pipe, "/dev/zero", "/dev/stdin", tmp_path, "a\0b"):
        with pytest.raises(InputError, match="could not be read"), within(HANG_SECONDS):
            hw.load(place)
    with pytest.raises(CannotWrite, match="a pipe"), within(HANG_SECONDS):
        hw.fit(frame(), target="y", features=["a"], checkpoint=pipe, resume=True)


def test_the_checkpoint_of_another_run_is_refused(tmp_path):
    other = frame().assign(y=frame()["y"] * 2)
    for name, table in (("one", frame()), ("two", other)):
        hw.fit(table, target="y", features=["a"], checkpoint=tmp_path / name)
    os.replace(tmp_path / "two", tmp_path / "one")
    with pytest.raises(InputError, match="source is another one"):
        hw.fit(frame(), target="y", features=["a"], checkpoint=tmp_path / "one", resume=True)
    (tmp_path / "rows.csv").write_bytes(ROWS)
    with pytest.raises(CannotWrite, match="not a checkpoint"):
        hw.fit(tmp_path / "rows.csv", target="y", checkpoint=tmp_path / "rows.csv")


@pytest.mark.parametrize("errors", ["error", "warn"])
def test_two_runs_on_one_checkpoint_are_noticed(tmp_path, monkeypatch, errors):
    monkeypatch.setattr("halfwidth.models.run.CHECKPOINT_SECONDS", 0.0)
    place, (path,) = tmp_path / "run.ck", [tmp_path / "rows.csv"]
    frame().to_csv(path, index=False)

    def other(rows):
        write_checkpoint(place, {"n": rows})

    def run():
        return hw.fit(path, target="y", features=["a"], checkpoint=place, checkpoint_errors=errors, progress=other)

    if errors == "error":
        with pytest.raises(CannotWrite, match="replaced by another process"):
            run()
    else:
        with pytest.warns(match="replaced by another process"):
            assert run().n_seen_ == len(frame())
    assert read_checkpoint(place) == {"n": len(frame())}


def test_a_checkpoint_that_is_taken_away_is_written_again(tmp_path, monkeypatch):
    monkeypatch.setattr("halfwidth.models.run.CHECKPOINT_SECONDS", 0.0)
    place = tmp_path / "run.ck"
    hw.fit(frame(), target="y", features=["a"], checkpoint=place, progress=lambda _: place.unlink(missing_ok=True))
    assert hw.load(place).n_seen_ == len(frame())


def test_a_clock_that_jumps_changes_nothing(tmp_path, monkeypatch):
    times = iter(np.cumsum(np.resize([1e9, -2e9], 10**6)).tolist())
    monkeypatch.setattr("time.time", lambda: next(times))
    expected = hw.fit(frame(), target="y", features=["a"]).inference().bse
    place = tmp_path / "run.ck"
    found = hw.fit(frame(), target="y", features=["a"], checkpoint=place).inference().bse
    os.utime(place, (0, 0))
    again = hw.fit(frame(), target="y", features=["a"], checkpoint=place, resume=True).inference().bse
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(again, expected)


def test_a_checkpoint_that_shrinks_while_it_is_read_is_found(tmp_path):
    place = tmp_path / "run.ck"
    write_checkpoint(place, {"x": np.arange(200_000.0)})
    whole, done = place.read_bytes(), threading.Event()

    def shake():
        while not done.is_set():
            with open(place, "r+b") as file:
                file.truncate(1_000)
                file.seek(0)
                file.write(whole)

    thread = threading.Thread(target=shake)
    thread.start()
    try:
        for _ in range(200):
            try:
                np.testing.assert_array_equal(read_checkpoint(place)["x"], np.arange(200_000.0))
            except BrokenCheckpoint:
                continue
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("name", [b"\xff\xfe.csv", b"a\nb.csv", b"[red]x[b].csv", " \u0434 \u202e.csv".encode()])
def test_names_of_files_and_columns_may_be_anything(tmp_path, name, monkeypatch, capfd):
    path = tmp_path / os.fsdecode(name)
    path.write_bytes("\u0434[/red],[b]x,y\n".encode() + b"".join(b"%d,%d,%d\n" % (i % 7, i % 5, i) for i in range(60)))
    model, out = path.with_suffix(".model"), tmp_path / "out" / path.name
    for arguments in (["fit", path, "--target", "y", "--save", model], ["predict", model, path, "--out", out]):
        monkeypatch.setattr(sys, "argv", ["halfwidth", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code in (0, None)
    assert "Traceback" not in capfd.readouterr().err
    assert len(out.read_bytes().splitlines()) == 61


def test_numbers_with_more_digits_than_python_reads(tmp_path, monkeypatch, capfd):
    long = "9" * 5_000
    rows = tmp_path / "rows.csv"
    rows.write_text("k,y\n" + "".join(f"{'1' if i % 2 else long},{i % 7}\n" for i in range(200)))
    assert hw.fit(rows, formula="y ~ C(k)").n_seen_ == 200
    for arguments in (["--formula", f"y ~ (k + k)**{long}"], ["--formula", f"y ~ poly(k, {long})"], ["--passes", long]):
        target = [] if arguments[0] == "--formula" else ["--target", "y"]
        monkeypatch.setattr(sys, "argv", ["halfwidth", "fit", str(rows), *target, *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
    assert "Traceback" not in capfd.readouterr().err


def test_a_leftover_whose_owner_is_no_process_is_left_alone(tmp_path):
    from halfwidth.state.atomic import _mark

    strange = tmp_path / f"{_mark(tmp_path / 'run.ck')}{'9' * 30}.0.tmp"
    strange.write_bytes(b"")
    write_checkpoint(tmp_path / "run.ck", {"n": 1})
    assert strange.exists()
