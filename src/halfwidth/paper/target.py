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


def two_sets_of_runs(order: Order) -> str:
    """How the paper's own experiments are run."""
    size = order.size
    return f"{size.replicates} repetitions for the scores, {size.reference_runs} runs for theta* and Sigma."


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
    how: Callable[[Order], str] = two_sets_of_runs
    """How the numbers were made, in a sentence or two."""
    words: Callable[[Sequence[Row]], str] | None = None
    """What the numbers mean, in Markdown, computed from them."""


def studied(arms: Callable[[Order], list[Arm]]) -> Callable[[Order, Runner], list[Row]]:
    """The rows of a target that is a list of studies."""
    return lambda order, runner: run_arms(arms(order), order.size, runner)
