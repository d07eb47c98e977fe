"""`halfwidth show` and `halfwidth predict`: what a saved model says, and what it says about new rows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from halfwidth.cli.options import JsonOption, LevelOption
from halfwidth.cli.output import FOLDERS, write_json
from halfwidth.cli.reader_options import SOURCE_HELP, reads_a_source
from halfwidth.errors import InputError
from halfwidth.state.atomic import check_output, replacing
from halfwidth.streams.block import need

_UNDETERMINED = 1
_FEW = 5


def show(
    model: Annotated[Path, typer.Argument(help="A model that fit --save, or a checkpoint that fit wrote.")],
    level: LevelOption = 0.95,
    json: JsonOption = None,
) -> None:
    """Print the result of a saved model."""
    from halfwidth.checks import check_level
    from halfwidth.cli.fit import bare_report, has_errors
    from halfwidth.models import load

    check_level(level)
    known = load(model)
    report = known.report(level)
    if json is not None:
        write_json(report, json)
    if str(json) != "-":
        typer.echo(known.inference(level).summary() if has_errors(report) else bare_report(report))
        if known.specification_ is not None:
            typer.echo(f"reads the columns {', '.join(known.specification_.columns)}")
    if not has_errors(report):
        raise typer.Exit(_UNDETERMINED)


@reads_a_source
def predict(
    model: Annotated[Path, typer.Argument(help="A model that fit --save, or a checkpoint that fit wrote.")],
    source: Annotated[str, typer.Argument(help=SOURCE_HELP)],
    interval: Annotated[
        str | None, typer.Option(help="mean, or observation: add the bounds of an interval.", metavar="KIND")
    ] = None,
    level: LevelOption = 0.95,
    out: Annotated[
        Path | None, typer.Option(help=f"A .csv or .parquet file; stdout otherwise. {FOLDERS}", metavar="FILE")
    ] = None,
    bad_rows: Annotated[str, typer.Option(help="error, or skip: empty cells for such a row.")] = "error",
    *,
    reader: Any,
) -> None:
    """Predict every row of a source with a saved model: one line per row, in order."""
    from halfwidth.models import load
    from halfwidth.models.predict import Predictions

    found = Predictions(load(model), source, interval=interval, level=level, bad_rows=bad_rows, **reader)
    with _writer(out) as write:
        for block in found:
            write(block)
        if not found.rows:
            write(found.no_rows())
    without = sum(found.skipped.values())
    if out is not None:
        typer.echo(f"{out}: {found.rows - without:,} predictions")
    if without:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in found.skipped.items())
        typer.echo(f"{without:,} of {found.rows:,} rows have no prediction, their cells are empty: {reasons}", err=True)
    if found.resting_on_refused:
        named = ", ".join(found.refused[:_FEW]) + (" ..." if len(found.refused) > _FEW else "")
        typer.echo(
            f"{found.resting_on_refused:,} of {found.rows - without:,} predictions rest on coefficients that have no "
            f"interval ({named}), and have none either: halfwidth show says why",
            err=True,
        )


@contextmanager
def _writer(out: Path | None) -> Iterator[Any]:
    """A function that writes a block; a file appears under its name only when it is whole."""
    if out is None:
        yield _CsvWriter(sys.stdout.write)
        return
    if out.suffix not in (".csv", ".parquet"):
        raise InputError.of("out", "end in .csv or .parquet", str(out))
    check_output(out, "file of predictions")
    with replacing(out, "file of predictions") as part:
        if out.suffix == ".csv":
            with part.open("w", encoding="utf-8") as file:
                yield _CsvWriter(file.write)
        else:
            writer = _ParquetWriter(part)
            yield writer
            writer.close()


class _CsvWriter:
    """Blocks as lines with commas; a number that is missing is an empty cell, quoted where it is the whole line.

    Readers of CSV leave out lines without any character, and all later rows would move up.
    """

    def __init__(self, write: Any) -> None:
        self._write, self._begun = write, False

    def __call__(self, block: dict[str, Any]) -> None:
        if not self._begun:
            self._write(",".join(block) + "\n")
            self._begun = True
        empty = "" if len(block) > 1 else '""'
        cells = [[empty if value != value else repr(value) for value in column.tolist()] for column in block.values()]
        self._write("".join(",".join(row) + "\n" for row in zip(*cells, strict=True)))


class _ParquetWriter:
    """Blocks as row groups; a number that is missing is null."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: Any = None

    def __call__(self, block: dict[str, Any]) -> None:
        pa, pq = need("pyarrow"), need("pyarrow.parquet")
        table = pa.table({name: pa.array(values, from_pandas=True) for name, values in block.items()})
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, table.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        """Write the index at the end of the file."""
        self._writer.close()
