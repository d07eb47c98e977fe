"""Joint tests of the terms of a formula: that all coefficients of a category, a spline or an interaction are zero."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from halfwidth.errors import HalfwidthError
from halfwidth.inference import WaldTest

_COLUMNS = ("statistic", "df_constraint", "fvalue", "df_denom", "pvalue")


@dataclass(frozen=True, repr=False)
class TermTests:
    """A Wald test for every term.

    Parameters
    ----------
    tests : mapping from str to WaldTest or HalfwidthError
        The test of each term, or why it has none.
    """

    tests: Mapping[str, WaldTest | HalfwidthError]

    def __getitem__(self, term: str) -> WaldTest:
        found = self.tests[term]
        if isinstance(found, HalfwidthError):
            raise found
        return found

    @property
    def table(self) -> Any:
        """A line for each term: a pandas frame, or a dict of dicts without pandas; NaN where there is no test."""
        rows = {term: dict(zip(_COLUMNS, _numbers(test), strict=True)) for term, test in self.tests.items()}
        try:
            import pandas as pd
        except ImportError:
            return rows
        return pd.DataFrame.from_dict(rows, orient="index", columns=list(_COLUMNS))

    def _lines(self) -> list[str]:
        return [f"{term}: {test}" for term, test in self.tests.items()]

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(f"<div>{escape(line)}</div>" for line in self._lines())


def _numbers(test: WaldTest | HalfwidthError) -> tuple[float, ...]:
    if isinstance(test, HalfwidthError):
        return (math.nan,) * len(_COLUMNS)
    return test.statistic, test.df_num, test.fvalue, test.df_denom, test.p_value
