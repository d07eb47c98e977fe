"""`plot()` of results: the tables that the picture is drawn from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from halfwidth.checks import check_alpha, check_level
from halfwidth.errors import InputError
from halfwidth.inference.summary import coefficient_rows
from halfwidth.inference.trail import Trail
from halfwidth.plots.result import ResultTable, plot_result
from halfwidth.plots.settling import Settling

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from halfwidth.inference.result import Result

_FEWEST_LOOKS = 3


class Pictured:
    """A result that can be drawn."""

    @abstractmethod
    def _picture(self, level: float | None) -> ResultTable:
        """The tables of the picture; the result's own level for None."""

    def plot(
        self,
        panels: Sequence[str] | str | None = None,
        path: str | PathLike[str] | None = None,
        *,
        level: float | None = None,
        alpha: float | None = None,
    ) -> Figure:
        """Draw the coefficients with their doubts, how they settled, and what a sample of rows says about the fit.

        Parameters
        ----------
        panels : str or sequence of str, optional
            Some of ``"coefficients"``, ``"settling"``, ``"residuals"`` and ``"calibration"``; by default all that this
            result can show. The last two need rows, which results of regressions have a sample of.
        path : str or path-like, optional
            Where to write the picture: .png, .svg or .pdf.
        level : float, optional
            The confidence level of the intervals; 0.95, or that of the result.
        alpha : float, optional
            One minus the level, in its place.

        Returns
        -------
        matplotlib.figure.Figure
            The picture, which a notebook shows.

        Raises
        ------
        MissingExtra
            If matplotlib is not installed (``pip install 'halfwidth[plots]'``).
        """
        if level is not None or alpha is not None:
            level = chosen_level(level, alpha)
        return plot_result(self._picture(level), panels, None if path is None else Path(path))


def settling_of(result: Result, trail: Trail | None, level: float) -> Settling | None:
    """The trail in standard errors, with the band that chance gives it; None where there is too little to show."""
    if trail is None or len(trail.rows) < _FEWEST_LOOKS:
        return None
    known = np.isfinite(result.bse) & (result.bse > 0.0)
    if not known.any():
        return None
    distances = (trail.params[:, known] - result.params[known]) / result.bse[known]
    critical = float(np.median(result.critical_values(np.eye(result.params.size)[known], level)))
    names = tuple(name for name, told in zip(result.coefficient_names, known, strict=True) if told)
    return Settling(trail.rows, distances, critical * trail.funnel(), names)


def picture_of(result: Result, level: float) -> ResultTable:
    """The tables of a result without rows."""
    settling = settling_of(result, result._trail(), level)
    title = f"{result.n:,} rows, {result.method}"
    return ResultTable(title, result.status, level, coefficient_rows(result, level), settling)


def chosen_level(level: float | None, alpha: float | None, default: float = 0.95) -> float:
    """The level that was asked for, by itself or as one minus alpha."""
    if level is not None and alpha is not None:
        raise InputError.of("alpha", "be left out where a level is given", alpha)
    if alpha is not None:
        return 1.0 - check_alpha(alpha)
    return check_level(default if level is None else level)
