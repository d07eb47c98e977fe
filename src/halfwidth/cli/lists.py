"""`halfwidth problems` and `halfwidth methods`: what there is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from halfwidth.cli.output import FOLDERS, print_table, write_json

JsonOption = Annotated[
    Path | None, typer.Option("--json", help=f"Write the list as JSON; - for stdout. {FOLDERS}", metavar="FILE|-")
]


def problems(json: JsonOption = None) -> None:
    """List the problems with exact truth, and their parameters with defaults: what `study --param` sets."""
    from halfwidth.problems import PROBLEMS, problem_settings

    rows = [
        {"name": name, "summary": (make.__doc__ or "").strip(), "settings": problem_settings(name)}
        for name, make in PROBLEMS.items()
    ]
    if json is not None:
        write_json(rows, json)
        return
    table = []
    for row in rows:
        shown = (key if value is None else f"{key}={value}" for key, value in row["settings"].items())  # type: ignore[attr-defined]
        table.append([str(row["name"]), str(row["summary"]), ", ".join(shown)])
    print_table(["problem", "what it is", "parameters"], table, left=3)


def methods(json: JsonOption = None) -> None:
    """List the methods: what they assume, cost and rest on."""
    from halfwidth.methods import METHODS

    names = ("name", "summary", "law_text", "data", "cost", "memory", "pools", "citation", "critical")
    rows = [{name.removesuffix("_text"): getattr(row, name) for name in names} for row in METHODS.values()]
    if json is not None:
        write_json(rows, json)
        return
    shown = ["name", "summary", "data", "law", "cost", "citation"]
    print_table(
        ["method", "what it is", "data", "limit law", "per row", "source"],
        [[r[k] for k in shown] for r in rows],
        left=6,
    )
