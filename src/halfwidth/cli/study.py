"""`halfwidth study`: how often a method's intervals cover the exact truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from halfwidth.cli.interrupts import keeping
from halfwidth.cli.options import JobsOption, JsonOption, LevelOption, ParamOption, PlotOption, SeedOption
from halfwidth.cli.output import number, print_table, progress, write_json
from halfwidth.cli.params import read_params
from halfwidth.errors import InputError

if TYPE_CHECKING:
    from halfwidth.study.spec import Direction


def study(
    problem: Annotated[str, typer.Argument(help="A problem with known truth; see `halfwidth problems`.")],
    dim: Annotated[int | None, typer.Option(help="Number of coefficients; the problem's own otherwise.")] = None,
    steps: Annotated[int, typer.Option(help="Rows in each replicate.")] = 50_000,
    replicates: Annotated[int, typer.Option(help="Independent repetitions.")] = 200,
    methods: Annotated[str, typer.Option(help="Comma-separated; see `halfwidth methods`.")] = "obm-normal,obm",
    eta: Annotated[float, typer.Option(help="Step constant: the step is eta k^-a.")] = 0.5,
    exponent: Annotated[float, typer.Option(help="Step exponent a, between 1/2 and 1.")] = 0.505,
    epsilon: Annotated[float | None, typer.Option(help="How strongly the data respond to the model.")] = None,
    param: ParamOption = None,
    learner: Annotated[str, typer.Option(help="plain, truncated, capped, implicit, zeroth-order or local.")] = "capped",
    direction: Annotated[str, typer.Option(help="ones, first or all: what the interval is about.")] = "ones",
    level: LevelOption = 0.95,
    jobs: JobsOption = -1,
    seed: SeedOption = 0,
    json: JsonOption = None,
    plot: PlotOption = None,
) -> None:
    """Measure coverage, width and interval score on a problem with exact truth."""
    from halfwidth.plots.style import check_plot
    from halfwidth.study import Spec, run_study
    from halfwidth.study.store import Store

    if plot is not None:
        check_plot(plot)
    asked: dict[str, Any] = {"dim": dim, "epsilon": epsilon}
    settings = {name: value for name, value in asked.items() if value is not None}
    params = read_params(problem, param or ())
    for name in settings.keys() & params.keys():
        raise InputError(f"{name} is given twice: as --{name} and as --param")
    settings |= params
    spec = Spec(
        problem,
        settings,
        tuple(name.strip() for name in methods.split(",")),
        steps,
        replicates,
        learner,
        eta,
        exponent,
        cast("Direction", direction),  # Spec checks it
        level,
        seed,
    )
    if jobs == 0 or jobs < -1:
        raise InputError.of("jobs", "be -1 or at least 1", jobs)
    store = Store()
    with keeping(store.folder, "the same command"), progress(f"{problem}, {replicates} replicates") as tell:
        rows = run_study(spec, jobs=jobs, progress=tell, store=store)
    if json is not None:
        write_json(rows, json)
    if plot is not None:
        from halfwidth.plots.study import plot_study

        plot_study(rows, plot)
    if str(json) != "-":
        _print(rows)


def _print(rows: list[dict[str, Any]]) -> None:
    last = [row for row in rows if row["step"] == rows[-1]["step"]]
    first = last[0]
    settings = ", ".join(f"{key}={value}" for key, value in first["params"].items())
    title = (
        f"{first['problem']} ({settings}); {first['learner']} SGD, eta={first['eta']}, a={first['exponent']}; "
        f"{first['step']:,} rows, {first['replicates']:,} replicates, level {first['level']}"
    )
    columns = ["method", "coverage", "+-", "of mean*", "coordinates", "width", "MIS/oracle", "bias/sd", "|Sigma error|"]
    columns += ["truncations", "diverged", "us/row"]
    table = [
        [
            row["method"],
            number(row["coverage"]),
            number(row["coverage_se"]),
            number(row["coverage_of_mean"]),
            number(row["coverage_coordinates"]),
            number(row["width"], 4),
            number(row["mis_ratio"]),
            number(row["bias_over_sd"], 2),
            number(row["sigma_error"]),
            number(row["truncations"], 1),
            str(row["diverged"]),
            number(row["us_per_row"], 2),
        ]
        for row in last
    ]
    print_table(columns, table, title)
    typer.echo("* coverage of the mean of the averages over the replicates, as in the seed paper: blind to bias")
