"""`halfwidth battery` as a user meets it."""

import json

import pytest

from command_line import assert_refused, halfwidth, refused
from halfwidth.cli.battery import _cell

SHOWN = (("coverage", 3), ("mis_ratio", 2))


def battery(cache, *args):
    return halfwidth("battery", *args, cache=cache)


def test_it_prints_one_table_writes_json_and_resumes(tmp_path):
    arguments = "--rows swap-game:rho=0.5 --methods obm,obm-normal --replicates 4 --jobs 1 --seed 2".split()
    first = battery(tmp_path / "cache", *arguments, "--json", tmp_path / "first.json")
    assert first.returncode == 0, first.stderr
    assert "4 of 4" in first.stderr
    header, line = (next(x for x in first.stdout.splitlines() if word in x) for word in ("obm-normal", "rho=0.5"))
    rows = json.loads((tmp_path / "first.json").read_text())
    assert header.split() == ["row", "obm", "obm-normal"]
    assert line.split() == ["swap-game:rho=0.5", *(f"{row[k]:.{d}f}" for row in rows for k, d in SHOWN)]
    spans = sorted((tmp_path / "cache" / "studies").rglob("*.span"))
    stamps = [path.stat().st_mtime_ns for path in spans]
    assert len(spans) == 4
    again = battery(tmp_path / "cache", *arguments, "--json", "-")
    assert json.loads(again.stdout) == rows
    assert [path.stat().st_mtime_ns for path in spans] == stamps


@refused(
    (["--rows", "seed-linaer"], "no battery row named 'seed-linaer'"),
    (["--methods", "omb"], "no method named 'omb'"),
    (["--rows", "swap-game", "--jobs", "0"], "jobs must be -1 or at least 1"),
    (["--rows", "swap-game", "--replicates", "1"], "replicates must be an integer of at least 2"),
)
def test_bad_input_is_one_clear_line_and_exit_code_2(tmp_path, arguments, message):
    assert_refused(battery(tmp_path, *arguments), message)


@pytest.mark.parametrize(
    ("coverage", "colour"), [(0.95, "green"), (0.941, "green"), (0.935, "yellow"), (0.97, "red"), (0.90, "red")]
)
def test_colour_is_the_distance_from_nominal_in_standard_errors(coverage, colour):
    row = {"status": "ok", "coverage": coverage, "level": 0.95, "replicates": 2_000, "mis_ratio": 1.07}
    assert _cell(row) == f"[{colour}]{coverage:.3f}[/]  1.07"


def test_a_refusal_shows_as_a_dash():
    assert _cell({"status": "needs a Hessian"}) == "-"
