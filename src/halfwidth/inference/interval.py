"""A confidence interval, for one direction or for several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Number = float | NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """A confidence interval: estimate +- critical * std_error.

    Intervals come from `Result.interval` or from a watcher; they hold floats for one direction and arrays for several.
    The width is right for the data that the method is valid for (`halfwidth methods`). `status` is ``"ok"`` or the
    name of what speaks against the interval.

    Parameters
    ----------
    estimate : float or ndarray
        The estimate of v'theta.
    lower : float or ndarray
        The lower bound.
    upper : float or ndarray
        The upper bound.
    std_error : float or ndarray
        The standard error of the estimate.
    level : float
        The confidence level.
    n : int
        The number of rows that the interval rests on.
    method : str
        The name of the method.
    critical : float or ndarray
        The critical value of the method's limit law at this level; 1.96 only if the covariance is taken as known. An
        array where directions have their own.
    degrees_of_freedom : float or ndarray
        The effective degrees of freedom of the standard error; an array where directions have their own.
    status : str, default "ok"
        ``"ok"``, or the name of the first warning.
    warnings : tuple of str, default ()
        The warnings, each with advice.

    Examples
    --------
    >>> import halfwidth as hw
    >>> world = hw.problem("seed-linear", dim=3, epsilon=0.5)
    >>> interval = hw.Auto(world, seed=1).run(20_000).result().interval([1.0, 1.0, 1.0])
    >>> interval.covers(world.theta_star.sum())
    True
    >>> interval.status, interval.level
    ('ok', 0.95)
    """

    estimate: Number
    lower: Number
    upper: Number
    std_error: Number
    level: float
    n: int
    method: str
    critical: Number
    degrees_of_freedom: Number
    status: str = "ok"
    warnings: tuple[str, ...] = ()

    @property
    def width(self) -> Number:
        """The upper bound minus the lower one."""
        return self.upper - self.lower

    @property
    def half_width(self) -> Number:
        """Half the width."""
        return 0.5 * self.width

    def covers(self, value: ArrayLike) -> bool | NDArray[np.bool_]:
        """Say whether the interval contains a value, elementwise.

        Parameters
        ----------
        value : array_like
            A number, or one for each direction.

        Returns
        -------
        bool or ndarray of bool
            One answer for each direction.
        """
        inside = (np.asarray(self.lower) <= value) & (np.asarray(value) <= self.upper)
        return bool(inside) if inside.ndim == 0 else inside

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, for JSON.

        Returns
        -------
        dict
            The fields; infinite degrees of freedom become None.
        """
        df = np.asarray(self.degrees_of_freedom)
        return {
            "estimate": np.asarray(self.estimate).tolist(),
            "lower": np.asarray(self.lower).tolist(),
            "upper": np.asarray(self.upper).tolist(),
            "std_error": np.asarray(self.std_error).tolist(),
            "level": self.level,
            "n": self.n,
            "method": self.method,
            "critical": np.asarray(self.critical).tolist(),
            "degrees_of_freedom": df.tolist() if np.isfinite(df).all() else None,
            "status": self.status,
            "warnings": list(self.warnings),
        }

    def __str__(self) -> str:
        rows = zip(np.atleast_1d(self.estimate), np.atleast_1d(self.lower), np.atleast_1d(self.upper), strict=True)
        lines = [f"{estimate:.6g} [{lower:.6g}, {upper:.6g}]" for estimate, lower, upper in rows]
        note = "" if self.status == "ok" else f" ({self.status}: {'; '.join(self.warnings)})"
        return "\n".join(lines) + f"\n{100 * self.level:g}% by {self.method}, n = {self.n:,}{note}"
