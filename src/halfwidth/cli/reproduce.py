"""`halfwidth reproduce`: the figures and tables of the paper, with the exact truth beside them."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Annotated

import typer

from halfwidth.cli.interrupts import keeping
from halfwidth.cli.options import JobsOption, SeedOption


def reproduce(
    target: Annotated[
        str,
        typer.Argument(
            help="synthetic, bootstrap, dependence-linear, dependence-logistic, independent, credit, rate, times, all."
        ),
    ],
    scale: Annotated[str, typer.Option(help="paper, or smoke: the ends of every list, in seconds.")] = "smoke",
    out: Annotated[Path, typer.Option(help="Where tables, pictures and pages go.", metavar="DIR")] = Path("reproduced"),
    jobs: JobsOption = -1,
    seed: SeedOption = 0,
    backend: Annotated[str, typer.Option(help="local, or dask.")] = "local",
    scheduler: Annotated[
        str | None, typer.Option(help="A running Dask scheduler; without it one is started here.", metavar="ADDRESS")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run to the same folder.")] = False,
    synthetic: Annotated[
        bool, typer.Option("--synthetic", help="credit: run on a labelled stand-in instead of the data.")
    ] = False,
    path: Annotated[Path | None, typer.Option(help="credit: your own copy of cs-training.csv.", metavar="FILE")] = None,
) -> None:
    """Run the paper's experiments and say, with Monte Carlo errors, what was reproduced."""
    from halfwidth.checks import check_count
    from halfwidth.paper import chosen_targets
    from halfwidth.paper import reproduce as run
    from halfwidth.paper.arms import scale as scale_of
    from halfwidth.paper.run_arms import Runner
    from halfwidth.paper.target import Order
    from halfwidth.plots.style import check_plot
    from halfwidth.streams.block import need
    from halfwidth.streams.datasets.credit_agents import credit_population
    from halfwidth.streams.datasets.fetch import cache_folder
    from halfwidth.study.backends import make_backend
    from halfwidth.study.store import Store

    targets, size = chosen_targets(target), scale_of(scale)
    check_count("seed", seed, at_least=0)
    check_plot(out / "figure.png")
    need("pyarrow")
    needs_data = any(chosen.name == "credit" for chosen in targets) and not synthetic
    population = str(credit_population(path)) if needs_data else None
    kept = cache_folder() / "reproduce" / hashlib.sha256(str(out.resolve()).encode()).hexdigest()[:12]
    if not resume:
        shutil.rmtree(kept, ignore_errors=True)
    workers = make_backend(backend, jobs=jobs, scheduler=scheduler)
    try:
        with keeping(kept, "the same command with --resume"):
            run(targets, Order(size, seed, population), Runner(workers, Store(kept), typer.echo), out)
    finally:
        workers.close()
