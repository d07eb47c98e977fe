"""What renewable Newton knows at one moment: the centre, its curvature, and the batches its covariance comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from halfwidth.equation.batch_sums import Sums
from halfwidth.equation.equation import Equation
from halfwidth.equation.errors import Errors, jackknife_errors
from halfwidth.equation.linear_algebra import with_diagonal
from halfwidth.equation.prefix import prefix_trail
from halfwidth.equation.stability import FEWEST_BATCHES, Stability, stability
from halfwidth.equation.wide_errors import WIDE, WideErrors, wide_errors
from halfwidth.families import Loss
from halfwidth.inference.trail import Trail
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.newton.column_scaling import Scaling
from halfwidth.learners.newton.loss_sums import GoodnessOfFit
from halfwidth.learners.newton.newton_solver import Rows


@dataclass(frozen=True)
class NewtonSnapshot:
    """What can be said of all rows so far, on the internal scale; everything a result is made of."""

    n: int
    weight: float
    scaling: Scaling
    loss: Loss
    centre: Vector
    curvature: Vector
    """At the centre."""
    penalty: Vector
    dispersion: float
    sums: Sums
    """Of the batches, or of the buckets where rows come in groups; b relative to `reference`."""
    time: Sums
    """Of batches in time order, at most 64 of them where rows come in groups."""
    reference: Vector
    time_correction: Vector
    """What the expansions leave out of each batch of `time`, estimated; nothing where every row is at hand."""
    batch_rows: int
    groups: tuple[int, bool] | None
    """How many groups there are, and whether that is exact."""
    correction: Vector
    """R with R'R the covariance of the centre from estimating what the expansions leave out on a sample of rows."""
    settled: bool
    """Whether that estimate could be made."""
    anchored: bool
    """Whether every row was expanded at the estimate of an earlier pass."""
    sample: Rows | None
    """Rows to look for separation in: all, or a sample."""
    complete: bool
    """Whether the sample is all rows."""
    goodness: GoodnessOfFit | None
    """What goodness of fit rests on, where the loss is a likelihood's."""

    @property
    def size(self) -> int:
        return self.centre.size

    @property
    def grouped(self) -> bool:
        return self.groups is not None

    @cached_property
    def basis(self) -> Vector:
        """From the internal coefficients to those on the user's scale, the intercept first."""
        return self.scaling.matrix

    @property
    def params(self) -> Vector:
        """The coefficients on the user's scale."""
        return self.basis @ self.centre

    @cached_property
    def errors(self) -> Errors | WideErrors:
        """Of the internal coefficients."""
        equation = Equation(self.sums.H, self.sums.b, self.sums.n)
        residuals = equation.centred_residuals(self.centre - self.reference)
        penalty = self.weight * self.penalty
        if self.size > WIDE:
            return wide_errors(equation, residuals, self.curvature, penalty, self.basis, independent=self.grouped)
        full, information = np.diag(penalty), with_diagonal(self.curvature, penalty)
        return jackknife_errors(equation, residuals, information, penalty=full, independent=self.grouped)

    def covariance(self) -> Vector:
        """Of the estimate, on the user's scale."""
        return self.errors.covariance(self.basis)

    @cached_property
    def held_still(self) -> Stability:
        """Whether every coefficient, on the user's scale, holds still over the rows."""
        time = Equation(self.time.H, self.time.b, self.time.n)
        if len(time.rows) < FEWEST_BATCHES:
            return stability(np.zeros((0, self.size)), np.zeros((0, self.size)), time.rows[:0])
        gap = self.centre - self.reference
        residuals = time.residuals(gap) - self.time_correction
        residuals -= np.outer(time.rows / time.rows.sum(), residuals.sum(axis=0))
        G = np.concatenate(list(self._inverse_information()))
        if self.size > WIDE:  # one matrix at a time
            information = np.array([_forms(G, np.asarray(H, dtype=np.float64)) for H in time.A])
        else:
            information = np.einsum("mi,bij,mj->bm", G, time.A, G, optimize=True)
        return stability(residuals @ G.T, information, time.rows)

    @cached_property
    def trail(self) -> Trail | None:
        """How the coefficients settled, on the user's scale; None where they are too many to look."""
        time = Equation(self.time.H, self.time.b - self.time_correction, self.time.n)
        return prefix_trail(time, self.reference, self.centre, self.basis, self.weight * self.penalty)

    @cached_property
    def naive_variances(self) -> Vector:
        """What one would report if rows were independent and the family's variance function right."""
        forms = [_forms(rows, self.curvature) for rows in self._inverse_information()]
        return np.asarray(self.weight / self.n * self.dispersion * np.concatenate(forms))

    def _inverse_information(self) -> Iterator[Vector]:
        """Rows of the inverse of the information, from the user's coefficients to the internal ones, some at a time."""
        C = self.errors.whitened.C
        for at in range(0, self.size, WIDE):
            yield self.basis[at : at + WIDE] @ C @ C.T


def _forms(G: Vector, H: Vector) -> Vector:
    """g'H g for the rows g of G, some at a time."""
    parts = (G[at : at + WIDE] for at in range(0, len(G), WIDE))
    return np.concatenate([np.einsum("ij,ij->i", rows @ H, rows) for rows in parts])
