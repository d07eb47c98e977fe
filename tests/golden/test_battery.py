"""A tiny battery gives the rows it gave when they were written down.

`python tests/golden/test_battery.py` writes them again: do so only when a change of the numbers is meant.
"""

import json
from pathlib import Path

import pytest

from halfwidth.study.battery import BatteryRow, run_battery

GOLDEN = Path(__file__).with_name("battery.json")
ROWS = (
    *(BatteryRow(name, {"dim": 2}, steps=2_000) for name in ("iid-linear", "ar-linear", "seed-linear")),
    *(BatteryRow(name, {"dim": 2}, steps=2_000, eta=2.0) for name in ("seed-logistic", "ar-logistic")),
    BatteryRow("performative-mean", {"dim": 2}, steps=2_000),
    BatteryRow("swap-game", {"rho": 0.9}, steps=2_000),
    BatteryRow("strategic-logistic", {"dim": 3, "agents": 100}, steps=2_000, eta=2.0),
)


def smoke():
    rows = run_battery(ROWS, ("obm", "obm-normal"), replicates=8, seed=1, jobs=1)
    return [{key: value for key, value in row.items() if key != "us_per_row"} for row in rows]


def test_the_smoke_battery_gives_its_golden_rows():
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    rows = smoke()
    assert len(rows) == len(golden) == 2 * len(ROWS)
    for row, expected in zip(rows, golden, strict=True):
        assert row.keys() == expected.keys()
        for key, value in expected.items():
            assert row[key] == (pytest.approx(value, rel=1e-6) if isinstance(value, float) else value), key


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(smoke(), indent=1) + "\n", encoding="utf-8")
