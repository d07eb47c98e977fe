"""`halfwidth demo`: a stream with feedback, and an interval that closes in on the truth."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from halfwidth.cli.output import FOLDERS, print_table

if TYPE_CHECKING:
    from halfwidth.inference import Interval

_FRAME_SECONDS = 0.06


def demo(
    rows: Annotated[int, typer.Option(help="Rows to stream.")] = 500_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the stream.")] = 0,
    out: Annotated[Path, typer.Option(help=f"Where the picture goes. {FOLDERS}")] = Path("demo.png"),
) -> None:
    """Watch an interval close in on the truth while the data respond to the model."""
    from halfwidth.checks import check_count
    from halfwidth.learners import Auto
    from halfwidth.plots.style import check_plot
    from halfwidth.plots.trace import plot_trace
    from halfwidth.problems import problem
    from halfwidth.study.trace import trace

    check_count("rows", rows, at_least=5_000)
    check_plot(out)
    world = problem("seed-linear", dim=3, epsilon=0.5)
    learner = Auto(world, seed=seed)
    typer.echo("A linear model learns from a Markov stream whose features respond to the deployed model.")
    typer.echo("One pass, no row is kept, and at any moment an interval for every coefficient.\n")
    started = time.perf_counter()
    seen: list[Interval] = []
    with _screen() as show:
        for interval in trace(learner, rows):
            seen.append(interval)
            show(interval, world.theta_star)
    elapsed = time.perf_counter() - started
    result = learner.result()
    final = result.interval()
    table = [
        [f"theta[{j}]", f"{e:.4f}", f"{s:.4f}", f"[{lo:.4f}, {hi:.4f}]", f"{t:.4f}", "yes" if lo <= t <= hi else "no"]
        for j, (e, s, lo, hi, t) in enumerate(
            np.column_stack([result.params, result.bse, final.lower, final.upper, world.theta_star])
        )
    ]
    print_table(["", "estimate", "std err", "95% interval", "truth", "covered"], table, f"after {rows:,} rows")
    typer.echo(f"{rows:,} rows in {elapsed:.1f} s; status {result.status}")
    plot_trace(seen, world.theta_star, f"A stream with feedback ({world.name}, epsilon = 0.5)", out)
    typer.echo(f"picture: {out}")


class _screen:  # noqa: N801  (used as a function)
    """Shows each interval: live in a terminal, as a plain line now and then elsewhere."""

    def __enter__(self) -> Any:
        self._live: Any = None
        self._lines = 0
        if sys.stdout.isatty():
            from rich.live import Live

            self._live = Live(refresh_per_second=30, transient=True)
            self._live.start()
        return self._show

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def _show(self, interval: Interval, theta_star: Any) -> None:
        if self._live is not None:
            self._live.update("\n".join(_bars(interval, theta_star)))
            time.sleep(_FRAME_SECONDS)
        elif self._lines % 6 == 0:
            pairs = np.column_stack([interval.estimate, interval.half_width])
            parts = [f"{estimate:.3f} +- {half:.3f}" for estimate, half in pairs]
            typer.echo(f"{interval.n:>10,} rows   " + "   ".join(parts))
        self._lines += 1


def _bars(interval: Interval, theta_star: Any, low: float = -0.3, high: float = 1.3, width: int = 64) -> list[str]:
    """One line per coordinate: the interval as a bar, the estimate as a dot, the truth as a bold mark."""

    def column(x: float) -> int:
        return max(0, min(width - 1, round((x - low) / (high - low) * (width - 1))))

    lines = [f"{interval.n:>10,} rows   (| truth, o estimate, - interval)"]
    columns: Any = (interval.estimate, interval.lower, interval.upper, theta_star)
    for j, (estimate, lower, upper, truth) in enumerate(zip(*columns, strict=True)):
        cells = [" "] * width
        for i in range(column(lower), column(upper) + 1):
            cells[i] = "[cyan]-[/]"
        cells[column(truth)] = "[bold]|[/]"
        cells[column(estimate)] = "[bold cyan]o[/]"
        lines.append(f"theta\\[{j}] " + "".join(cells) + f" {estimate:7.4f} +- {(upper - lower) / 2:.4f}")
    return lines
