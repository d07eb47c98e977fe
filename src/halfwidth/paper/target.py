"""A target: one figure or table of the paper, as a specification, pictures and comparisons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from halfwidth.paper.arms import Arm, Scale
from halfwidth.paper.comparisons import Comparison
from halfwidth.paper.paper_scores import Row
from halfwidth.paper.run_arms import Runner, run_arms
from halfwidth.plots.sheet import Sheet


@dataclass(frozen=True)
class Order:
    """What the user asked for; `population` is a prepared file of borrowers, None for the stand-in."""

    size: Scale
    seed: int
    population: str | None = None


@dataclass(frozen=True)
class Target:
    """What `halfwidth reproduce NAME` runs, draws and says."""

    name: str
    title: str
    says: str
    """What the paper concludes from this figure, in a sentence or two."""
    run: Callable[[Order, Runner], list[Row]]
    sheets: Callable[[Sequence[Row]], list[Sheet]]
    compare: Callable[[Sequence[Row]], list[Comparison]]


def studied(arms: Callable[[Order], list[Arm]]) -> Callable[[Order, Runner], list[Row]]:
    """The rows of a target that is a list of studies."""
    return lambda order, runner: run_arms(arms(order), order.size, runner)
