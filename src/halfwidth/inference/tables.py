"""The table of coefficients, as text and as HTML, and the summary that holds both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Self

from halfwidth.kernels.arrays import Vector


@dataclass(frozen=True)
class CoefficientTable:
    """The columns that statsmodels prints, in its order.

    Parameters
    ----------
    names : sequence of str
        What stands before each line.
    coef, std_err, t, p : ndarray of shape (d,)
        Estimates, standard errors, t statistics and p-values.
    bounds : ndarray of shape (d, 2)
        Lower and upper bounds.
    level : float
        The confidence level of the bounds.
    """

    names: Sequence[str]
    coef: Vector
    std_err: Vector
    t: Vector
    p: Vector
    bounds: Vector
    level: float

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """The header, and the cells of every line as text."""
        tail = 0.5 * (1.0 - self.level)
        header = ["", "coef", "std err", "t", "P>|t|", f"[{tail:.4g}", f"{1.0 - tail:.4g}]"]
        columns = zip(self.names, self.coef, self.std_err, self.t, self.p, self.bounds, strict=True)
        return header, [
            [name, _short(c), _short(s), f"{z:.3f}", f"{q:.3f}", _short(low), _short(high)]
            for name, c, s, z, q, (low, high) in columns
        ]

    def text(self) -> str:
        """The table between rules."""
        header, rows = self.cells()
        widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]

        def line(cells: list[str]) -> str:
            first, *others = cells
            return first.ljust(widths[0]) + "".join("  " + c.rjust(w) for c, w in zip(others, widths[1:], strict=True))

        rule = "=" * len(line(header))
        return "\n".join([rule, line(header), "-" * len(rule), *map(line, rows), rule])

    def html(self) -> str:
        """The table for a notebook."""
        header, rows = self.cells()
        head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
        body = "".join(
            f"<tr><th>{escape(first)}</th>" + "".join(f"<td>{escape(cell)}</td>" for cell in rest) + "</tr>"
            for first, *rest in rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


class Summary(str):
    """A summary: text that prints as a table, and shows as one in a notebook.

    Parameters
    ----------
    above : sequence of str
        Lines before the table.
    table : CoefficientTable
        The table.
    below : sequence of str
        Lines after it: notes and warnings.
    """

    _html: str

    def __new__(cls, above: Sequence[str], table: CoefficientTable, below: Sequence[str]) -> Self:
        made = super().__new__(cls, "\n".join([*above, table.text(), *below]))
        lines = ["".join(f"<div>{escape(line)}</div>" for line in part) for part in (above, below)]
        made._html = f"<div>{lines[0]}{table.html()}{lines[1]}</div>"
        return made

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return self._html

    def as_text(self) -> str:
        """Return the summary as plain text.

        Returns
        -------
        str
            Without the HTML.
        """
        return str.__str__(self)

    def as_html(self) -> str:
        """Return the summary as HTML.

        Returns
        -------
        str
            What a notebook shows.
        """
        return self._html


def _short(value: float) -> str:
    return f"{value:.4f}" if 1e-3 <= abs(value) < 1e5 or value == 0.0 else f"{value:.4g}"
