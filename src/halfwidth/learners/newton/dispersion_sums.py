"""The equation of a dispersion, added up over expanded chunks (`halfwidth.families.dispersed`).

Chunk j, expanded at theta_j and phi_j, adds to the linearised equation of phi, with c the estimate of the coefficients,

    sum_j M_j + K_j'(c - theta_j) + B_j (phi - phi_j) = 0,

M, B and K the sums of m, dm/dphi and dm/deta z over its rows. What the log-likelihood is made of moves with phi to the
first order, by the sums of its derivatives. Where all chunks were expanded at one estimate, as in a second pass, the
coefficients belong to phi_0, and take the rest of a joint Newton step: A^-1 K (phi - phi_0).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from halfwidth.equation import solve_spd
from halfwidth.families.dispersed import Dispersed
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.newton.loss_sums import GoodnessOfFit
from halfwidth.learners.newton.newton_solver import Rows
from halfwidth.state.fields import Array, Real
from halfwidth.state.schema import Schema

_ROUNDS = 4


class DispersionSums:
    """The sums so far; `add` takes in a chunk."""

    SCHEMA = Schema(
        None,
        None,
        {
            "value": Real(doc="sum of m, at the reference and a dispersion of zero"),
            "bend": Real(doc="sum of its derivative in the dispersion"),
            "cross": Array(("size",), doc="sum of its derivative in the coefficients"),
            "slopes": Array((3,), doc="derivatives of loss, saturated loss and constant in the dispersion"),
            "offsets": Array((3,), doc="the same, each times the dispersion that its chunk was expanded at"),
        },
        title="equation of the dispersion",
    )

    def __init__(self, size: int) -> None:
        self.value = self.bend = 0.0
        self.cross = np.zeros(size)
        self.slopes = np.zeros(3)
        self.offsets = np.zeros(3)

    def add(self, loss: Dispersed, rows: Rows, eta: Vector, gap: Vector) -> None:
        """Take in rows at eta; `gap` is the point of expansion less the reference."""
        value, bend, cross = (rows.weighted(part) for part in loss.terms(eta, rows.y))
        along = cross @ rows.Z
        self.value += float(value.sum() - along @ gap - bend.sum() * loss.scale)
        self.bend += float(bend.sum())
        self.cross += along
        slopes = np.array([rows.weighted(part).sum() for part in loss.likelihood_slopes(eta, rows.y)])
        self.slopes += slopes
        self.offsets += slopes * loss.scale

    def root(self, loss: Dispersed, gap: Vector) -> float:
        """The dispersion at the reference plus the gap; that of the loss where the sums do not determine it."""
        if not self.bend < 0.0:
            return loss.scale
        return loss.bounded(-(self.value + float(self.cross @ gap)) / self.bend)

    def joint_step(self, loss: Dispersed, gap: Vector, curvature: Vector, penalty: Vector) -> tuple[float, Vector]:
        """The dispersion, and what it moves the coefficients by, where all rows were expanded at that of the loss."""
        shift = np.zeros_like(gap)
        found = self.root(loss, gap)
        for _ in range(_ROUNDS if loss.steers else 0):
            shift = solve_spd(curvature, self.cross * (found - loss.scale), penalty)
            found = self.root(loss, gap + shift)
        return found, shift

    def moved(self, found: GoodnessOfFit, dispersion: float) -> GoodnessOfFit:
        """The sums of the log-likelihood at this dispersion."""
        loss, saturated, constant = (self.slopes * dispersion - self.offsets).tolist()
        return replace(
            found, loss=found.loss + loss, saturated=found.saturated + saturated, constant=found.constant + constant
        )

    def to_state(self) -> dict[str, Any]:
        return {
            "value": self.value,
            "bend": self.bend,
            "cross": self.cross.copy(),
            "slopes": self.slopes.copy(),
            "offsets": self.offsets.copy(),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        sums = cls(len(state["cross"]))
        sums.value, sums.bend = float(state["value"]), float(state["bend"])
        for name in ("cross", "slopes", "offsets"):
            setattr(sums, name, np.array(state[name], dtype=np.float64))
        return sums
