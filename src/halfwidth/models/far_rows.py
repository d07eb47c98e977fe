"""Columns of which one row makes nearly all the spread: a sentinel value such as 99999999, or a unit mistaken.

In a family that is not linear such a row decides, with its own target alone, whether the coefficient is what the other
rows say or next to nothing, and through it all others; yet where it fits it has no weight, so that its share of the
information need not show it. Looked at are all rows while they are kept, later the sample of them and the batches. A
column that is constant but for one row is that of a rare level, which has doubts of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from halfwidth.learners.newton.snapshot import NewtonSnapshot

Flag = tuple[str, str]

_SHARE = 0.9
_STILL = 1e-10
_NO_LEVEL = 1e6
"""The indicator of a level has squares of at most the rows of the first chunk, on the internal scale."""


def far_values(fit: NewtonSnapshot) -> dict[int, float]:
    """By coefficient, of the first equation: the value of the row that makes over 0.9 of its column's squares.

    NaN where it is known from the sums alone.
    """
    if fit.loss.quadratic:
        return {}
    return {j: float("nan") for j in _in_one_batch(fit)} | _in_sample(fit)


def _in_one_batch(fit: NewtonSnapshot) -> list[int]:
    """Columns of which one batch has over 0.9 of all curvature, with squares beyond those of any rare level."""
    if not fit.scaling.intercept:
        return []
    H = np.einsum("bjj->bj", fit.sums.H)[:, : fit.scaling.columns].astype(np.float64)
    first, total = H.argmax(axis=0), H.sum(axis=0)
    largest = H[first, np.arange(H.shape[1])]
    return np.flatnonzero((largest > _SHARE * total) & (largest > _NO_LEVEL * H[first, 0])).tolist()


def _in_sample(fit: NewtonSnapshot) -> dict[int, float]:
    if fit.sample is None or len(fit.sample) < 3:
        return {}
    k, Z = int(fit.scaling.intercept), fit.sample.Z
    squares, found = np.einsum("ij,ij->j", Z, Z), {}
    columns, high, low = np.arange(Z.shape[1]), Z.argmax(axis=0), Z.argmin(axis=0)
    farthest = np.where(np.abs(Z[high, columns]) >= np.abs(Z[low, columns]), high, low)
    largest = Z[farthest, columns]
    for j in np.flatnonzero(np.square(largest) > 0.5 * squares):
        rest = np.delete(Z[:, j], farthest[j])
        middle = float(rest.mean()) if k else 0.0
        spread = float(np.square(rest - middle).sum())
        moves = spread > len(rest) * (_STILL * float(np.abs(rest).max())) ** 2
        away = (float(largest[j]) - middle) ** 2
        if moves and away > _SHARE * (away + spread):
            found[int(j)] = float(largest[j] * fit.scaling.scale[j - k] + fit.scaling.centre[j - k])
    return found


def far_flags(values: Mapping[int, float], names: Sequence[str]) -> tuple[Flag, ...]:
    """The doubt of a run with such rows."""
    if not values:
        return ()
    some = list(values.items())[:8]
    listed = ", ".join(names[j] + (f" (the row with {x:.8g})" if np.isfinite(x) else "") for j, x in some)
    return (
        (
            "leverage",
            f"one row makes over nine tenths of the spread of {listed}, and may decide all coefficients: look for a "
            "sentinel value such as 99999999 or a mistaken unit; leave the row out, or take logs of the column",
        ),
    )
