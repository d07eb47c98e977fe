"""The table of coefficients, as text and as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def _cells(
    names: Sequence[str], coef: Vector, se: Vector, t: Vector, p: Vector, bounds: Vector, level: float
) -> tuple[list[str], list[list[str]]]:
    tail = 0.5 * (1.0 - level)
    header = ["", "coef", "std err", "t", "P>|t|", f"[{tail:.4g}", f"{1.0 - tail:.4g}]"]
    columns = zip(names, coef, se, t, p, bounds, strict=True)
    return header, [
        [name, _short(c), _short(s), f"{z:.3f}", f"{q:.3f}", _short(low), _short(high)]
        for name, c, s, z, q, (low, high) in columns
    ]


def _short(value: float) -> str:
    return f"{value:.4f}" if 1e-3 <= abs(value) < 1e5 or value == 0.0 else f"{value:.4g}"


def text_table(
    names: Sequence[str], coef: Vector, se: Vector, t: Vector, p: Vector, bounds: Vector, level: float
) -> str:
    """The columns that statsmodels prints, in its order."""
    header, rows = _cells(names, coef, se, t, p, bounds, level)
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]

    def line(cells: list[str]) -> str:
        first, *others = cells
        return first.ljust(widths[0]) + "".join("  " + c.rjust(w) for c, w in zip(others, widths[1:], strict=True))

    rule = "=" * len(line(header))
    return "\n".join([rule, line(header), "-" * len(rule), *map(line, rows), rule])


def html_table(
    facts: Sequence[str],
    names: Sequence[str],
    coef: Vector,
    se: Vector,
    t: Vector,
    p: Vector,
    bounds: Vector,
    level: float,
    notes: Sequence[str],
) -> str:
    """The same for a notebook."""
    header, rows = _cells(names, coef, se, t, p, bounds, level)
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join(
        f"<tr><th>{escape(first)}</th>" + "".join(f"<td>{escape(cell)}</td>" for cell in rest) + "</tr>"
        for first, *rest in rows
    )
    above = "".join(f"<div>{escape(line)}</div>" for line in facts)
    below = "".join(f"<div>{escape(line)}</div>" for line in notes)
    return f"<div>{above}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}</div>"
