"""A confidence interval, for one direction or for several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Number = float | NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """estimate +- critical * std_error; floats for one direction, arrays for several."""

    estimate: Number
    lower: Number
    upper: Number
    std_error: Number
    level: float
    n: int
    method: str
    critical: float
    degrees_of_freedom: float
    status: str = "ok"
    warnings: tuple[str, ...] = ()

    @property
    def width(self) -> Number:
        return self.upper - self.lower

    @property
    def half_width(self) -> Number:
        return 0.5 * self.width

    def covers(self, value: ArrayLike) -> bool | NDArray[np.bool_]:
        """Whether the interval contains the value, elementwise."""
        inside = (np.asarray(self.lower) <= value) & (np.asarray(value) <= self.upper)
        return bool(inside) if inside.ndim == 0 else inside

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, for JSON; infinite degrees of freedom become None."""
        finite = np.isfinite(self.degrees_of_freedom)
        return {
            "estimate": np.asarray(self.estimate).tolist(),
            "lower": np.asarray(self.lower).tolist(),
            "upper": np.asarray(self.upper).tolist(),
            "std_error": np.asarray(self.std_error).tolist(),
            "level": self.level,
            "n": self.n,
            "method": self.method,
            "critical": self.critical,
            "degrees_of_freedom": self.degrees_of_freedom if finite else None,
            "status": self.status,
            "warnings": list(self.warnings),
        }

    def __str__(self) -> str:
        rows = zip(np.atleast_1d(self.estimate), np.atleast_1d(self.lower), np.atleast_1d(self.upper), strict=True)
        lines = [f"{estimate:.6g} [{lower:.6g}, {upper:.6g}]" for estimate, lower, upper in rows]
        note = "" if self.status == "ok" else f" ({self.status}: {'; '.join(self.warnings)})"
        return "\n".join(lines) + f"\n{100 * self.level:g}% by {self.method}, n = {self.n:,}{note}"
