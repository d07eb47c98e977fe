"""What goodness of fit rests on: the loss of all rows at the estimate, and moments of their targets.

Chunk j, expanded at theta_j with the loss L_j, the score U_j and the curvature H_j, has at theta about

    L_j - U_j'(theta - theta_j) + (theta - theta_j)'H_j (theta - theta_j) / 2,

exactly for squared loss, and up to the third order otherwise; expansions at the estimate itself, as a second pass makes
them, are exact too. Relative to a reference, with gap = theta_j - reference, one number is enough:

    V = sum_j L_j + U_j'gap + gap'H_j gap / 2,   loss(c) = V - b'delta + delta'A delta / 2,   delta = c - reference,

with A, b the sums of the equation. Targets are added up relative to the mean of the first chunk, so that a large mean
loses no digits.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from halfwidth.families import Loss
from halfwidth.families.multinomial import Multinomial
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.newton.newton_solver import Rows
from halfwidth.state.fields import Array, Bool, Real
from halfwidth.state.schema import Schema


@dataclass(frozen=True)
class GoodnessOfFit:
    """Sums over all rows, weighted, at the estimate.

    Parameters
    ----------
    loss, saturated : float
        The loss, and the smallest one that any predictor could have.
    constant : float
        What the log-likelihood has beyond minus the loss.
    weight, mean, spread : float
        The sum of the weights, the mean target, and the sum of squared deviations from it.
    exact : bool
        Whether the loss is exact, or expanded around points along the stream.
    counts : ndarray, optional
        The weight of every class, where targets are classes.
    has_offset : bool, default False
        Whether rows have offsets, beside which the best constant is not known.
    """

    loss: float
    saturated: float
    constant: float
    weight: float
    mean: float
    spread: float
    exact: bool
    counts: Vector | None = None
    has_offset: bool = False


class LossSums:
    """The sums so far; `add` takes in a chunk."""

    FIELDS: ClassVar[tuple[str, ...]] = ("value", "saturated", "constant", "weight", "y_ref", "first", "second")
    SCHEMA = Schema(
        None,
        None,
        {
            "value": Real(doc="the loss at the reference, by expansions"),
            "saturated": Real(doc="the smallest loss of any predictor"),
            "constant": Real(doc="what the log-likelihood has beyond minus the loss"),
            "weight": Real(0.0, doc="sum of the weights"),
            "y_ref": Real(doc="what targets are relative to"),
            "first": Real(doc="sum of weighted targets, relative to y_ref"),
            "second": Real(0.0, doc="sum of their squares"),
            "counts": Array(("classes",), low=0.0, doc="weights of classes, where targets are more than two"),
            "has_offset": Bool(doc="there if rows have offsets"),
        },
        title="loss and targets",
        optional=("counts", "has_offset"),
    )

    def __init__(self, loss: Loss | None = None) -> None:
        self.counts = np.zeros(loss.classes) if isinstance(loss, Multinomial) else None
        self.has_offset = False
        self.value = self.saturated = self.constant = self.weight = self.y_ref = self.first = self.second = 0.0

    def add(self, loss: Loss, rows: Rows, value: float) -> None:
        """Take in a chunk's targets, and its loss at the reference."""
        y, weight = rows.y, rows.weight
        self.has_offset |= rows.offset is not None and bool(rows.offset.any())
        if self.weight == 0.0:
            self.y_ref = float(y.mean())
        gap = y - self.y_ref
        weighted = gap if weight is None else weight * gap
        if isinstance(loss, Multinomial) and self.counts is not None:
            self.counts = self.counts + loss.counts(y, weight)
        self.value += value
        self.saturated += _total(loss.saturated(y), weight, len(y))
        self.constant += _total(loss.constant(y), weight, len(y))
        self.weight += float(len(y) if weight is None else weight.sum())
        self.first += float(weighted.sum())
        self.second += float(weighted @ gap)

    def at(self, decrease: float, exact: bool) -> GoodnessOfFit:
        """At the estimate, where the loss is less than at the reference by `decrease`."""
        mean = self.first / max(self.weight, 1e-300)
        return GoodnessOfFit(
            self.value - decrease,
            self.saturated,
            self.constant,
            self.weight,
            self.y_ref + mean,
            max(self.second - mean * self.first, 0.0),
            exact,
            self.counts,
            self.has_offset,
        )

    def copy(self) -> Self:
        return copy(self)

    def to_state(self) -> dict[str, Any]:
        state: dict[str, Any] = {name: getattr(self, name) for name in self.FIELDS}
        if self.has_offset:
            state["has_offset"] = True
        return state if self.counts is None else state | {"counts": self.counts.copy()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        sums = cls()
        for name in cls.FIELDS:
            setattr(sums, name, float(state[name]))
        sums.has_offset = bool(state.get("has_offset", False))
        if "counts" in state:
            sums.counts = np.array(state["counts"], dtype=np.float64)
        return sums


def _total(values: Vector | float, weight: Vector | None, rows: int) -> float:
    """The weighted sum; a number stands for every row."""
    if isinstance(values, float):
        return values * (rows if weight is None else float(weight.sum()))
    return float(values.sum() if weight is None else weight @ values)


def chunk_loss(loss: Loss, eta: Vector, y: Vector, weight: Vector | None) -> float:
    """The loss of rows at their predictors."""
    return _total(loss.value(eta, y), weight, len(y))
