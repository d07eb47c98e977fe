"""Transforms of one column into several, with constants that are learned on the first buffer and then fixed.

| transform | columns |
|---|---|
| `center(x)` | x minus its mean |
| `scale(x)` | x minus its mean, over its standard deviation |
| `poly(x, k)` | polynomials of degree 1 to k, orthonormal over the first buffer (three-term recurrence, as in R) |
| `bs(x, df=, degree=3)` | B-splines with inner knots at quantiles; not defined outside the bounds |
| `ns(x, df=)` | natural cubic splines (Hastie, Tibshirani, Friedman, *Elements*, eq. 5.4): linear outside the bounds |
| `harmonics(t, period, k=1)` | sin and cos of 2 pi j t / period for j = 1 to k |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from halfwidth.errors import InputError
from halfwidth.streams.block import Array

_MOST_COLUMNS = 100
_DAY = 86_400e6  # microseconds
_YEAR = 365.2425 * _DAY
_MICROSECONDS = {"hour": _DAY / 24, "day": _DAY, "week": 7 * _DAY, "month": _YEAR / 12, "year": _YEAR}
Constants = dict[str, list[float]]


class Basis(ABC):
    """One transform. `parameters` names what may follow its first argument, in order."""

    parameters: ClassVar[tuple[str, ...]] = ()

    def check(self, given: dict[str, Any]) -> str | None:
        """What is wrong with these parameters, if anything."""
        return None

    @abstractmethod
    def learn(self, x: Array, given: dict[str, Any]) -> Constants:
        """The constants, from the usable rows of the first buffer."""

    @abstractmethod
    def apply(self, x: Array, given: dict[str, Any], constants: Constants) -> Array:
        """The columns, one row for each value; NaN where they are not defined."""

    @abstractmethod
    def sizes(self, given: dict[str, Any]) -> dict[str, int]:
        """How many numbers each constant has."""

    @abstractmethod
    def labels(self, given: dict[str, Any], constants: Constants) -> list[str]:
        """What stands in brackets behind the name of each column; an empty text for no brackets."""


class Center(Basis):
    """x - mean."""

    def learn(self, x: Array, given: dict[str, Any]) -> Constants:
        return {"mean": [float(x.mean())]}

    def sizes(self, given: dict[str, Any]) -> dict[str, int]:
        return {"mean": 1}

    def apply(self, x: Array, given: dict[str, Any], constants: Constants) -> Array:
        return (x - constants["mean"][0])[:, None]

    def labels(self, given: dict[str, Any], constants: Constants) -> list[str]:
        return [""]


class Scale(Center):
    """(x - mean) / standard deviation."""

    def learn(self, x: Array, given: dict[str, Any]) -> Constants:
        deviation = float(x.std(ddof=1)) if len(x) > 1 else 0.0
        if not deviation > 0.0:
            raise InputError.of("scale()", "have a column that varies in the first rows", float(x[0]))
        return {"mean": [float(x.mean())], "deviation": [deviation]}

    def sizes(self, given: dict[str, Any]) -> dict[str, int]:
        return {"mean": 1, "deviation": 1}

    def apply(self, x: Array, given: dict[str, Any], constants: Constants) -> Array:
        return ((x - constants["mean"][0]) / constants["deviation"][0])[:, None]


class Poly(Basis):
    """Orthonormal polynomials: P_{k+1} = (x - a_k) P_k - (n_k / n_{k-1}) P_{k-1}, n_k = sum of P_k^2."""

    parameters = ("degree",)

    def check(self, given: dict[str, Any]) -> str | None:
        return _whole(given.get("degree", 1), "degree", 1)

    def learn(self, x: Array, given: dict[str, Any]) -> Constants:
        degree = given.get("degree", 1)
        if len(np.unique(x[:10_000])) <= degree:
            raise InputError.of("poly()", f"have more than {degree} different values in the first rows", len(x))
        shifts, norms = [], [float(len(x))]
        before, now = np.zeros(len(x)), np.ones(len(x))
        for k in range(degree):
            shifts.append(float(x @ (now * now) / norms[-1]))
            ratio = norms[-1] / norms[-2] if k else 0.0
            before, now = now, (x - shifts[-1]) * now - ratio * before
            norms.append(float(now @ now))
        return {"shifts": shifts, "norms": norms}

    def sizes(self, given: dict[str, Any]) -> dict[str, int]:
        return {"shifts": given.get("degree", 1), "norms": given.get("degree", 1) + 1}

    def apply(self, x: Array, given: dict[str, Any], constants: Constants) -> Array:
        shifts, norms = constants["shifts"], constants["norms"]
        before, now = np.zeros(len(x)), np.ones(len(x))
        result = np.empty((len(x), len(shifts)))
        for k, shift in enumerate(shifts):
            ratio = norms[k] / norms[k - 1] if k else 0.0
            before, now = now, (x - shift) * now - ratio * before
            result[:, k] = now / np.sqrt(norms[k + 1])
        return result

    def labels(self, given: dict[str, Any], constants: Constants) -> list[str]:
        return [str(k + 1) for k in range(len(constants["shifts"]))]


class BSpline(Basis):
    """B-splines without the first, so that an intercept may stand beside them."""

    parameters = ("df", "degree", "knots", "lower", "upper")

    def check(self, given: dict[str, Any]) -> str | None:
        degree = given.get("degree", 3)
        return _whole(degree, "degree", 1) or _df_or_knots(given, degree)

    def learn(self, x: Array, given: dict[str, Any]) -> Constants:
        inner = _knots(x, given, _inner(given, given.get("degree", 3)))
        lower, upper = float(given.get("lower", x.min())), float(given.get("upper", x.max()))
        _check_order([lower, *inner, upper])
        return {"bounds": [lower, upper], "knots": inner}

    def sizes(self, given: dict[str, Any]) -> dict[str, int]:
        return {"bounds": 2, "knots": _inner(given, given.get("degree", 3))}

    def apply(self, x: Array, given: dict[str, Any], constants: Constants) -> Array:
        from scipy.interpolate import BSpline as Spline

        degree = given.get("degree", 3)
        lower, upper = constants["bounds"]
        knots = np.array([lower] * (degree + 1) + constants["knots"] + [upper] * (degree + 1))
        inside = (x >= lower) & (x <= upper)
        result = np.full((len(x), len(constants["knots"]) + degree), np.nan)
        if inside.any():
            result[inside] = Spline.design_matrix(x[inside], knots, degree).toarray()[:, 1:]
        return result

    def labels(self, given: dict[str, Any], constants: Constants) -> list[str]:
        return [str(k + 1) for k in range(len(constants["knots"]) + given.get("degree", 3))]


class NaturalSpline(Basis):
    """x, and d_k - d_{K-1} with d_k = ((x - t_k)+^3 - (x - t_K)+^3) / (t_K - t_k), on x scaled to the bounds."""

    parameters = ("df", "knots", "lower", "upper")

    def check(self, given: dict[str, Any]) -> str | None:
        return _df_or_knots(given, 1)

    def learn(self, x: Array, given: dict[str, Any]) -> Constants:
        inner = _knots(x, given, _inner(given, 1))
        bounds = [float(given.get("lower", x.min())), float(given.get("upper", x.max()))]
        _check_order([bounds[0], *inner, bounds[1]])
        return {"bounds": bounds, "knots": inner}

    def sizes(self, given: dict[str, Any]) -> dict[str, int]:
        return {"bounds": 2, "knots": _inner(given, 1)}

    def apply(self, x: Array, given: dict[str, Any], constants: Constants) -> Array:
        lower, upper = constants["bounds"]
        z = (x - lower) / (upper - lower)
        knots = (np.array([lower, *constants["knots"], upper]) - lower) / (upper - lower)
        cubes = np.maximum(z[:, None] - knots, 0.0) ** 3
        slopes = (cubes[:, :-1] - cubes[:, -1:]) / (1.0 - knots[:-1])
        return np.column_stack([z, slopes[:, :-1] - slopes[:, -1:]])

    def labels(self, given: dict[str, Any], constants: Constants) -> list[str]:
        return [str(k + 1) for k in range(len(constants["knots"]) + 1)]


class Harmonics(Basis):
    """sin and cos of 2 pi j t / period; `t` is a number, or a date with the period "day", "week", "year", ..."""

    parameters = ("period", "k")

    def check(self, given: dict[str, Any]) -> str | None:
        period = given.get("period")
        named = isinstance(period, str) and period in _MICROSECONDS
        if not named and not (isinstance(period, int | float) and period > 0):
            return f"period must be a positive number, or one of {', '.join(_MICROSECONDS)}"
        return _whole(given.get("k", 1), "k", 1)

    def learn(self, x: Array, given: dict[str, Any]) -> Constants:
        return {}

    def sizes(self, given: dict[str, Any]) -> dict[str, int]:
        return {}

    def apply(self, x: Array, given: dict[str, Any], constants: Constants) -> Array:
        period = given["period"]
        turns = x / (_MICROSECONDS[period] if isinstance(period, str) else period)
        angles = 2.0 * np.pi * np.outer(turns - np.floor(turns), np.arange(1, given.get("k", 1) + 1))
        return np.stack([np.sin(angles), np.cos(angles)], axis=2).reshape(len(x), -1)

    def labels(self, given: dict[str, Any], constants: Constants) -> list[str]:
        return [f"{name}{j}" for j in range(1, given.get("k", 1) + 1) for name in ("sin", "cos")]


def _whole(value: Any, name: str, least: int) -> str | None:
    fits = isinstance(value, int) and least <= value <= _MOST_COLUMNS
    return None if fits else f"{name} must be a whole number from {least} to {_MOST_COLUMNS}"


def _df_or_knots(given: dict[str, Any], least: int) -> str | None:
    for name in ("lower", "upper"):
        if name in given and not isinstance(given[name], int | float):
            return f"{name} must be a number"
    if ("df" in given) == ("knots" in given):
        return "give df or knots"
    if "df" in given:
        return _whole(given["df"], "df", least)
    knots = given["knots"]
    numbers = isinstance(knots, list) and all(isinstance(knot, int | float) for knot in knots)
    return None if numbers and len(knots) <= _MOST_COLUMNS else "knots must be a list of numbers"


def _inner(given: dict[str, Any], less: int) -> int:
    """How many inner knots there are."""
    return len(given["knots"]) if "knots" in given else int(given["df"]) - less


def _knots(x: Array, given: dict[str, Any], count: int) -> list[float]:
    """The inner knots: as given, or at quantiles of the first rows."""
    if "knots" in given:
        return [float(knot) for knot in given["knots"]]
    return [float(q) for q in np.quantile(x, np.arange(1, count + 1) / (count + 1))] if count else []


def _check_order(knots: list[float]) -> None:
    if any(after <= before for before, after in pairwise(knots)):
        raise InputError.of("the knots of a spline", "differ and rise; the first rows may repeat a value", knots)
