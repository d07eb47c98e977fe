"""The table of `halfwidth battery --adverse`: what the coefficients of every row and method end in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from halfwidth.cli.output import console

_COLUMNS = {
    "covered": "covered",
    "missed_by_chance": "by chance",
    "doubted": "doubted",
    "refused": "refused",
    "silently_wrong": "silently wrong",
}
_WIDTH = 180


def print_outcomes(scored: Sequence[dict[str, Any]]) -> None:
    """One line for each row and method, hopeless rows marked, and what the columns mean below."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("row", no_wrap=True)
    table.add_column("method", no_wrap=True)
    for title in (*_COLUMNS.values(), "coverage if ok", "worst", "ok", "ok runs", "status ok"):
        table.add_column(title, justify="right")
    for row in scored:
        table.add_row(*_cells(row))
    output = console(_WIDTH)
    output.print(table)
    runs = max((row["replicates"] for row in scored), default=0)
    hopeless = {row["row"]: row["hopeless"] for row in scored if row["hopeless"]}
    output.print(
        f"shares of all coefficients of all {runs:,} runs; by chance is status ok and outside, but within 5 standard "
        "errors; coverage if ok is among coefficients with status ok, pooled and for the worst coefficient; ok is the "
        "share of coefficients with status ok, ok runs that of runs in which all of them have it, status ok that of "
        "runs whose own status is ok; silently wrong is status ok and more than 5 standard errors away",
        highlight=False,
    )
    for key, reason in hopeless.items():
        output.print(f"* {key}: no honest interval is possible at this length: {reason}", highlight=False)


def _cells(row: dict[str, Any]) -> list[str]:
    wrong = row["silently_wrong"]
    cells = [row["row"] + (" *" if row["hopeless"] else ""), row["method"]]
    cells += [f"{row[name]:.3f}" if row[name] else "-" for name in _COLUMNS if name != "silently_wrong"]
    cells.append(f"[red]{wrong:.4f}[/]" if wrong else "-")
    cells += ["-" if row[name] is None else f"{row[name]:.3f}" for name in ("coverage_ok", "coverage_ok_worst")]
    return [*cells, *(f"{row[name]:.2f}" for name in ("ok", "ok_runs", "status_ok"))]
