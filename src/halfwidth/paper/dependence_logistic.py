"""Effect of state dependence on BM, logistic regression: epsilon = 0.1, 0.5, 0.9 in d = 2 and 5."""

from __future__ import annotations

from halfwidth.paper.dependence import dependence_arms, dependence_compare, dependence_sheets
from halfwidth.paper.target import Target, studied

TARGET = Target(
    "dependence-logistic",
    "Effect of state dependence, logistic regression",
    "The estimator is less sensitive to the dependence than in linear regression.",
    studied(lambda order: dependence_arms(order.size, order.seed, "logistic")),
    lambda rows: dependence_sheets(rows, "dependence-logistic", "logistic"),
    lambda rows: dependence_compare(rows, worse=False),
)
