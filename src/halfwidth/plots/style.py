"""One look for all pictures, with colours that survive colour-blindness (Okabe and Ito's palette)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from halfwidth.errors import InputError, MissingExtra

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vPX"


def new_figure(rows: int, columns: int, width: float = 5.0, height: float = 3.4, **options: Any) -> tuple[Any, Any]:
    """A figure and its axes, drawn without a display."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra.named("matplotlib", "plots") from None
    figure = Figure(figsize=(columns * width, rows * height), layout="constrained")
    axes = figure.subplots(rows, columns, **options)
    return figure, axes


def tidy(axes: Any, title: str, x: str, y: str) -> None:
    axes.set_title(title, fontsize=11)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def save(figure: Any, path: Path, dpi: int = 150) -> None:
    """Write the picture in the format that the name asks for."""
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InputError.of("plot", "end in .png, .svg or .pdf", str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=dpi)
