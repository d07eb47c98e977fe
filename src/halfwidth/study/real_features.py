"""Tables of real features for the adverse battery, prepared once and kept in the cache.

Columns are the numeric features of the example regressions, each centred and divided by its standard deviation over the
whole table, after an intercept. Flights keep every fifth row, so that a replicate stays short.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TypeVar

import numpy as np

from halfwidth.streams.block import need
from halfwidth.streams.datasets.fetch import cache_folder
from halfwidth.streams.datasets.frames import features, regression_file
from halfwidth.study.battery import BatteryRow

EVERY = {"beijing": 1, "flights": 5}

AnyRow = TypeVar("AnyRow", bound=BatteryRow)


def feature_file(row: AnyRow) -> AnyRow:
    """The row with the name of its table replaced by the table's file; other rows as they are."""
    name = row.settings.get("table")
    if name not in EVERY:
        return row
    path = cache_folder() / f"{name}.npz"
    if not path.exists():
        table = need("pyarrow.parquet").read_table(regression_file(name), columns=features(name))
        X = np.column_stack([column.to_numpy() for column in table.columns]).astype(np.float64)[:: EVERY[name]]
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.npz")
        np.savez(temporary, features=np.column_stack([np.ones(len(X)), X]))
        os.replace(temporary, path)
    return replace(row, settings={**row.settings, "table": str(path)})
