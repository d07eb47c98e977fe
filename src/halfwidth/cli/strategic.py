"""`halfwidth strategic`: a classifier for a population that responds to it, beside the fit that ignores this."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from halfwidth.cli.options import JsonOption, LevelOption, PlotOption, SeedOption
from halfwidth.cli.output import check_outputs, write_json
from halfwidth.cli.params import listed
from halfwidth.cli.reader_options import SOURCE_HELP, reads_a_source
from halfwidth.errors import InputError


@reads_a_source
def strategic(
    table: Annotated[str, typer.Argument(help=f"The population, one agent in each row. {SOURCE_HELP}")],
    target: Annotated[str, typer.Option(help="The column of labels, of two classes; agents want the second.")],
    modifiable: Annotated[str, typer.Option(help="The columns that agents can change, comma-separated.")],
    reach: Annotated[float, typer.Option(help="Best response: a column moves by reach / cost times its coefficient.")],
    feature: Annotated[list[str] | None, typer.Option(help="A column of the classifier; repeat. All if none.")] = None,
    cost: Annotated[str | None, typer.Option(help="What a move of each costs, comma-separated; 1 for all.")] = None,
    movers: Annotated[float, typer.Option(help="Share of the agents that move at each row.")] = 0.1,
    response: Annotated[str, typer.Option(help="ascent: half of the way at each move; best: all of it.")] = "ascent",
    ridge: Annotated[float, typer.Option(help="Penalty: mean loss + ridge |coef|^2 / 2.")] = 0.01,
    rows: Annotated[int, typer.Option(help="How many rows are drawn from the population.")] = 200_000,
    seed: SeedOption = 0,
    level: LevelOption = 0.95,
    bad_rows: Annotated[str, typer.Option(help="error or skip.")] = "error",
    json: JsonOption = None,
    plot: PlotOption = None,
    *,
    reader: Any,
) -> None:
    """Learn a classifier while the rows of a table respond to it; print the equilibrium beside the naive fit."""
    from halfwidth.models import strategic as learn
    from halfwidth.plots.style import check_plot

    if plot is not None:
        check_plot(plot)
    check_outputs(json, plot)
    found = learn(
        table, target=target, modifiable=listed(modifiable), reach=reach, features=feature or None, cost=_costs(cost),
        movers=movers, response=response, ridge=ridge, rows=rows, seed=seed, level=level, bad_rows=bad_rows,
        **reader,
    )  # fmt: skip
    if json is not None:
        write_json(found.to_dict(), json)
    if plot is not None:
        from halfwidth.plots.strategic import plot_strategic

        plot_strategic(found.to_dict(), found.score_table(), plot)
    if str(json) != "-":
        typer.echo(found.summary())


def _costs(text: str | None) -> list[float] | None:
    try:
        return None if text is None else [float(part) for part in listed(text)]
    except ValueError:
        raise InputError.of("--cost", "be numbers, comma-separated", text) from None
