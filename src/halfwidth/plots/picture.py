"""A figure that shows itself in a notebook, with or without pyplot; imported only when something is drawn."""

from __future__ import annotations

from io import BytesIO

from halfwidth.errors import MissingExtra

try:
    from matplotlib.figure import Figure
except ImportError as error:
    raise MissingExtra.named("matplotlib", "plots") from error


class Picture(Figure):
    """A matplotlib figure with a PNG for notebooks."""

    def _repr_png_(self) -> bytes:
        content = BytesIO()
        self.savefig(content, format="png", dpi=90)
        return content.getvalue()
