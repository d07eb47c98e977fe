"""Limit laws and critical values, intervals, tests, the result object and its summary table."""

from halfwidth.inference.diagnostics import Diagnostics
from halfwidth.inference.interval import Interval
from halfwidth.inference.laws import BrownianLaw, LimitLaw, NormalLaw
from halfwidth.inference.result import Result
from halfwidth.inference.wald import Ellipsoid, WaldTest

__all__ = [
    "BrownianLaw",
    "Diagnostics",
    "Ellipsoid",
    "Interval",
    "LimitLaw",
    "NormalLaw",
    "Result",
    "WaldTest",
]
