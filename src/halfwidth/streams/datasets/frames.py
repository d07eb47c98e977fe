"""Regressions prepared from the example data: numeric columns, complete rows, in time order.

| data      | target                        | features                                                          |
|-----------|-------------------------------|-------------------------------------------------------------------|
| `beijing` | `log_pm25` = log(1 + pm2.5);  | dew point, temperature, pressure, wind speed and direction        |
|           | `high` = 1{pm2.5 > 75}        | (calm is the reference), snow, rain; harmonics of year and day    |
| `flights` | `late` = 1{arr_delay > 15}    | distance in miles, origin (EWR is the reference), weekend;        |
|           |                               | harmonics of year and of the scheduled time of day                |

`time` is in hours since the first row's day began and is no feature. Flights keep `carrier`, as text, for formulas.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from halfwidth.errors import UnknownName
from halfwidth.streams.block import need
from halfwidth.streams.datasets.fetch import cache_folder, dataset, put_first

TARGETS = {"beijing": ("log_pm25", "high"), "flights": ("late",)}
_HOURS_PER_YEAR = 24 * 365.25


def _harmonics(frame: Any, name: str, turns: Any) -> None:
    """Add sin and cos of one and two cycles for each turn."""
    for cycle in (1, 2):
        frame[f"sin_{name}_{cycle}"] = np.sin(2 * np.pi * cycle * turns)
        frame[f"cos_{name}_{cycle}"] = np.cos(2 * np.pi * cycle * turns)


def _beijing(pandas: Any, raw: Any) -> Any:
    """41,757 complete hours of Beijing's air, in time order."""
    moment = pandas.to_datetime(raw[["year", "month", "day", "hour"]])
    hours = (moment - moment.min().normalize()) / pandas.Timedelta(hours=1)
    frame = pandas.DataFrame({"time": hours, "log_pm25": np.log1p(raw["pm2.5"])})
    frame["high"] = (raw["pm2.5"] > 75).astype(float)
    for ours, theirs in (
        ("dew_point", "DEWP"),
        ("temperature", "TEMP"),
        ("pressure", "PRES"),
        ("wind_speed", "Iws"),
        ("snow", "Is"),
        ("rain", "Ir"),
    ):
        frame[ours] = raw[theirs].astype(float)
    for direction in ("NE", "NW", "SE"):
        frame[f"wind_{direction}"] = (raw["cbwd"] == direction).astype(float)
    _harmonics(frame, "year", hours / _HOURS_PER_YEAR)
    _harmonics(frame, "day", hours / 24)
    return frame


def _flights(pandas: Any, raw: Any) -> Any:
    """The 327,346 flights that arrived, in the order of their scheduled departure."""
    day = pandas.to_datetime(raw[["year", "month", "day"]])
    clock = raw["sched_dep_time"] // 100 + raw["sched_dep_time"] % 100 / 60
    hours = (day - day.min()) / pandas.Timedelta(hours=1) + clock
    frame = pandas.DataFrame({"time": hours, "late": (raw["arr_delay"] > 15).astype(float)})
    frame["distance"] = raw["distance"].astype(float)
    for origin in ("JFK", "LGA"):
        frame[f"origin_{origin}"] = (raw["origin"] == origin).astype(float)
    frame["weekend"] = (day.dt.day_of_week >= 5).astype(float)
    _harmonics(frame, "year", hours / _HOURS_PER_YEAR)
    _harmonics(frame, "day", clock / 24)
    frame["carrier"] = raw["carrier"].astype(str)
    return frame


_PREPARE = {"beijing": (_beijing, "pm2.5"), "flights": (_flights, "arr_delay")}


def regression_frame(name: str, path: str | os.PathLike[str] | None = None) -> Any:
    """A prepared regression: one row per observation, complete ones only, in time order.

    Parameters
    ----------
    name : {"beijing", "flights"}
        Which.
    path : path, optional
        A copy of the raw data.

    Returns
    -------
    DataFrame
        With `time`, the targets and the features.
    """
    if name not in _PREPARE:
        raise UnknownName.among("prepared regression", name, TARGETS)
    prepare, complete = _PREPARE[name]
    pandas = need("pandas")
    frame = prepare(pandas, pandas.read_csv(dataset(name, path)).dropna(subset=[complete]))
    return frame.sort_values("time", kind="stable").reset_index(drop=True)


def features(name: str) -> list[str]:
    """The numeric features of a prepared regression."""
    shared = [f"{wave}_{turn}_{cycle}" for turn in ("year", "day") for cycle in (1, 2) for wave in ("sin", "cos")]
    if name == "beijing":
        weather = ["dew_point", "temperature", "pressure", "wind_speed", "snow", "rain"]
        return [*weather, "wind_NE", "wind_NW", "wind_SE", *shared]
    if name == "flights":
        return ["distance", "origin_JFK", "origin_LGA", "weekend", *shared]
    raise UnknownName.among("prepared regression", name, TARGETS)


def regression_file(name: str, path: str | os.PathLike[str] | None = None) -> Path:
    """The prepared regression as a Parquet file in the cache.

    Parameters
    ----------
    name : str
        "beijing" or "flights".
    path : path, optional
        A copy of the raw data.

    Returns
    -------
    Path
        The file.
    """
    features(name)
    prepared = cache_folder() / f"{name}-regression.parquet"
    if not prepared.exists() or path is not None:
        frame = regression_frame(name, path)
        prepared.parent.mkdir(parents=True, exist_ok=True)
        temporary = prepared.with_name(f".{prepared.name}.{os.getpid()}")
        frame.to_parquet(temporary, index=False)
        if path is None:
            put_first(temporary, prepared)
        else:
            os.replace(temporary, prepared)
    return prepared
