"""The tables of docs/battery.md, from the JSON that `halfwidth battery` writes.

    python tools/battery_tables.py --auto auto.json --auto-gradient auto-gradient.json --adverse adverse.json

The rows of the files, one or several for each table, replace those of the same key, or come behind the row before them;
other rows, and the text around the tables, are left as they are.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs" / "battery.md"
HEADINGS = {
    "auto": "## What `auto` does there",
    "auto-gradient": "## What `auto-gradient` does there",
    "adverse": "### What `auto` and `auto-gradient` do there",
}
SHARES = ("covered", "missed_by_chance", "doubted", "refused", "silently_wrong")
GRADIENT_SHARES = ("covered", "doubted", "refused", "silently_wrong")
Row = Mapping[str, Any]


def battery_lines(rows: Iterable[Row]) -> list[str]:
    """Coverage, interval score and bias of one method, a line for each row of the battery."""
    return [
        f"| `{row['row']}` | {row['coverage']:.3f} | {row['coverage_se']:.3f} | {row['mis_ratio']:.2f} "
        f"| {row['mis_ratio_se']:.2f} | {row['bias_over_sd']:+.2f} | {row['doubted']} |"
        for row in rows
    ]


def adverse_lines(rows: Iterable[Row]) -> list[str]:
    """The outcomes of both methods, a line for each row of the adverse battery."""
    by_key: dict[str, dict[str, Row]] = {}
    for row in rows:
        by_key.setdefault(row["row"], {})[row["method"]] = row
    return [_adverse_line(key, methods["auto"], methods["auto-gradient"]) for key, methods in by_key.items()]


def _adverse_line(key: str, auto: Row, gradient: Row) -> str:
    cells = _outcomes(auto, SHARES) + _outcomes(gradient, GRADIENT_SHARES)
    return f"| `{key}`{' *' if auto['hopeless'] else ''} | {' | '.join(cells)} |"


def _outcomes(row: Row, shares: Iterable[str]) -> list[str]:
    cells = [f"{row[name]:.3f}" if row[name] > 0.0 else "-" for name in shares]
    cells += ["-" if row[name] is None else f"{row[name]:.3f}" for name in ("coverage_ok", "coverage_ok_worst")]
    some = row["coverage_ok"] is not None
    return cells + [f"{row[name]:.2f}" if some and row[name] > 0.0 else "-" for name in ("ok", "ok_runs", "status_ok")]


def with_table(text: str, heading: str, lines: list[str]) -> str:
    """The text, with these lines in the first table below the heading."""
    old = text.split("\n")
    head = next(i for i in range(old.index(heading), len(old)) if old[i].startswith("|"))
    end = next(i for i in range(head, len(old)) if not old[i].startswith("|"))
    table = old[head + 2 : end]
    at = -1
    for line in lines:
        places = [i for i, other in enumerate(table) if _key(other) == _key(line)]
        at = places[0] if places else at + 1
        table[at : at + len(places)] = [line]
    return "\n".join([*old[: head + 2], *table, *old[end:]])


def _key(line: str) -> str:
    return line.split("`")[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in HEADINGS:
        parser.add_argument(f"--{name}", type=Path, dest=name, nargs="+", default=[])
    text = DOCS.read_text(encoding="utf-8")
    for name, paths in vars(parser.parse_args()).items():
        rows = [row for path in paths for row in json.loads(path.read_text(encoding="utf-8"))]
        text = with_table(text, HEADINGS[name], (adverse_lines if name == "adverse" else battery_lines)(rows))
    DOCS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
