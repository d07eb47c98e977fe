"""The appendix's figure: BM against Boot when the Markov data do not answer back (epsilon = 0)."""

from __future__ import annotations

from halfwidth.paper.target import Target, studied
from halfwidth.paper.versus import versus_arms, versus_compare, versus_sheets

TARGET = Target(
    "independent",
    "Batch means against the multiplier bootstrap, state-independent data",
    "As with state-dependent data: Boot covers more often by wider intervals, and BM has the better interval score, "
    "most of all in linear regression with many coefficients.",
    studied(lambda order: versus_arms(order.size, order.seed, epsilon=0.0)),
    lambda rows: versus_sheets(rows, "independent", "BM and Boot, state-independent streams (epsilon = 0)"),
    versus_compare,
)
