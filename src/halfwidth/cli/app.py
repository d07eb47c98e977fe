"""The commands, each in a file of its own."""

from __future__ import annotations

from collections.abc import Callable

import typer

from halfwidth import __version__
from halfwidth.cli import battery, data, demo, fit, lists, performative, predict, reproduce, strategic, study
from halfwidth.cli.interrupts import answering

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


_COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo.demo,
    "fit": fit.fit,
    "show": predict.show,
    "predict": predict.predict,
    "strategic": strategic.strategic,
    "performative": performative.performative,
    "data": data.data,
    "study": study.study,
    "battery": battery.battery,
    "reproduce": reproduce.reproduce,
    "problems": lists.problems,
    "methods": lists.methods,
}
for _name, _command in _COMMANDS.items():
    app.command(_name)(answering(_command))
