"""Limit laws and critical values, intervals, tests, long-run covariance, results and their tables."""

from halfwidth.inference.brownian_law import BrownianLaw
from halfwidth.inference.diagnostics import Diagnostics
from halfwidth.inference.interval import Interval
from halfwidth.inference.laws import LimitLaw, NormalLaw
from halfwidth.inference.normal_mixture import MixtureLaw
from halfwidth.inference.result import Result
from halfwidth.inference.scaling_laws import FunctionalLaw
from halfwidth.inference.student_law import StudentLaw
from halfwidth.inference.wald import Ellipsoid, WaldTest

__all__ = [
    "BrownianLaw",
    "Diagnostics",
    "Ellipsoid",
    "FunctionalLaw",
    "Interval",
    "LimitLaw",
    "MixtureLaw",
    "NormalLaw",
    "Result",
    "StudentLaw",
    "WaldTest",
]
