"""The options of commands that read a source."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any

import typer

SOURCE_HELP = (
    "CSV, NDJSON, JSON, Parquet or Arrow: a file, folder or glob; - for stdin; sqlite:///FILE or duckdb:///FILE."
)

_HELP = {
    "format": "csv, ndjson, arrow or parquet; otherwise by the name, or the first bytes.",
    "separator": "Between the fields of CSV: one character, or tab. Found by itself otherwise.",
    "decimal": "The decimal mark in CSV, a point or a comma. Found by itself otherwise.",
    "thousands": "The mark between thousands in CSV.",
    "encoding": "Of CSV, like latin-1; UTF-8 otherwise.",
    "quote": "The quote in CSV; none if quotes mean nothing.",
    "query": "The SELECT to run on a database.",
}


def reads_a_source(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a reader; it takes all of them in one argument, `reader`."""

    @wraps(command)
    def with_options(**given: Any) -> None:
        reader = {name: given.pop(name) for name in _HELP}
        command(**given, reader=reader)

    own = [one for one in signature(command, eval_str=True).parameters.values() if one.name != "reader"]
    options = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[str | None, typer.Option(help=text)])
        for name, text in _HELP.items()
    ]
    parameters = [*(one.replace(kind=Parameter.KEYWORD_ONLY) for one in own), *options]
    with_options.__signature__ = Signature(parameters, return_annotation=None)  # type: ignore[attr-defined]  # typer reads it
    with_options.__annotations__ = {one.name: one.annotation for one in parameters} | {"return": None}
    return with_options
