"""Predictions for every row of a source, block by block, by a model that keeps its specification."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from halfwidth.checks import check_level
from halfwidth.errors import InputError, UnknownName
from halfwidth.kernels.arrays import Vector
from halfwidth.models.base import StreamModel
from halfwidth.models.multinomial import MultinomialRegression
from halfwidth.streams import PredictorBlock, ReaderArguments, read_predictors

INTERVALS = ("mean", "observation")


class Predictions:
    """Predictions for the rows of a source, in order and with flat memory.

    Iterating gives a dictionary of columns for each block: `mean`, and with an interval `mean_ci_lower` and
    `mean_ci_upper`, or `obs_ci_lower` and `obs_ci_upper`: one number per row. For two classes the mean is the
    probability of the second; for more there is a column `p[label]` for each, with its own bounds.

    Parameters
    ----------
    model : StreamModel
        A model of `halfwidth.fit`.
    source : object
        Anything that `halfwidth.fit` reads, with the raw columns of the model; the target is not needed.
    interval : {"mean", "observation"}, optional
        Whether there is an interval of the mean, or of a new observation (linear models only).
    level : float, default 0.95
        Of the interval.
    bad_rows : {"error", "skip"}, default "error"
        What becomes of a row that cannot be predicted; "skip" gives NaN and counts it.
    **reader : ReaderArguments
        How the source is read.

    Attributes
    ----------
    rows : int
        Rows read so far.
    skipped : dict
        How many of them have no prediction, by reason.
    refused : list of str
        The coefficients that have no interval.
    resting_on_refused : int
        How many predictions so far rest on one of those, and have no interval either.
    """

    def __init__(
        self,
        model: StreamModel,
        source: Any,
        *,
        interval: str | None = None,
        level: float = 0.95,
        bad_rows: str = "error",
        **reader: Unpack[ReaderArguments],
    ) -> None:
        if interval is not None and interval not in INTERVALS:
            raise UnknownName.among("interval", interval, INTERVALS)
        if model.specification_ is None:
            raise InputError("the model was fitted on a matrix and keeps no specification; fit it with halfwidth.fit")
        self._model, self._interval, self._alpha = model, interval, 1.0 - check_level(level)
        self._result = None if interval is None else model.inference(level)
        self._blocks = read_predictors(source, model.specification_, bad_rows, **reader)
        self.rows = self.resting_on_refused = 0
        self.skipped: dict[str, int] = {}
        self.refused, self._refused_columns, self._intercept_refused = _refused(model)

    def __iter__(self) -> Iterator[dict[str, Vector]]:
        for block in self._blocks:
            for reason, count in block.skipped.items():
                self.skipped[reason] = self.skipped.get(reason, 0) + count
            self.rows += len(block.X) + sum(block.skipped.values())
            resting = (block.X[:, self._refused_columns] != 0.0).any(axis=1) | self._intercept_refused
            self.resting_on_refused += int(np.count_nonzero(resting))
            yield {name: _spread(values, block.good) for name, values in self._columns(block).items()}

    def no_rows(self) -> dict[str, Vector]:
        """Return the columns without a row, as a source without rows has them.

        Returns
        -------
        dict
            By name, as for a block.
        """
        offset = None if isinstance(self._model, MultinomialRegression) else np.empty(0)
        return self._columns(PredictorBlock(np.empty((0, self._model.n_features_in_)), offset))

    def _columns(self, block: PredictorBlock) -> dict[str, Vector]:
        eta = self._model._linear_predictor(block.X, block.offset)
        if isinstance(self._model, MultinomialRegression):
            means = self._model._predicted(eta)
        else:
            means = {"mean": np.asarray(self._model._engine.loss.mean(eta))}
        if self._result is None:
            return means
        found = self._result.get_prediction(block.X, block.offset)
        return found.columns(self._alpha, obs=self._interval == "observation") | means  # the same bits with or without


def _refused(model: StreamModel) -> tuple[list[str], NDArray[np.bool_], bool]:
    """The coefficients without an interval: their names, their columns, and whether an intercept is among them."""
    rows = model.report()["coefficients"]
    none = np.array([row["std_err"] is None for row in rows])
    names = [row["name"] for row, refused in zip(rows, none, strict=True) if refused]
    first = int(model._has_intercept())
    by_equation = none.reshape(-1, first + model.n_features_in_)
    return names, np.asarray(by_equation[:, first:].any(axis=0)), bool(by_equation[:, :first].any())


def _spread(values: Vector, good: NDArray[np.bool_] | None) -> Vector:
    """The values at the usable rows, NaN elsewhere."""
    if good is None:
        return values
    spread = np.full(len(good), np.nan)
    spread[good] = values
    return spread
