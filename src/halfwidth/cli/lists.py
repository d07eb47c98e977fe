"""`halfwidth problems` and `halfwidth methods`: lists of the built-in problems and methods."""

from __future__ import annotations

from typing import Any

from halfwidth.cli.options import JsonOption
from halfwidth.cli.output import print_table, write_json


def problems(json: JsonOption = None) -> None:
    """List the built-in problems and their parameters, which `study --param` sets, with their defaults."""
    from halfwidth.problems import PROBLEMS, problem_settings

    rows: list[dict[str, Any]] = [
        {"name": name, "summary": (make.__doc__ or "").strip(), "settings": problem_settings(name)}
        for name, make in PROBLEMS.items()
    ]
    if json is not None:
        write_json(rows, json)
        return
    table = []
    for row in rows:
        shown = (key if value is None else f"{key}={value}" for key, value in row["settings"].items())
        table.append([row["name"], row["summary"], ", ".join(shown)])
    print_table(["problem", "what it is", "parameters"], table, left=3)


def methods(json: JsonOption = None) -> None:
    """List the methods: the data they are valid for, their limit law, cost and source."""
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
