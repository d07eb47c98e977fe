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
from halfwidth.streams import ReaderArguments, read_predictors

INTERVALS = ("mean", "observation")


def predictions(
    model: StreamModel,
    source: Any,
    *,
    interval: str | None = None,
    level: float = 0.95,
    bad_rows: str = "error",
    **reader: Unpack[ReaderArguments],
) -> Iterator[dict[str, Vector]]:
    """Predict every row of a source, in order, with flat memory.

    Parameters
    ----------
    model
        A model of `halfwidth.fit`.
    source
        Anything that `halfwidth.fit` reads, with the raw columns of the model; the target is not needed.
    interval
        "mean" for an interval of the mean, "observation" for one of a new observation (linear models only).
    level
        Of the interval.
    bad_rows
        "error", or "skip": NaN for a row that cannot be used.
    **reader
        How the source is read.

    Yields
    ------
    dict
        For each block `mean`, and with an interval `mean_ci_lower` and `mean_ci_upper`, or `obs_ci_lower` and
        `obs_ci_upper`: one number per row. For two classes the mean is the probability of the
        second; for more there is a column for each.
    """
    if interval is not None and interval not in INTERVALS:
        raise UnknownName.among("interval", interval, INTERVALS)
    if model.specification_ is None:
        raise InputError("the model was fitted on a matrix and keeps no specification; fit it with halfwidth.fit")
    check_level(level)
    result = None if interval is None else model.inference(level)
    for rows in read_predictors(source, model.specification_, bad_rows, **reader):
        found = model._linear_predictor(rows.X, rows.offset)
        if isinstance(model, MultinomialRegression):
            columns = model._predicted(found)
        else:
            columns = {"mean": np.asarray(model._engine.loss.mean(found))}
        if result is not None:
            prediction = result.get_prediction(rows.X, 0.0 if rows.offset is None else rows.offset)
            name = "mean" if interval == "mean" else "obs"
            bounds = prediction.conf_int(1.0 - level, obs=interval == "observation")
            columns |= {f"{name}_ci_lower": bounds[:, 0], f"{name}_ci_upper": bounds[:, 1]}
        yield {name: _spread(values, rows.good) for name, values in columns.items()}


def _spread(values: Vector, good: NDArray[np.bool_] | None) -> Vector:
    """The values at the usable rows, NaN elsewhere."""
    if good is None:
        return values
    spread = np.full(len(good), np.nan)
    spread[good] = values
    return spread
