"""`halfwidth fit`: a regression over a file or a stream, with standard errors for rows in time order."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from halfwidth.cli.interrupts import interruptible, plain_warnings
from halfwidth.cli.on_the_way import Lines
from halfwidth.cli.options import JsonOption, LevelOption, PlotOption
from halfwidth.cli.output import check_outputs, write_json
from halfwidth.cli.reader_options import SOURCE_HELP, reads_a_source
from halfwidth.errors import InputError

if TYPE_CHECKING:
    from halfwidth.models import StreamModel

_UNDETERMINED = 1

_FAMILY_HELP = "linear, logistic, multinomial, poisson, gamma, negative-binomial, quantile or huber."
AlphaOption = Annotated[
    float | None, typer.Option(help="Dispersion, with --family negative-binomial; estimated when left out.")
]
GroupOption = Annotated[
    list[str] | None,
    typer.Option(help="Rows of one group, in any order, depend on each other; groups do not.", metavar="COLUMN"),
]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Go on from the checkpoint; start afresh if it is missing.")
]
ResumeAtOption = Annotated[
    int | None, typer.Option(help="The number of the first row that stdin gives now, to resume.", metavar="ROW")
]
CheckpointErrorsOption = Annotated[
    str, typer.Option(help="error, or warn: go on without a checkpoint that cannot be written.")
]
UnknownLevelOption = Annotated[
    str, typer.Option(help="A level that the first rows lack: add (a column of its own), other or error.")
]
ShowOption = Annotated[
    list[str] | None,
    typer.Option(help="A coefficient that --every prints; repeat. The first four otherwise.", metavar="NAME"),
]
SaveOption = Annotated[
    Path | None, typer.Option(help="Keep the model, for halfwidth show and predict.", metavar="FILE")
]


@reads_a_source
def fit(
    source: Annotated[str, typer.Argument(help=SOURCE_HELP)],
    target: Annotated[str | None, typer.Option(help="The column to explain.")] = None,
    feature: Annotated[list[str] | None, typer.Option(help="A column to explain it by; repeat.")] = None,
    formula: Annotated[str | None, typer.Option(help='Like "y ~ a + C(b) + log(c)".')] = None,
    family: Annotated[str, typer.Option(help=_FAMILY_HELP)] = "linear",
    quantile: Annotated[float | None, typer.Option(help="Which quantile, with --family quantile (0.5).")] = None,
    alpha: AlphaOption = None,
    no_intercept: Annotated[bool, typer.Option("--no-intercept", help="Fit without an intercept.")] = False,
    ridge: Annotated[float, typer.Option(help="Penalty: mean loss + ridge |coef|^2 / 2. None by default.")] = 0.0,
    method: Annotated[str, typer.Option(help="auto, or a row of `halfwidth methods` that watches.")] = "auto",
    engine: Annotated[str, typer.Option(help="auto, newton or sgd.")] = "auto",
    level: LevelOption = 0.95,
    time: Annotated[str | None, typer.Option(help="Check that this column is in order.", metavar="COLUMN")] = None,
    group: GroupOption = None,
    weight: Annotated[str | None, typer.Option(help="Probability weights of rows.", metavar="COLUMN")] = None,
    offset: Annotated[str | None, typer.Option(help="Added to the linear predictor.", metavar="COLUMN")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="Keep what was learned in this file.", metavar="FILE")] = None,
    resume: ResumeOption = False,
    resume_at: ResumeAtOption = None,
    checkpoint_errors: CheckpointErrorsOption = "error",
    bad_rows: Annotated[str, typer.Option(help="error or skip.")] = "error",
    unknown_level: UnknownLevelOption = "add",
    passes: Annotated[str, typer.Option(help="auto reads again where one pass was not enough; or 1, 2, ...")] = "auto",
    every: Annotated[int | None, typer.Option(help="Print intervals after every so many rows.", metavar="N")] = None,
    show: ShowOption = None,
    save: SaveOption = None,
    json: JsonOption = None,
    plot: PlotOption = None,
    *,
    reader: Any,
) -> None:
    """Fit a regression in one pass, with standard errors that are right for rows in time order."""
    from halfwidth.checks import check_level
    from halfwidth.models import fit as fit_source
    from halfwidth.plots.style import check_plot

    check_level(level)
    if plot is not None:
        check_plot(plot)
    check_outputs(json, plot, save)
    if resume and checkpoint is not None and not checkpoint.exists():
        typer.echo(f"no checkpoint at {checkpoint} yet: starting from row 1", err=True)
    lines = Lines(show or ())

    def report(model: StreamModel) -> None:
        typer.echo(lines.add(model.report(level)), err=str(json) == "-")

    with interruptible(checkpoint), plain_warnings():
        model = fit_source(
            source, target=target, features=feature or None, formula=formula, family=family, quantile=quantile,
            alpha=alpha, fit_intercept=not no_intercept, ridge=ridge, method=method, engine=engine, time=time,
            group=_one(group), weight=weight, offset=offset, checkpoint=checkpoint, resume=resume, resume_at=resume_at,
            checkpoint_errors=checkpoint_errors, bad_rows=bad_rows,
            unknown_level=unknown_level, passes=_passes(passes), every=every,
            report=None if every is None else report, progress=sys.stderr.isatty(), **reader,
        )  # fmt: skip
    if save is not None:
        model.save(save)
    _tell(model, level, json, plot)


def _tell(model: StreamModel, level: float, json: Path | None, plot: Path | None) -> None:
    """The result as JSON, as a picture and as a table; the exit code says whether it has standard errors."""
    final = model.report(level)
    if json is not None:
        write_json(final, json)
    if plot is not None:
        draw(model, final, plot)
    if str(json) != "-":
        typer.echo(model.inference(level).summary() if has_errors(final) else bare_report(final))
    if not has_errors(final):
        typer.echo(f"error ({final['status']}): {final['diagnostics']['warnings'][0]}", err=True)
        raise typer.Exit(_UNDETERMINED)


def draw(model: StreamModel, report: dict[str, Any], path: Path) -> None:
    """The picture of a fit; of the coefficients alone where there is no interval for any."""
    from halfwidth.plots.result import ResultTable, plot_result

    if has_errors(report):
        model.inference(report["level"]).plot(path=path)
        return
    title = f"{report['family']} regression, {report['n']:,} rows"
    plot_result(ResultTable(title, report["status"], report["level"], report["coefficients"]), path=path)


def _one(groups: list[str] | None) -> str | None:
    if groups is not None and len(groups) > 1:
        raise InputError.of("--group", "be given once: two-way clusters do not exist yet", ", ".join(groups))
    return groups[0] if groups else None


def _passes(text: str) -> Any:
    return int(text) if text.isdecimal() and len(text) < 5 else text


def has_errors(report: dict[str, Any]) -> bool:
    """Whether there is an interval for any coefficient."""
    return any(row["std_err"] is not None for row in report["coefficients"])


def bare_report(report: dict[str, Any]) -> str:
    """Coefficients without errors."""
    width = max(len(row["name"]) for row in report["coefficients"])
    lines = [f"{report['family']} regression, n = {report['n']:,}, no standard errors: {report['status']}"]
    return "\n".join(lines + [f"{row['name'].ljust(width)}  {_number(row['coef'])}" for row in report["coefficients"]])


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.6g}"
