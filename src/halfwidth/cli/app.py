"""The commands, each in a file of its own."""

from __future__ import annotations

import typer

from halfwidth import __version__
from halfwidth.cli import battery, data, demo, fit, lists, predict, reproduce, strategic, study

app = typer.Typer(
    name="halfwidth",
    help="Confidence intervals for models learned by stochastic gradient steps over a stream.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"halfwidth {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Print the version."),
) -> None:
    """Confidence intervals for models learned by stochastic gradient steps over a stream.

    One pass, memory that does not grow with the stream, and an interval at any moment: for independent rows, for rows
    that depend on each other, and for data that respond to the deployed model.
    """


app.command("demo")(demo.demo)
app.command("fit")(fit.fit)
app.command("show")(predict.show)
app.command("predict")(predict.predict)
app.command("strategic")(strategic.strategic)
app.command("data")(data.data)
app.command("study")(study.study)
app.command("battery")(battery.battery)
app.command("reproduce")(reproduce.reproduce)
app.command("problems")(lists.problems)
app.command("methods")(lists.methods)
