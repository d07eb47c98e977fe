"""Effect of the strength of the feedback on BM: epsilon = 0.1, 0.5, 0.9 in d = 2 and 5, linear and logistic."""

from __future__ import annotations

from collections.abc import Sequence

from halfwidth.paper.arms import BM, Arm, Model, Scale, synthetic_arm, with_auto
from halfwidth.paper.comparisons import (
    Comparison,
    covers,
    difference,
    last,
    log_ratio,
    sign,
    slopes,
    unchanged,
)
from halfwidth.paper.panels import EXACT, PAPER, sheet
from halfwidth.paper.paper_scores import Row
from halfwidth.paper.target import Target, studied
from halfwidth.plots.sheet import Sheet

EPSILONS = (0.1, 0.5, 0.9)
DIMS = (2, 5)


def dependence_arms(size: Scale, seed: int, model: Model) -> list[Arm]:
    """The studies: dimensions by strength of the feedback."""
    return [
        synthetic_arm(size, seed, model, dim, *with_auto(BM), epsilon=epsilon)
        for dim in DIMS
        for epsilon in size.some(EPSILONS)
    ]


def dependence_sheets(rows: Sequence[Row], name: str, model: Model) -> list[Sheet]:
    """The pictures: the paper's, and against the exact truth."""
    bm = [row for row in rows if row["name"] == "BM"]
    title = f"Strength of the feedback (epsilon), {model} regression"
    return [
        sheet(bm, name, title, PAPER, "epsilon", "dim"),
        sheet(rows, f"{name}-exact", f"{title}: against the exact truth", EXACT, "epsilon", "dim"),
    ]


def dependence_compare(rows: Sequence[Row], *, worse: bool) -> list[Comparison]:
    """From the weakest feedback to the strongest; `worse`: the paper says that the error grows."""
    bm = [row for row in rows if row["name"] == "BM"]
    found = slopes(bm, "dim", "epsilon") + covers(rows, "dim", "epsilon")
    for dim in DIMS:
        ends = last(bm, dim=dim)
        weak, strong = min(ends, key=_epsilon), max(ends, key=_epsilon)
        where = f"d = {dim}, epsilon {weak['epsilon']} to {strong['epsilon']}"
        error = log_ratio(strong, weak, "sigma_error")
        if worse:
            found.append(sign("the error grows with epsilon (log ratio)", where, *error, negative=False))
        else:
            found.append(unchanged("the error does not depend on epsilon (log ratio)", where, *error))
        for field, which in (("coverage_paper", "theta* from the runs"), ("coverage", "exact theta*")):
            change = difference(strong, weak, field)
            found.append(unchanged(f"coverage does not depend on epsilon ({which})", where, *change))
    return found


def _epsilon(row: Row) -> float:
    return float(row["epsilon"])


def _target(model: Model, says: str, *, worse: bool) -> Target:
    name = f"dependence-{model}"
    return Target(
        name,
        f"Effect of state dependence, {model} regression",
        says,
        studied(lambda order: dependence_arms(order.size, order.seed, model)),
        lambda rows: dependence_sheets(rows, name, model),
        lambda rows: dependence_compare(rows, worse=worse),
    )


_SENSITIVE = "Stronger dependence makes the covariance error larger and leaves the coverage as it is."
_INSENSITIVE = "The estimator is less sensitive to the dependence than in linear regression."
LINEAR = _target("linear", _SENSITIVE, worse=True)
LOGISTIC = _target("logistic", _INSENSITIVE, worse=False)
