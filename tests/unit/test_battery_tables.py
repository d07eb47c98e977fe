"""The tool that writes the tables of docs/battery.md."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "battery_tables.py"))
SHARES = {"covered": 0.9, "missed_by_chance": 0.05, "doubted": 0.04, "refused": 0.01, "silently_wrong": 0.0}
OKS = {"coverage_ok": 0.947, "coverage_ok_worst": 0.94, "ok": 0.95, "ok_runs": 0.0, "status_ok": 1.0}
NONE = dict.fromkeys(SHARES, 0.0) | {"refused": 1.0, "coverage_ok": None, "coverage_ok_worst": None, "ok": 0.0}


def test_a_row_of_the_battery():
    row = {"row": "a:b=1", "coverage": 0.95, "coverage_se": 0.005, "mis_ratio": 1.049, "mis_ratio_se": 0.02}
    assert TOOL["battery_lines"]([row | {"bias_over_sd": -0.014, "doubted": 3}]) == [
        "| `a:b=1` | 0.950 | 0.005 | 1.05 | 0.02 | -0.01 | 3 |"
    ]


@pytest.mark.parametrize(("hopeless", "mark"), [("it jumps", " *"), ("", "")])
def test_a_row_of_the_adverse_battery(hopeless, mark):
    head = {"row": "a", "hopeless": hopeless}
    rows = [head | {"method": "auto"} | SHARES | OKS, head | {"method": "auto-gradient"} | NONE]
    assert TOOL["adverse_lines"](rows) == [
        f"| `a`{mark} | 0.900 | 0.050 | 0.040 | 0.010 | - | 0.947 | 0.940 | 0.95 | - | 1.00 "
        "| - | - | 1.000 | - | - | - | - | - | - |"
    ]


def test_rows_replace_those_of_their_key_or_come_behind_the_one_before():
    text = "# here\n\n| row | x |\n|---|---|\n| `a` | 1 |\n| `b` * | 2 |\n| `d` | 4 |\n\n| other |"
    changed = TOOL["with_table"](text, "# here", ["| `b` | 3 |", "| `c` | 5 |"])
    assert changed == text.replace("| `b` * | 2 |", "| `b` | 3 |\n| `c` | 5 |")


@pytest.mark.parametrize("name", ["auto", "auto-gradient", "adverse"])
def test_the_tables_are_below_their_headings(name):
    text = (ROOT / "docs" / "battery.md").read_text(encoding="utf-8")
    changed = TOOL["with_table"](text, TOOL["HEADINGS"][name], ["| `new` |"])
    assert changed.count("| `new` |") == 1
    assert changed.replace("| `new` |\n", "") == text
