"""Tables of real features for the adverse battery, prepared once and kept in the cache.

Columns are the numeric features of the example regressions, each centred and divided by its standard deviation over the
whole table, after an intercept. Flights keep every fifth row, so that a replicate stays short.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from halfwidth.streams.block import need
from halfwidth.streams.datasets.fetch import cache_folder
from halfwidth.streams.datasets.frames import features, regression_file

EVERY = {"beijing": 1, "flights": 5}


def with_table_file(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a problem with the name of a table of real data replaced by the table's file."""
    name = settings.get("table")
    if name not in EVERY:
        return settings
    path = cache_folder() / f"{name}.npz"
    if not path.exists():
        table = need("pyarrow.parquet").read_table(regression_file(name), columns=features(name))
        X = np.column_stack([column.to_numpy() for column in table.columns]).astype(np.float64)[:: EVERY[name]]
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.npz")
        np.savez(temporary, features=np.column_stack([np.ones(len(X)), X]))
        os.replace(temporary, path)
    return {**settings, "table": str(path)}
