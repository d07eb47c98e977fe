"""What speaks against one coefficient, and what against all: names, and advice for each.

| flag of a coefficient | when                                                                                    |
|-----------------------|-----------------------------------------------------------------------------------------|
| `unidentified`        | the rows, or all rows but those of one batch, do not determine it                        |
| `separated`           | the likelihood grows as it goes to infinity                                              |
| `leverage`            | one batch carries over half of the information about it                                  |
| `rare`                | its error has fewer than 8 degrees of freedom; below 2 there is no interval              |
| `unstable`            | it does not hold still: test of stability at 1%, Holm over the coefficients              |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.equation.equation import Equation
from halfwidth.equation.result import FEWEST
from halfwidth.errors import HalfwidthError, InputError, NotIdentified
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.newton.snapshot import NewtonSnapshot
from halfwidth.models.far_rows import far_values
from halfwidth.models.separated_rows import lost_coefficients
from halfwidth.models.separation import ColumnExtremes, separating_direction, taking_part
from halfwidth.models.suspicion import Finding, Suspicion

Flag = tuple[str, str]
Mask = NDArray[np.bool_]

INTERCEPT = "Intercept"
ROWS_BEYOND_COEFFICIENTS = 10
"""Fewer rows than this beyond the number of coefficients give no standard errors."""

LARGEST, SMALLEST = 1e100, 1e-100
"""Numbers beyond the first are refused; a target below the second has no error."""

FEW_DF = 8.0
LARGE_SHARE = 0.5
_LOST = 1e-9
WILD = 5.0
"""A standard error of this many logits, or log counts, at the far end of a column: separation is looked for."""

ADVICE = {
    "unidentified": (
        "the rows do not determine {names} (constant, collinear, or seen in one stretch of rows only): leave out a "
        "column, wait for rows in which it varies, or set ridge > 0"
    ),
    "separated": (
        "the likelihood has no maximum along {names}: drop or merge the columns (or levels) that separate, or set "
        "ridge > 0"
    ),
    "leverage": (
        "one row or batch carries over half of the information about {names}: look at the largest values of the "
        "column; transform it, or leave the row out and compare"
    ),
    "rare": (
        "the error of {names} rests on fewer than 8 degrees of freedom: few rows, few stretches of rows or few events "
        "tell about it. The interval is wide for that reason; feed more rows, or merge rare levels"
    ),
    "unstable": (
        "{names} did not hold still over the rows; the interval is for an average. Look at the rows before and after "
        "separately, or model what changed"
    ),
}


SUSPECTED = (
    ". This is so in the sample of rows that was kept; whether it is in all of them only a further pass can tell "
    "(passes='auto', --passes auto)"
)


@dataclass(frozen=True)
class Verdict:
    """Flags of every coefficient, in the order of the table above, and where unstable ones seem to change."""

    flags: tuple[tuple[str, ...], ...]
    changes: dict[int, int]
    suspected: Vector | None = None
    """An internal direction along which the kept sample is separated, where no pass has looked at all rows."""
    far: dict[int, float] = field(default_factory=dict)
    """Values that make nearly all of the spread of their columns, by coefficient."""

    def advice(self, names: Sequence[str]) -> tuple[str, ...]:
        """A line for every flag that any coefficient has."""
        lines = []
        for flag, text in ADVICE.items():
            found = [j for j, flags in enumerate(self.flags) if flag in flags]
            if found:
                labels = [self._label(flag, j, names[j]) for j in found]
                listed = ", ".join(labels[:8]) + (" ..." if len(labels) > 8 else "")
                lines.append(f"{flag}: {text.format(names=listed)}")
                if flag == "separated" and self.suspected is not None:
                    lines[-1] += SUSPECTED
        return tuple(lines)

    def _label(self, flag: str, j: int, name: str) -> str:
        return f"{name} (from about row {self.changes[j]:,} on)" if flag == "unstable" and j in self.changes else name


def check_names(columns: Sequence[str], intercept: bool) -> None:
    """Refuse names that two coefficients would share: nobody could tell one from the other."""
    names = [*([INTERCEPT] if intercept else []), *columns]
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise InputError(
            f"two coefficients would be named {twice!r}, and names must differ: rename a column, or leave one out"
        )


def check_sizes(X: Vector, y: Vector) -> None:
    """Raise for numbers whose squares are beyond all numbers: one of them is a bad row, not a model."""
    for name, values in (("X", X), ("y", y)):
        if values.size and not -LARGEST <= values.min() <= values.max() <= LARGEST:
            row = int(np.argmax(np.abs(values).reshape(len(values), -1).max(axis=1)))
            raise InputError.of(name, f"lie between -{LARGEST:g} and {LARGEST:g}, as in row {row}", values[row])


def run_failure(fit: NewtonSnapshot, y_range: tuple[float, float]) -> Flag | None:
    """The reason why no inference at all is possible, if there is one."""
    needed = fit.size + ROWS_BEYOND_COEFFICIENTS
    if fit.n < needed:
        text = f"{fit.n} rows are too few for {fit.size} coefficients; {needed} are needed. Feed more rows"
        return "too-few-rows", text
    if fit.loss.name == "logistic" and y_range[0] == y_range[1]:
        return "one-class", "only one class was seen so far; feed rows of the other class, or pass classes="
    if fit.goodness is not None and fit.goodness.counts is not None and not fit.goodness.counts.all():
        return "missing-class", "a class has no row so far; feed rows of every class, or leave it out of classes="
    if 0.0 < max(map(abs, y_range)) < SMALLEST:
        return "underflow", f"y is below {SMALLEST:g} in size, and its squares below any number: multiply it"
    if y_range[0] == y_range[1]:
        return "constant-target", f"y is {y_range[0]:g} in every row: there is no noise to take an error from"
    return None


def judge(
    fit: NewtonSnapshot, df: Vector, variances: Vector, extremes: ColumnExtremes, suspicion: Suspicion | None = None
) -> Verdict:
    """What speaks against each coefficient; `suspicion` is what this pass was asked to look at."""
    T = fit.basis
    far = far_values(fit)
    separated, suspected = _separated(fit, extremes, suspicion, bool(far))
    shares = fit.errors.shares(T)
    masks = {
        "unidentified": ~separated & (fit.errors.undetermined(T) | ~np.isfinite(variances) | ~(variances > 0.0)),
        "separated": separated,
        "leverage": shares > LARGE_SHARE,
        "rare": ~(df >= FEW_DF),
    }
    tested = ~np.any(list(masks.values()), axis=0)
    still = fit.held_still
    masks["unstable"] = still.unstable(tested)
    flags = tuple(tuple(name for name, mask in masks.items() if mask[j]) for j in range(len(T)))
    return Verdict(flags, {int(j): int(still.rows[j]) for j in np.flatnonzero(masks["unstable"])}, suspected, far)


def most_degrees_of_freedom(fit: NewtonSnapshot) -> float:
    """How many degrees of freedom any coefficient can have: by the weights of the rows, and by the number of events.

    None where one batch, as with one weight beyond all others, leaves nothing to double precision of the rest. In a
    regression of classes or counts in which all but a few rows have no event, the sandwich takes the slopes that fit
    these few for known. The number of batches that make up the residuals, (sum r^2)^2 / sum r^4 with r the sums of y
    less its mean, is then that of the events; it is a third of the batches where r is normal.
    """
    if not fit.scaling.intercept:
        return np.inf
    weights = np.abs(fit.sums.H[:, 0, 0])
    if weights.max() > (1.0 - _LOST) * weights.sum():
        return 0.0
    if fit.loss.separation is None:
        return np.inf
    equation = Equation(fit.sums.H, fit.sums.b, fit.sums.n)
    squares = np.square(equation.centred_residuals(fit.centre - fit.reference)[:, 0])
    squares = squares / max(squares.max(), 1e-300)
    events = float(squares.sum() ** 2 / max(np.square(squares).sum(), 1e-300))
    return events if events < min(FEW_DF, len(squares) / 4.0) else np.inf


def refused(flags: Sequence[str], df: float) -> bool:
    """Whether a coefficient with these flags has no interval."""
    return "unidentified" in flags or "separated" in flags or not df >= FEWEST


def _separated(fit: NewtonSnapshot, extremes: ColumnExtremes, suspicion: Suspicion | None, far: bool) -> Finding:
    found = np.zeros(fit.size, dtype=np.bool_)
    if fit.loss.separation is None or fit.penalty.any():
        return Finding(found, None)
    if fit.scaling.equations == 1:
        found[int(fit.scaling.intercept) :] = extremes.separated(fit.scaling.intercept)
        if extremes.all_apart(fit.scaling.intercept):
            return Finding(np.ones_like(found), None)
    if fit.sample is None or far:  # a direction that moves a far row by logits moves all others by rounding errors
        return Finding(found, None)
    if suspicion is not None:
        direction = suspicion.decide(fit.sample, fit.loss, fit.centre, fit.scaling)
    elif _suspected(fit):
        direction = separating_direction(fit.sample, fit.loss, fit.centre)
    else:
        return Finding(found, None)
    if direction is None:
        return Finding(found, None)
    one = fit.scaling.equations == 1  # the next pass looks at the rows of one equation only
    certain = fit.complete or not one or (suspicion is not None and suspicion.confirmed)
    mask = taking_part(direction, fit.scaling) | lost_coefficients(direction, fit.sample, fit.loss, fit.scaling)
    more = (mask & ~found).any()  # a column that separates by itself is known to
    return Finding(found | mask, direction if more and not certain else None)


def _suspected(fit: NewtonSnapshot) -> bool:
    """Whether some coefficient is so loose at the rows' far ends that it may be on its way to infinity."""
    assert fit.sample is not None
    C, null, _ = fit.errors.whitened
    if null.shape[1] or not fit.settled:
        return True
    far = np.tile(np.abs(fit.sample.Z).max(axis=0, initial=0.0), fit.scaling.equations)
    errors = np.sqrt(np.einsum("ij,ij->i", C, C)) * far
    return bool(errors.max() > WILD)


def skipped_text(facts: Mapping[str, Any]) -> str:
    """How many rows the stream skipped, why, and for which columns; nothing if it skipped none."""
    reasons, columns = facts.get("skipped_rows", {}), facts.get("skipped_rows_by_column", {})
    if not reasons:
        return ""
    total = sum(reasons.values())
    why = ", ".join(f"{reason} {count:,}" for reason, count in reasons.items())
    text = f"{total:,} {'row was' if total == 1 else 'rows were'} skipped: {why}"
    where = ", ".join(f"{name} {count:,}" for name, count in columns.items())
    return f"{text}; by column: {where}" if where else text


@contextmanager
def solvable() -> Iterator[None]:
    """Turn a solver that gives up, on sums beyond what floating-point numbers hold, into our own error."""
    try:
        yield
    except HalfwidthError:
        raise
    except (np.linalg.LinAlgError, ArithmeticError) as error:
        raise NotIdentified(
            "the sums over these rows are beyond what floating-point numbers hold; look for values of absurd size, or "
            "rescale the columns",
            "overflow",
        ) from error
