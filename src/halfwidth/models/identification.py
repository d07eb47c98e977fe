"""Whether the rows determine the coefficients, and if not, why: a name and advice for each way to fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from halfwidth.families import Loss
from halfwidth.learners.newton.newton_solver import SINGULAR
from halfwidth.learners.newton.snapshot import Fit

Flag = tuple[str, str]

ROWS_BEYOND_COEFFICIENTS = 10
"""Fewer rows than this beyond the number of coefficients give no standard errors."""

WILD = 10.0
"""A standard error of this many logits, or log counts, at the far end of a column: the likelihood has no maximum."""

COLLAPSED = 0.01
"""The share of a column's curvature left at the estimate, below which the estimate is on its way to infinity."""

_TAKES_PART = 0.1
_ADVICE = "the likelihood has no maximum: drop or merge the columns (or levels) that separate, or set ridge > 0"


def failure(fit: Fit, loss: Loss, names: Sequence[str], y_range: tuple[float, float]) -> Flag | None:
    """The reason why no inference is possible, if there is one."""
    needed = fit.centre.size + ROWS_BEYOND_COEFFICIENTS
    if fit.n < needed:
        text = f"{fit.n} rows are too few for {fit.centre.size} coefficients; {needed} are needed. Feed more rows"
        return "too-few-rows", text
    if loss.name == "logistic" and y_range[0] == y_range[1]:
        return "one-class", "only one class was seen so far; feed rows of the other class, or pass classes="
    return _running_away(fit, names) or _collinear(fit, names) or _separated(fit, loss, names)


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


def _collinear(fit: Fit, names: Sequence[str]) -> Flag | None:
    Q = fit.information
    if not np.diag(Q).max() > 0.0:
        return "no-weight", "no row carries any weight; check sample_weight"
    d = np.sqrt(np.diag(Q))
    still = [name for name, size in zip(names, d, strict=True) if size == 0.0]
    if still:
        return _constant(still)
    values, vectors = np.linalg.eigh(Q / np.outer(d, d))
    null = vectors[:, values <= 10.0 * SINGULAR * values[-1]]
    if null.size == 0:
        return None
    share = np.abs(null).max(axis=1)
    involved = [name for name, part in zip(names, share, strict=True) if part > _TAKES_PART]
    if set(involved) - {"Intercept"} and len(involved) == 1 + ("Intercept" in involved):
        return _constant([name for name in involved if name != "Intercept"])
    listed = ", ".join(involved[:8]) + (" ..." if len(involved) > 8 else "")
    return (
        "collinear",
        f"the columns {listed} are linearly dependent, so their coefficients are not determined; "
        "leave one of them out, or set ridge > 0",
    )


def _constant(columns: Sequence[str]) -> Flag:
    listed = ", ".join(columns)
    return (
        "constant-column",
        f"no variation in column(s) {listed} so far, so their coefficients are not determined; "
        "leave them out, wait for rows in which they vary, or set ridge > 0",
    )


def _separated(fit: Fit, loss: Loss, names: Sequence[str]) -> Flag | None:
    if loss.name not in ("logistic", "poisson") or fit.penalty.any():
        return None
    if loss.name == "logistic" and fit.mistakes == 0:
        text = f"the columns separate the two classes without a single mistake in {fit.n:,} rows; {_ADVICE}"
        return "separation", text
    Q = fit.information
    d = np.sqrt(np.diag(Q))
    errors = np.sqrt(np.diag(np.linalg.inv(Q / np.outer(d, d)))) / d
    wild = [name for name, error in zip(names, errors * fit.reach, strict=True) if not error < WILD]
    return _along(wild) if wild else None


def _running_away(fit: Fit, names: Sequence[str]) -> Flag | None:
    """Columns whose curvature vanished on the way from the points of expansion to the estimate."""
    left, before = np.diag(fit.curvature), np.diag(fit.expanded)
    gone = [name for name, now, then in zip(names, left, before, strict=True) if now < COLLAPSED * then]
    return _along(gone) if gone and not fit.penalty.any() else None


def _along(columns: Sequence[str]) -> Flag:
    return "separation", f"the data separate along {', '.join(columns[:8])}; {_ADVICE}"
