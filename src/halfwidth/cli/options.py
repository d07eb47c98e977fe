"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from halfwidth.cli.output import FOLDERS

JobsOption = Annotated[int, typer.Option(help="Worker processes; -1 for all cores.")]
SeedOption = Annotated[int, typer.Option(min=0, help="Same seed, same numbers, whatever the jobs.")]
LevelOption = Annotated[float, typer.Option(help="Confidence level.")]
ParamOption = Annotated[
    list[str] | None,
    typer.Option(help="A parameter of the problem, see `halfwidth problems`; repeat.", metavar="NAME=VALUE"),
]
JsonOption = Annotated[
    Path | None, typer.Option("--json", help=f"Write the result as JSON; - for stdout. {FOLDERS}", metavar="FILE|-")
]
PlotOption = Annotated[
    Path | None, typer.Option("--plot", help=f"Draw a picture: .png, .svg or .pdf. {FOLDERS}", metavar="FILE")
]
