"""`strategic-credit`: the seed paper's credit example, on any population of borrowers kept in a file.

9,000 agents with ten standardised features respond to a logistic classifier by gradient ascent on three of them
(`problems.strategic`): lambda = 0.01, alpha = 0.5 lambda, and `movers` = n_1 agents move at every row on average. The
population is an `.npz` file with `features` (agents, 10) and `labels` in {0, 1};
`halfwidth.streams.datasets.credit_agents` prepares the one of GiveMeSomeCredit, which is not shipped. Without a file a
labelled stand-in of the same size takes its place.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.checks import check_vector
from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.problems.base import Problem
from halfwidth.problems.strategic import strategic_problem

FEATURES = (
    "RevolvingUtilizationOfUnsecuredLines",
    "age",
    "NumberOfTime30-59DaysPastDueNotWorse",
    "DebtRatio",
    "MonthlyIncome",
    "NumberOfOpenCreditLinesAndLoans",
    "NumberOfTimes90DaysLate",
    "NumberRealEstateLoansOrLines",
    "NumberOfTime60-89DaysPastDueNotWorse",
    "NumberOfDependents",
)
MODIFIABLE = (0, 5, 7)
_STAND_IN_AGENTS = 9_000
_STAND_IN_SEED = 9_000


def strategic_credit(
    dim: int = 10,
    *,
    population: str | None = None,
    movers: int = 500,
    reach: float = 0.01,
    cost: ArrayLike | None = None,
    speed: float = 0.5,
    ridge: float = 0.01,
) -> Problem:
    """The seed paper's credit example: borrowers from a file, or a synthetic stand-in of the same size."""
    if dim != len(FEATURES):
        raise InputError.of("dim", f"be {len(FEATURES)}, the number of features of a borrower", dim)
    costs = None if cost is None else tuple(check_vector("cost", cost, len(MODIFIABLE)).tolist())
    return _problem(population, movers, reach, costs, speed, ridge)


@lru_cache(maxsize=16)
def _problem(
    population: str | None, movers: int, reach: float, costs: tuple[float, ...] | None, speed: float, ridge: float
) -> Problem:
    """Problems do not change, and solving one over 9,000 agents is worth doing once per process."""
    features, labels = stand_in() if population is None else read_population(Path(population))
    if not 1 <= movers <= len(features):
        raise InputError.of("movers", f"lie between 1 and the {len(features)} agents there are", movers)
    return strategic_problem(
        features,
        labels,
        MODIFIABLE,
        reach=reach,
        cost=costs,
        speed=speed,
        share=movers / len(features),
        ridge=ridge,
        name="strategic-credit",
        settings={
            "dim": len(FEATURES),
            "population": "stand-in" if population is None else Path(population).name,
            "movers": movers,
            "reach": reach,
            **({} if costs is None else {"cost": list(costs)}),
            "speed": speed,
            "ridge": ridge,
        },
    )


def read_population(path: Path) -> tuple[Vector, Vector]:
    """Features and labels from a file that `halfwidth.streams.datasets.credit_agents` wrote."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return arrays["features"], arrays["labels"]
    except (OSError, ValueError, KeyError) as error:
        rule = "be an .npz file with features and labels, as halfwidth.streams.datasets.credit_agents writes it"
        raise InputError.of("population", rule, f"{path}: {error}") from None


def stand_in() -> tuple[Vector, Vector]:
    """Skewed, correlated, standardised features and one label in fifteen positive; made up, always the same."""
    rng = np.random.default_rng(_STAND_IN_SEED)
    common = rng.standard_normal((_STAND_IN_AGENTS, 1))
    raw = np.exp(0.5 * (0.5 * common + rng.standard_normal((_STAND_IN_AGENTS, len(FEATURES)))))
    features = (raw - raw.mean(axis=0)) / raw.std(axis=0)
    chance = 1.0 / (1.0 + np.exp(3.0 - features @ np.linspace(-0.5, 0.7, len(FEATURES))))
    return features, (rng.random(_STAND_IN_AGENTS) < chance).astype(np.float64)
