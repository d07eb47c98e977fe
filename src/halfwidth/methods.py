"""The table of methods: a name, what it watches with, how it makes an interval, and what it assumes.

A new method is a new file and a row here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from halfwidth.errors import InputError, UnknownName
from halfwidth.watchers import OverlappingBatchMeans, Watcher
from halfwidth.watchers.base import Critical

Data = Literal["iid", "markov", "state-dependent"]


@dataclass(frozen=True)
class Method:
    """One row of the table."""

    name: str
    summary: str
    watch: Callable[[int, float], Watcher]
    """From the dimension and the step exponent to a fresh watcher."""
    critical: Critical
    law: str
    data: Data
    """The most general data it is valid for."""
    cost: str
    memory: str
    pools: str
    citation: str


def _overlapping(dim: int, step_exponent: float) -> Watcher:
    return OverlappingBatchMeans(dim, step_exponent=step_exponent)


_ROWS = (
    Method(
        "obm",
        "overlapping batch means, growing blocks, critical value calibrated to the few blocks there are",
        _overlapping,
        "calibrated",
        "Brownian functional of the block plan at n",
        "state-dependent",
        "O(d^2)",
        "O(d^2)",
        "independent runs",
        "Roy and Balasubramanian (2023); Zhu, Chen and Wu (2023); calibration: halfwidth",
    ),
    Method(
        "obm-normal",
        "the paper's interval: the same covariance with the normal critical value",
        _overlapping,
        "normal",
        "normal, as if the covariance were known",
        "state-dependent",
        "O(d^2)",
        "O(d^2)",
        "independent runs",
        "Roy and Balasubramanian (2023)",
    ),
)

METHODS: dict[str, Method] = {row.name: row for row in _ROWS}


def method(name: str) -> Method:
    """The row of that name."""
    if name not in METHODS:
        raise UnknownName.among("method", name, METHODS)
    return METHODS[name]


def methods(names: Iterable[str]) -> tuple[Method, ...]:
    """Several rows, each once."""
    rows = tuple(method(name) for name in names)
    if not rows or len({row.name for row in rows}) < len(rows):
        raise InputError.of("methods", "name at least one method, each once", [row.name for row in rows])
    return rows
