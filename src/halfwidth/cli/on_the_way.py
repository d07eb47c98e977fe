"""What `fit --every` prints: a line of a table for a few coefficients, as their intervals narrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from halfwidth.errors import UnknownName

FEW = 4
_ROWS, _CELL = 13, 27
_INTERCEPT = "Intercept"


class Lines:
    """The lines of the table; the first one has a header above it.

    Parameters
    ----------
    names : sequence of str
        The coefficients to show; the first four besides the intercept when none are given.
    """

    def __init__(self, names: Sequence[str] = ()) -> None:
        self._names = list(names)
        self._begun = False

    def add(self, report: dict[str, Any]) -> str:
        """The line of a report, below the header if it is the first one."""
        found = {row["name"]: row for row in report["coefficients"]}
        names = self._check(list(found))
        line = f"{report['n']:>{_ROWS},}" + "".join(f"  {_cell(found.get(name)):<{_CELL}}" for name in names)
        if self._begun:
            return line.rstrip()
        self._begun = True
        header = f"{'rows':>{_ROWS}}" + "".join(f"  {_cut(name):<{_CELL}}" for name in names)
        return f"{header.rstrip()}\n{line.rstrip()}"

    def _check(self, known: Sequence[str]) -> list[str]:
        if not self._names:
            self._names = [name for name in known if name != _INTERCEPT][:FEW] or [_INTERCEPT]
        for name in self._names:
            if name not in known and "[" not in name:  # a level may still come
                raise UnknownName.among("coefficient", name, known)
        return self._names


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "-"
    coef = "unknown" if row["coef"] is None else f"{row['coef']:.4g}"
    if row["std_err"] is None:
        return f"{coef} ({row['status']})"
    mark = "" if row["status"] == "ok" else " !"
    return f"{coef} [{row['ci_lower']:.4g}, {row['ci_upper']:.4g}]{mark}"


def _cut(name: str) -> str:
    return name if len(name) <= _CELL else f"{name[: _CELL - 3]}..."
