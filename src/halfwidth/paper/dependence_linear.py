"""Effect of state dependence on BM, linear regression: epsilon = 0.1, 0.5, 0.9 in d = 2 and 5."""

from __future__ import annotations

from halfwidth.paper.dependence import dependence_arms, dependence_compare, dependence_sheets
from halfwidth.paper.target import Target, studied

TARGET = Target(
    "dependence-linear",
    "Effect of state dependence, linear regression",
    "Stronger dependence makes the covariance error larger and leaves the coverage as it is.",
    studied(lambda order: dependence_arms(order.size, order.seed, "linear")),
    lambda rows: dependence_sheets(rows, "dependence-linear", "linear"),
    lambda rows: dependence_compare(rows, worse=True),
)
