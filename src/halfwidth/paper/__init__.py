"""The paper, reproduced: one short file per figure or table, and `reproduce`, which runs them.

A. Roy and K. Balasubramanian, *Online covariance estimation for stochastic gradient descent under Markovian sampling*.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from halfwidth.errors import UnknownName
from halfwidth.paper import credit_example, dependence, rate, synthetic, times, versus
from halfwidth.paper.choices import choices_table
from halfwidth.paper.paper_scores import Row
from halfwidth.paper.report import page
from halfwidth.paper.run_arms import Runner
from halfwidth.paper.target import Order, Target
from halfwidth.plots.sheet import draw_sheet
from halfwidth.streams.block import need

__all__ = ["TARGETS", "chosen_targets", "reproduce"]

_TARGETS = (
    synthetic.TARGET,
    versus.BOOTSTRAP,
    dependence.LINEAR,
    dependence.LOGISTIC,
    versus.INDEPENDENT,
    credit_example.TARGET,
    rate.TARGET,
    times.TARGET,
)
TARGETS: dict[str, Target] = {target.name: target for target in _TARGETS}


def chosen_targets(name: str) -> tuple[Target, ...]:
    """Return the target of that name, or all of them.

    Parameters
    ----------
    name : str
        A key of `TARGETS`, or ``"all"``.

    Returns
    -------
    tuple of Target
        The targets, in the order of the paper.

    Raises
    ------
    UnknownName
        If there is no such target.
    """
    if name == "all":
        return tuple(TARGETS.values())
    if name not in TARGETS:
        raise UnknownName.among("target", name, [*TARGETS, "all"])
    return (TARGETS[name],)


def reproduce(targets: Sequence[Target], order: Order, runner: Runner, out: Path) -> None:
    """Run targets and write, for each, rows and comparisons as Parquet, pictures, and a page in Markdown.

    Parameters
    ----------
    targets : sequence of Target
        What is run.
    order : Order
        The scale, the seed, and the population of the credit example.
    runner : Runner
        Where studies run and are kept, and what is told about progress.
    out : Path
        The folder that the files go to; it is made if it is missing.
    """
    out.mkdir(parents=True, exist_ok=True)
    seconds = {}
    for target in targets:
        started = time.perf_counter()
        rows = target.run(order, runner)
        comparisons = target.compare(rows)
        write_parquet(rows, out / f"{target.name}.parquet")
        write_parquet([c.to_dict() for c in comparisons], out / f"{target.name}-comparisons.parquet")
        for sheet in target.sheets(rows):
            draw_sheet(sheet, out)
        (out / f"{target.name}.md").write_text(page(target, order, rows, comparisons), encoding="utf-8")
        seconds[target.name] = time.perf_counter() - started
        runner.tell(f"{target.name}: {seconds[target.name]:.0f} s, {out / (target.name + '.md')}")
    if len(targets) > 1:
        (out / "index.md").write_text(_index(targets, order, seconds), encoding="utf-8")


def write_parquet(rows: Sequence[Row], path: Path) -> None:
    """The rows as a table; a field that some rows lack is null there, and settings are JSON."""
    pa, pq = need("pyarrow"), need("pyarrow.parquet")
    names = list(dict.fromkeys(name for row in rows for name in row))

    def plain(value: Any) -> Any:
        return json.dumps(value) if isinstance(value, dict) else value

    pq.write_table(pa.table({name: [plain(row.get(name)) for row in rows] for name in names}), path)


def _index(targets: Sequence[Target], order: Order, seconds: dict[str, float]) -> str:
    lines = [
        "# The paper, reproduced",
        "",
        f"`halfwidth reproduce all --scale {order.size.name} --seed {order.seed}`, "
        f"{sum(seconds.values()):.0f} seconds in all.",
        "",
        "| target | what it is | seconds |",
        "|---|---|---|",
        *(f"| [{t.name}]({t.name}.md) | {t.title} | {seconds[t.name]:.0f} |" for t in targets),
        "",
        "## What the paper says, and what we had to choose",
        "",
        choices_table(),
    ]
    return "\n".join(lines) + "\n"
