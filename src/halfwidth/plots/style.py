"""One look for all pictures, with colours that survive colour-blindness.

Names get the colours of Okabe and Ito; values in order get a ramp from dark to bright, which survives grey print too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halfwidth.errors import InputError, MissingExtra
from halfwidth.state.atomic import write_output

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vPX"
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (2, 1.5)), (0, (6, 1.5, 1.5, 1.5)), (0, (1, 1)), (0, (8, 2)))
_LEADING = ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7), (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9))
_FEWEST_TICKS = 3
_BELOW_AXIS = 0.45  # inches
_BRIGHTEST = 0.82  # of plasma: what comes after is too pale on white


def check_plot(path: Path) -> None:
    """Refuse a picture that could not be written, before the work that it would show is done."""
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InputError.of("plot", "end in .png, .svg or .pdf", str(path))
    if find_spec("matplotlib") is None:
        raise MissingExtra.named("matplotlib", "plots")


def new_figure(rows: int, columns: int, width: float = 5.0, height: float = 3.4, **options: Any) -> tuple[Any, Any]:
    """A figure and its axes, drawn without a display."""
    check_plot(Path("figure.png"))
    from matplotlib.figure import Figure

    figure = Figure(figsize=(columns * width, rows * height), layout="constrained")
    axes = figure.subplots(rows, columns, **options)
    return figure, axes


def new_picture(rows: Sequence[Sequence[str]], width: float, height: float) -> tuple[Figure, dict[str, Any]]:
    """A figure that a notebook shows, and its axes by name; a name that stands in several rows reaches over them."""
    check_plot(Path("figure.png"))
    from halfwidth.plots.picture import Picture

    figure = Picture(figsize=(width, height), layout="constrained")
    return figure, figure.subplot_mosaic([list(row) for row in rows])


def ramp(count: int) -> list[Any]:
    """So many colours in order, from dark to bright."""
    from matplotlib import colormaps

    return [colormaps["plasma"](_BRIGHTEST * at / max(count - 1, 1)) for at in range(count)]


def log_ticks(axis: Any, ticks: Sequence[float] = ()) -> None:
    """A few plain labels on a logarithmic axis, whatever its range."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axis.set_major_locator(FixedLocator(ticks or _round_numbers(*axis.get_view_interval())))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))
    axis.set_minor_locator(NullLocator())


def _round_numbers(low: float, high: float) -> list[float]:
    """The roundest numbers of which there are at least three from low to high."""
    from matplotlib.ticker import MaxNLocator

    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for leading in _LEADING:
        found = [float(f"{digit}e{decade}") for decade in decades for digit in leading]
        inside = [value for value in found if low <= value <= high]
        if len(inside) >= _FEWEST_TICKS:
            return inside
    even = MaxNLocator(_FEWEST_TICKS, steps=[1, 2, 5, 10]).tick_values(low, high)
    return [float(value) for value in even if low <= value <= high]


def _short(value: float) -> str:
    if value >= 1_000_000:
        return f"{value / 1_000_000:g}M"
    return f"{value / 1_000:g}k" if value >= 1_000 else f"{value:g}"


def tidy(axes: Any, title: str, x: str, y: str) -> None:
    """Set title and labels, a light grid, and no frame at the top and right."""
    axes.set_title(title, fontsize=11)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def legend_below(axes: Any, handles: Sequence[Any] | None = None, columns: int = 1) -> None:
    """A legend under the label of the x axis, at the same distance whatever the height of the panel."""
    from matplotlib.transforms import ScaledTranslation

    below = axes.transAxes + ScaledTranslation(0.0, -_BELOW_AXIS, axes.figure.dpi_scale_trans)
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "bbox_transform": below}
    axes.legend(**({} if handles is None else {"handles": handles}), frameon=False, fontsize=8, ncols=columns, **place)


def save(figure: Any, path: Path, dpi: int = 150) -> None:
    """Write the picture in the format that the name asks for."""
    check_plot(path)
    content = BytesIO()
    figure.savefig(content, dpi=dpi, format=path.suffix.lstrip(".").lower())
    write_output(path, content.getvalue(), "picture")
