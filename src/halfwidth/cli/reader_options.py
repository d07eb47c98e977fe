"""The options of commands that read a source."""

from __future__ import annotations

from typing import Annotated

import typer

SOURCE_HELP = (
    "CSV, NDJSON, JSON, Parquet or Arrow: a file, folder or glob; - for stdin; sqlite:///FILE or duckdb:///FILE."
)

FormatOption = Annotated[
    str | None, typer.Option(help="csv, ndjson, arrow or parquet; otherwise by the name, or the first bytes.")
]
SeparatorOption = Annotated[
    str | None, typer.Option(help="Between the fields of CSV: one character, or tab. Found by itself otherwise.")
]
DecimalOption = Annotated[
    str | None, typer.Option(help="The decimal mark in CSV, a point or a comma. Found by itself otherwise.")
]
ThousandsOption = Annotated[str | None, typer.Option(help="The mark between thousands in CSV.")]
EncodingOption = Annotated[str | None, typer.Option(help="Of CSV, like latin-1; UTF-8 otherwise.")]
QuoteOption = Annotated[str | None, typer.Option(help="The quote in CSV; none if quotes mean nothing.")]
QueryOption = Annotated[str | None, typer.Option(help="The SELECT to run on a database.")]
