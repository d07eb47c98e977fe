"""What a kept sample of rows says about an average of SGD iterates.

SGD sees a row once and forgets it: nothing in its average shows that a column was constant, that classes separate, or
that the steps were too small to arrive. The sample does. Its curvature says what is not determined, its separating
direction what runs off to infinity, and its own fit, with the error that so few rows leave, where the average should
be.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from halfwidth.equation.errors import unseen
from halfwidth.equation.linear_algebra import whitening
from halfwidth.families import Loss
from halfwidth.families.dispersed import Dispersed
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.newton.chunk_sums import Expanded
from halfwidth.learners.newton.column_scaling import Scaling
from halfwidth.learners.newton.newton_solver import Rows, squared
from halfwidth.learners.newton.offline_fit import dispersion, fit_rows
from halfwidth.models.identification import Flag, Verdict
from halfwidth.models.separation import ColumnExtremes, separating_direction, taking_part

FIRST_ROWS = 1_024
"""Rows that give the scales and the start."""
MOST_DEVIATIONS = 4.5
ROWS_PER_COEFFICIENT = 2


class Checked(NamedTuple):
    """Flags of every coefficient and of the run."""

    verdict: Verdict
    run: tuple[Flag, ...]


def check_average(
    rows: Rows, loss: Loss, theta: Vector, errors: Vector, scaling: Scaling, extremes: ColumnExtremes, penalty: Vector
) -> Checked:
    """Hold an average, with its standard errors, to a sample of rows; everything on the internal scale."""
    size = len(theta)
    if len(rows) < ROWS_PER_COEFFICIENT * size:
        text = (
            f"{len(rows):,} kept rows are too few to check {size:,} coefficients of engine 'sgd': constant or "
            "collinear columns, separation and steps that did not arrive would not be seen. Use fewer columns and "
            "engine='newton'"
        )
        return Checked(Verdict(((),) * size, {}), (("unchecked", text),))
    point = fit_rows(rows, loss, theta, rows.total_weight * penalty)
    expanded = Expanded.of(rows, loss, point)
    whitened = whitening(squared(expanded.root), rows.total_weight * penalty)
    unidentified = unseen(whitened, scaling.matrix)
    separated = np.zeros(size, dtype=np.bool_)
    if loss.separation is not None and not penalty.any():
        separated[int(scaling.intercept) :] = extremes.separated(scaling.intercept)
        direction = separating_direction(rows, loss, point)
        if direction is not None:
            separated |= taking_part(direction, scaling)
    unidentified &= ~separated
    names = (("unidentified", unidentified), ("separated", separated))
    verdict = Verdict(tuple(tuple(name for name, mask in names if mask[j]) for j in range(size)), {})
    scores = expanded.score[:, None] * rows.Z @ whitened.C @ whitened.C.T
    noise = np.sqrt(np.square(scores).sum(axis=0) + np.square(errors))
    clean = ~(unidentified | separated) & (noise > 0.0)
    away = np.abs(theta - point)[clean] / noise[clean]
    if not away.size or away.max() <= MOST_DEVIATIONS:
        return Checked(verdict, ())
    text = (
        f"the average of the SGD iterates is {away.max():.1f} standard errors from the fit to a sample of the rows: "
        "the steps did not arrive, or the average is biased. Use engine='newton', or feed more rows"
    )
    return Checked(verdict, (("not-settled", text),))


def family_facts(rows: Rows, loss: Loss, theta: Vector) -> dict[str, Any]:
    """What the family has beside the coefficients: a dispersion from the kept rows, an alpha from the first ones."""
    if not isinstance(loss, Dispersed):
        return {}
    facts = loss.facts(dispersion(rows, loss, rows.eta(theta), len(theta)))
    if loss.estimated and "alpha" in facts:
        facts["alpha_is"] = f"estimated on the first {FIRST_ROWS:,} rows"
    return facts
