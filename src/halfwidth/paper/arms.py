"""The arms of an experiment: which streams, dimensions and methods, at which scale.

Everything the paper states is stated here: eta_k = 2 k^-a with a = 0.5005, 200 repetitions for the scores and 500 runs
for its own estimates of theta* and Sigma, N = 50,000 (linear) and 125,000 (logistic), level 0.95, direction 1. What it
leaves open is listed in `halfwidth.paper.choices`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np

from halfwidth.errors import UnknownName
from halfwidth.study import Spec

Model = Literal["linear", "logistic"]
T = TypeVar("T")

BM = "obm-normal"
MODELS: tuple[Model, ...] = ("linear", "logistic")
_NAMES = {"obm-normal": "BM", "bootstrap": "Boot", "auto": "auto"}


@dataclass(frozen=True)
class Scale:
    """How large an experiment is; `few` runs the ends of every list only."""

    name: str
    replicates: int
    reference_runs: int
    rows: dict[str, int]
    moments: int
    few: bool

    def some(self, values: Sequence[T]) -> tuple[T, ...]:
        return (values[0], values[-1]) if self.few else tuple(values)

    def checkpoints(self, rows: int) -> tuple[int, ...]:
        grid = np.geomspace(max(rows / 100, 200), rows, self.moments).round()
        return tuple(int(step) for step in grid)


SCALES = {
    "paper": Scale("paper", 200, 500, {"linear": 50_000, "logistic": 125_000, "credit": 20_000}, 12, False),
    "smoke": Scale("smoke", 4, 8, {"linear": 5_000, "logistic": 5_000, "credit": 5_000}, 4, True),
}


def scale(name: str) -> Scale:
    """The scale of that name."""
    if name not in SCALES:
        raise UnknownName.among("scale", name, SCALES)
    return SCALES[name]


@dataclass(frozen=True)
class Arm:
    """One study of an experiment, and the labels that its rows carry in tables and pictures."""

    labels: dict[str, Any]
    spec: Spec


def boot(copies: int) -> str:
    """The name of the multiplier bootstrap with so many copies."""
    return f"bootstrap:copies={copies}"


def short_name(method: str) -> str:
    """What the paper calls a method."""
    return _NAMES[method.partition(":")[0]]


def with_auto(*methods: str) -> tuple[str, ...]:
    """The paper's methods, and ours beside them."""
    return (*methods, "auto")


def synthetic_arm(
    size: Scale,
    seed: int,
    model: Model,
    dim: int,
    *methods: str,
    epsilon: float = 0.5,
    learner: str = "capped",
    variant: str = "stabilised",
) -> Arm:
    """One of the paper's synthetic streams; its squared loss has no factor 1/2."""
    settings: dict[str, Any] = {"dim": dim, "epsilon": epsilon}
    settings |= {"scale": 2.0} if model == "linear" else {"ridge": 0.01}
    labels = {"variant": variant, "model": model, "dim": dim, "epsilon": epsilon}
    return Arm(labels, paper_spec(size, seed, f"seed-{model}", settings, size.rows[model], methods, learner))


def paper_spec(
    size: Scale, seed: int, problem: str, settings: dict[str, Any], rows: int, methods: Sequence[str], learner: str
) -> Spec:
    """The study of an arm with the paper's steps."""
    return Spec(
        problem,
        settings,
        tuple(methods),
        rows,
        size.replicates,
        learner,
        eta=2.0,
        exponent=0.5005,
        seed=seed,
        checkpoints=size.checkpoints(rows),
    )
