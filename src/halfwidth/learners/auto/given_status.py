"""What speaks against a result on given rows, and against single coefficients of it.

| flag               | when                                                                                      |
|--------------------|-------------------------------------------------------------------------------------------|
| `not-settled`      | what the expansions left out could not be measured well enough on the sample of rows      |
| `jumping-gradient` | the gradient jumps on few rows only, as that of an extreme quantile does                  |
| `separation`       | the curvature has vanished on the way to the estimate: the loss has no minimum            |
| `long-dependence`  | rows stay correlated over a large part of the stream                                      |
| `ill-conditioned`  | rounding, or differences of gradients, cannot tell some direction's curvature from zero   |
| `exact-fit`        | the rows of some coefficient show no noise beyond rounding, or squares of it underflow    |
| `rare`             | a few batches make all the noise of a curved loss, as a handful of events does            |

| flag of a coefficient | when                                                               |
|-----------------------|--------------------------------------------------------------------|
| `unidentified`        | no row, or those of one batch only, determine it: no interval      |
| `rare`                | fewer than 8 degrees of freedom; below 2 there is no interval      |
| `unstable`            | it changes along the stream (`halfwidth.equation.stability`)       |
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halfwidth.equation.field_errors import two_sided
from halfwidth.equation.linear_algebra import SINGULAR, whitening
from halfwidth.equation.stability import LONG_BATCHES
from halfwidth.inference.longrun import hidden_dependence, long_dependence
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto.given import GivenRows
from halfwidth.learners.auto.given_root import Root

Flag = tuple[str, str]

RARE = 8.0
"""Degrees of freedom, or batches that make the noise of a curved loss, below which errors say little."""
FEW_DEGREES = 30.0
"""Below which dependence is long: at 19, intervals covered 0.83."""
MOST_CORRECTION = 0.25
"""Largest sampling error of the correction, in standard errors of the coefficient."""
ROUNDING, DIFFERENCED_ERROR = 1e-14, 1e-7
"""Relative errors of a sum of Hessians, and of one made of differences of gradients."""
NO_NOISE, UNDERFLOW = 1e-13, 1e-145
"""Noise per row over the size of a coefficient, and standard errors, below which they are rounding errors."""
FEW_JUMPS = 40.0
"""Rows that a gradient that jumps rests on, times their share of all: a median has a quarter, of 0.9 one in 25 rows."""
COLLAPSED = 0.01
"""The share of a coefficient's curvature left at the estimate, below which that is on its way to infinity."""


@dataclass(frozen=True)
class Known:
    """What is known of the result."""

    curvature: str
    rows: int
    batch_rows: int
    unequal: bool
    """Whether batches that know much were kept shorter."""
    batches: int
    bandwidth: float
    df: Vector
    hidden: NDArray[np.bool_]
    unstable: NDArray[np.bool_]
    sizes: Vector
    """Of the coefficients, or what the largest is in the units of each: per row, less than rounding is no noise."""
    long_variances: Vector
    root: Root
    errors: Vector
    collapsed: NDArray[np.bool_]
    noisy: float
    """How many batches make the noise (`noisy_batches`)."""
    jumping: float
    """How many rows the gradient rests on, where it jumps; infinite where it does not."""
    conditioning: float
    """The smallest eigenvalue of the curvature, scaled to a unit diagonal, in units of what its rounding may be."""


def collapsed(engine: GivenRows, centre: Vector, before: Vector) -> NDArray[np.bool_]:
    """Whose curvature at the centre is a small share of what it was at the linearisation points."""
    if engine.rough or engine.linear:
        return np.zeros(len(centre), dtype=np.bool_)
    return np.asarray(np.abs(engine.sample.curvatures(engine.field, centre)) < COLLAPSED * np.abs(before))


def noisy_batches(engine: GivenRows, centre: Vector, residuals: Vector, information: Vector) -> float:
    """(sum s)^2 / sum s^2 for s_b = r_b'A^-1 r_b: about the number of events where these are few.

    Curvature is spread over all rows then, and degrees of freedom do not show it. Only of curved losses.
    """
    if engine.rough or engine.linear or engine.without_loss or engine.store.single:
        return np.inf
    here, first = (engine.sample.curvatures(engine.field, point) for point in (centre, engine.theta_0))
    if np.array_equal(here, first):
        return np.inf
    s = np.square(residuals @ whitening(information).C).sum(axis=1)
    s = s / max(float(s.max(initial=0.0)), UNDERFLOW)
    return float(s.sum() ** 2 / (s @ s)) if (s > 0.0).any() else np.inf


def sizes(engine: GivenRows, centre: Vector, curvature: Vector) -> Vector:
    """How large a coefficient is or, of a loss, what the largest is in its units: those of unit curvature are alike."""
    size, unit = np.abs(centre), np.sqrt(np.abs(curvature))
    if engine.without_loss or not unit.any():
        return size
    scaled = np.divide((unit * size).max(), unit, out=np.zeros(len(unit)), where=unit > 0.0)
    return np.asarray(np.maximum(size, scaled))


def conditioning(information: Vector, hidden: NDArray[np.bool_], engine: GivenRows) -> float:
    """The smallest eigenvalue of the scaled curvature over its own error; below one a direction is lost in rounding.

    Of a field without a loss, the smallest singular value. Over the coefficients that are determined; where there is
    none, over those that some row has shown.
    """
    kept, error = ~hidden, DIFFERENCED_ERROR if engine.differences and not engine.linear else ROUNDING
    if hidden.all():
        kept, error = np.diag(information) != 0.0, max(error, len(hidden) * SINGULAR)
    inside = information[np.ix_(kept, kept)]
    if not inside.size:
        return np.inf
    if engine.without_loss:
        return two_sided(inside).smallest / error
    H = 0.5 * (inside + inside.T)
    scale = np.sqrt(np.abs(np.diag(H)))
    if not (scale > 0.0).all():
        return np.inf
    return float(np.linalg.eigvalsh(H / np.outer(scale, scale)).min()) / error


def notes(known: Known) -> tuple[str, ...]:
    """What was chosen, in words."""
    return (
        f"curvature: {known.curvature}",
        f"rows: {known.rows:,}, each of them behind the interval",
        kernel_note(known.batches, known.batch_rows, known.bandwidth, known.unequal),
        "feedback: declared to be none, as for all rows that are given",
    )


def kernel_note(batches: int, batch_rows: int, bandwidth: float, unequal: bool = False) -> str:
    """Batches, and how far the kernel over them reaches, in words."""
    if unequal:
        sizes = f"of at most {batch_rows:,} rows, shorter where rows know most"
        return f"batches: {batches} {sizes}, covariances over about {bandwidth:.1f} batches"
    return f"batches: {batches} of {batch_rows:,} rows, covariances over about {bandwidth * batch_rows:,.0f} rows"


def coefficient_flags(known: Known) -> tuple[tuple[str, ...], ...]:
    """What speaks against each coefficient; empty where nothing speaks against any."""
    found = [
        ("unidentified",) * bool(hidden)
        + ("separation",) * bool(gone and not hidden)
        + ("rare",) * bool(df < RARE and not hidden)
        + ("unstable",) * bool(moves)
        for hidden, gone, df, moves in zip(known.hidden, known.collapsed, known.df, known.unstable, strict=True)
    ]
    return tuple(found) if any(found) else ()


def flags(known: Known) -> tuple[Flag, ...]:
    """What speaks against the whole run."""
    found = (
        _settled(known),
        _jumping(known),
        _separated(known),
        _conditioned(known),
        _exact(known),
        _dependence(known),
        _events(known),
    )
    return tuple(flag for flag in found if flag is not None)


def _settled(known: Known) -> Flag | None:
    fine = np.isfinite(known.errors) & (known.errors > 0.0)
    worst = float((known.root.correction_error[fine] / known.errors[fine]).max(initial=0.0))
    if known.root.converged and worst <= MOST_CORRECTION:
        return None
    size = f"{worst:.2g} standard errors" if known.root.converged else "an unknown amount"
    return (
        "not-settled",
        f"rows were expanded too far from the estimate for one pass to put it right: coefficients may be off by {size}"
        ". Start nearer to the solution (theta_0: this pass's estimate), shuffle the rows, or transform huge values",
    )


def _jumping(known: Known) -> Flag | None:
    if known.jumping**2 >= FEW_JUMPS * known.rows:
        return None
    return (
        "jumping-gradient",
        f"the gradient jumps, and rests on some {known.jumping:,.0f} of {known.rows:,} rows, as that of an extreme "
        "quantile does: differences over so few show its slope badly, and the interval is likely too short. Feed more "
        "rows, or look at a quantile further inside",
    )


def _separated(known: Known) -> Flag | None:
    gone = np.flatnonzero(known.collapsed & ~known.hidden)
    if not gone.size:
        return None
    names = ", ".join(f"theta[{j}]" for j in gone[:8])
    return "separation", f"the curvature along {names} has vanished: the loss has no minimum there. Add a ridge to it"


def _conditioned(known: Known) -> Flag | None:
    if known.conditioning >= 1.0:
        return None
    return (
        "ill-conditioned",
        "columns are so nearly collinear (a large mean beside a small spread does it) that some coefficients are lost "
        "in rounding. Centre and scale the columns, or give the Hessian if it comes from differences of gradients",
    )


def _exact(known: Known) -> Flag | None:
    noise = known.errors * np.sqrt(known.rows)
    if not np.any((noise <= NO_NOISE * known.sizes) | (known.errors < UNDERFLOW)):
        return None
    return (
        "exact-fit",
        "the rows that tell about some coefficient show no noise beyond rounding errors, or their squares underflow: "
        "its interval says nothing. The target is a function of the columns there, or its unit is far too large",
    )


def _events(known: Known) -> Flag | None:
    if known.noisy >= RARE:
        return None
    return (
        "rare",
        f"about {known.noisy:.0f} of {known.batches:,} batches make all the noise, as a handful of events does: "
        "standard errors are likely too small. Feed rows with more events",
    )


def few_degrees(batches: int) -> float:
    """Degrees of freedom of a kernel over so many batches below which dependence is long."""
    return min(FEW_DEGREES, batches / 3.0)


def _dependence(known: Known) -> Flag | None:
    found = long_dependence(known.rows, known.batches, known.bandwidth, few_degrees(known.batches))
    if found is not None:
        return found
    still = np.where(known.unstable, np.nan, known.errors)
    return hidden_dependence(known.long_variances, still, LONG_BATCHES, known.batches, known.bandwidth)
