"""Figure 2: BM against Boot on the state-dependent streams, d = 2, 30, 50 with B = 50, 100, 200."""

from __future__ import annotations

from halfwidth.paper.target import Target, studied
from halfwidth.paper.versus import versus_arms, versus_compare, versus_sheets

TARGET = Target(
    "bootstrap",
    "Batch means against the multiplier bootstrap",
    "Boot covers more often by wider intervals; on the interval score BM is comparable at d = 2 and better at d = 50, "
    "most of all in linear regression.",
    studied(lambda order: versus_arms(order.size, order.seed, epsilon=0.5)),
    lambda rows: versus_sheets(rows, "bootstrap", "BM and Boot, state-dependent streams (epsilon = 0.5)"),
    versus_compare,
)
