"""`halfwidth performative`: the stable point of a problem whose data respond, its optimum, and the naive fit."""

from __future__ import annotations

from typing import Annotated

import typer

from halfwidth.cli.options import JsonOption, LevelOption, ParamOption, SeedOption
from halfwidth.cli.output import check_outputs, write_json
from halfwidth.cli.params import read_params


def performative(
    problem: Annotated[str, typer.Argument(help="A problem whose data respond; see `halfwidth problems`.")],
    param: ParamOption = None,
    rows: Annotated[int, typer.Option(help="How many rows are learned from.")] = 100_000,
    seed: SeedOption = 0,
    level: LevelOption = 0.95,
    json: JsonOption = None,
) -> None:
    """Learn the performatively stable point; print it beside the performative optimum and the naive fit."""
    from halfwidth.models import performative as learn
    from halfwidth.problems import problem as build

    check_outputs(json)
    found = learn(build(problem, **read_params(problem, param or ())), rows=rows, seed=seed, level=level)
    if json is not None:
        write_json(found.to_dict(), json)
    if str(json) != "-":
        typer.echo(found.summary())
