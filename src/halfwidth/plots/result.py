"""The picture of a result: coefficients, how they settled, residuals and calibration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from halfwidth.errors import InputError, UnknownName
from halfwidth.plots.coefficients import MOST_SHOWN, draw_coefficients
from halfwidth.plots.residuals import SampleTable, draw_calibration, draw_residuals
from halfwidth.plots.settling import Settling, draw_settling
from halfwidth.plots.style import check_plot, new_picture, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS = ("coefficients", "settling", "residuals", "calibration")
_MANY = 14
"""More coefficients get a column of their own, the other panels beside it."""
_LINE, _HEIGHT, _WIDTH = 0.2, 3.6, 6.2


class ResultTable(NamedTuple):
    """What the picture of a result is drawn from; None where the result has no such table.

    `coefficients` are the rows that `to_frame` has, as dictionaries.
    """

    title: str
    status: str
    level: float
    coefficients: Sequence[dict[str, Any]]
    settling: Settling | None = None
    sample: SampleTable | None = None

    def has(self) -> tuple[str, ...]:
        """The panels that can be drawn."""
        there = (True, self.settling is not None, self.sample is not None, self.sample is not None)
        return tuple(name for name, known in zip(PANELS, there, strict=True) if known)


def plot_result(table: ResultTable, panels: Sequence[str] | str | None = None, path: Path | None = None) -> Figure:
    """Draw the panels asked for, or all that there are; a figure, which is also written where a path says."""
    if path is not None:
        check_plot(path)
    wanted = _wanted(table, panels)
    shown = min(len(table.coefficients), MOST_SHOWN)
    figure, axes = new_picture(*_layout(wanted, shown))
    if "coefficients" in wanted:
        draw_coefficients(axes["coefficients"], table.coefficients, table.level)
    if table.settling is not None and "settling" in wanted:
        draw_settling(axes["settling"], table.settling, table.level)
    if table.sample is not None and "residuals" in wanted:
        draw_residuals(axes["residuals"], table.sample)
    if table.sample is not None and "calibration" in wanted:
        draw_calibration(axes["calibration"], table.sample)
    fine = table.status == "ok"
    figure.suptitle(f"{table.title}, status {table.status}", fontsize=11, color="black" if fine else "#D55E00")
    if path is not None:
        save(figure, path)
    return figure


def _wanted(table: ResultTable, panels: Sequence[str] | str | None) -> tuple[str, ...]:
    if panels is None:
        return table.has()
    asked = (panels,) if isinstance(panels, str) else tuple(panels)
    for name in asked:
        if name not in PANELS:
            raise UnknownName.among("panel", str(name), PANELS)
        if name not in table.has():
            raise InputError(f"this result has nothing to draw for {name!r}; it has {', '.join(table.has())}")
    if not asked:
        raise InputError.of("panels", f"name some of {', '.join(PANELS)}", panels)
    return asked


def _layout(wanted: Sequence[str], shown: int) -> tuple[list[list[str]], float, float]:
    """Rows of names of panels, and the size of the figure in inches."""
    tall = "coefficients" in wanted and shown > _MANY
    others = [name for name in wanted if name != "coefficients"]
    if tall:
        height = max(1.2 + _LINE * shown, _HEIGHT * max(len(others), 1))
        return [["coefficients", name] for name in others] or [["coefficients"]], _WIDTH * (1 + bool(others)), height
    rows = [list(wanted[:2]), list(wanted[2:])] if len(wanted) == len(PANELS) else [list(wanted)]
    return rows, _WIDTH * len(rows[0]), _HEIGHT * len(rows)
