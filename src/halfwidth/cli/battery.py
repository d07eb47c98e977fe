"""`halfwidth battery`: every method on the same problems with exact truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from halfwidth.cli.interrupts import keeping
from halfwidth.cli.options import JobsOption, JsonOption, SeedOption
from halfwidth.cli.outcomes import print_outcomes
from halfwidth.cli.output import console, number, progress, write_json
from halfwidth.cli.params import listed

_WIDTH_OF_KEY, _WIDTH_OF_CELL = 36, 15


def battery(
    methods: Annotated[str, typer.Option(help="Comma-separated; all when none is given.")] = "",
    rows: Annotated[
        str, typer.Option(help="Keys or beginnings of keys, comma-separated; all when none is given.")
    ] = "",
    replicates: Annotated[int, typer.Option(help="Independent repetitions of every row.")] = 200,
    seed: SeedOption = 0,
    jobs: JobsOption = -1,
    adverse: Annotated[
        bool, typer.Option("--adverse", help="Problems on which methods fail, and what every coefficient ends in.")
    ] = False,
    json: JsonOption = None,
) -> None:
    """Measure methods on the battery of problems; an interrupted run goes on where it stopped."""
    from halfwidth.methods import METHODS
    from halfwidth.study.adverse import adverse_rows
    from halfwidth.study.battery import battery_rows, run_battery
    from halfwidth.study.store import Store

    names, wanted = listed(methods) or list(METHODS), listed(rows)
    chosen = adverse_rows(wanted) if adverse else battery_rows(wanted)
    store = Store()
    with keeping(store.folder, "the same command"), progress(f"battery, {len(names)} methods") as tell:
        scored = run_battery(chosen, names, replicates=replicates, seed=seed, jobs=jobs, store=store, progress=tell)
    if json is not None:
        write_json(scored, json)
    if str(json) != "-":
        if adverse:
            print_outcomes(scored)
        else:
            _print(scored, names, list(dict.fromkeys(row["row"] for row in scored)))


def _print(scored: Sequence[dict[str, Any]], methods: Sequence[str], keys: Sequence[str]) -> None:
    """One table, broken into several where the terminal is too narrow for all methods."""
    output = console(_WIDTH_OF_KEY + _WIDTH_OF_CELL * len(methods))
    fits = max(1, (output.width - _WIDTH_OF_KEY) // _WIDTH_OF_CELL)
    cells = {(row["row"], row["method"]): row for row in scored}
    level, replicates = scored[0]["level"], max(row["replicates"] for row in scored)
    for at in range(0, len(methods), fits):
        output.print(_table(cells, methods[at : at + fits], keys))
    band = 2.0 * math.sqrt(level * (1.0 - level) / max(replicates, 1))
    output.print(
        f"coverage of the exact truth (nominal {level}, within {band:.3f} by chance at {replicates:,} replicates) and "
        "interval score over the oracle's; - refused, the reason is in the JSON",
        highlight=False,
    )


def _table(cells: dict[tuple[str, str], dict[str, Any]], methods: Sequence[str], keys: Sequence[str]) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("row", no_wrap=True)
    for name in methods:
        table.add_column(name, justify="right", overflow="fold")
    for key in keys:
        table.add_row(key, *(_cell(cells[key, name]) for name in methods))
    table.add_section()
    table.add_row("mean", *(_mean_cell([cells[key, name] for key in keys]) for name in methods))
    return table


def _cell(row: dict[str, Any]) -> str:
    if row["status"] != "ok":
        return "-"
    away = abs(row["coverage"] - row["level"]) / math.sqrt(row["level"] * (1.0 - row["level"]) / row["replicates"])
    colour = "green" if away <= 2.0 else "yellow" if away <= 4.0 else "red"
    return f"[{colour}]{row['coverage']:.3f}[/] {number(row['mis_ratio'], 2):>5}"


def _mean_cell(rows: Sequence[dict[str, Any]]) -> str:
    given = [row for row in rows if row["status"] == "ok"]
    if not given:
        return "-"
    ratios = [row["mis_ratio"] for row in given if row["mis_ratio"] is not None]
    ratio = sum(ratios) / len(ratios) if ratios else None
    return f"{sum(row['coverage'] for row in given) / len(given):.3f} {number(ratio, 2):>5}"
