"""What a type checker sees of results and intervals; `test_types.py` and `make lint` run mypy over this file."""

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import halfwidth as hw
from halfwidth.inference import Diagnostics, Ellipsoid, NormalLaw, WaldTest
from halfwidth.inference.tables import Summary

Number = float | NDArray[np.float64]

diagnostics = Diagnostics(effective_blocks=12.0)
result = hw.Result(np.zeros(2), np.eye(2), 100, NormalLaw(), "by-hand", diagnostics)
interval = result.interval([1.0, 1.0], level=0.9)

assert_type(interval, hw.Interval)
assert_type(interval.lower, Number)
assert_type(interval.half_width, Number)
assert_type(interval.covers(0.0), bool | NDArray[np.bool_])
assert_type(interval.status, str)
assert_type(result.bse, NDArray[np.float64])
assert_type(result.pvalues, NDArray[np.float64])
assert_type(result.conf_int(), NDArray[np.float64])
assert_type(result.wald_test([1.0, 0.0]), WaldTest)
assert_type(result.ellipsoid(), Ellipsoid)
assert_type(result.summary(), Summary)
assert_type(result.with_facts(("short-run", "run longer"), capped_share=0.1), hw.Result)
assert_type(diagnostics.with_facts(truncations=3), Diagnostics)
