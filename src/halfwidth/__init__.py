"""Honest error bars for models learned by stochastic gradient steps over a stream."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "Auto": "learners",
    "BlockPlan": "schedules",
    "Burned": "watchers",
    "CappedSGD": "learners",
    "ChunkedNewton": "learners",
    "ConfidenceSequence": "watchers",
    "ConstantStep": "schedules",
    "EqualBatchMeans": "watchers",
    "Extrapolated": "watchers",
    "FixedBatchMeans": "watchers",
    "FlatTopBatchMeans": "watchers",
    "FunctionalScaling": "watchers",
    "HiGrad": "learners",
    "HuberRegressor": "models",
    "HullOfRuns": "learners",
    "ImplicitSGD": "learners",
    "IncreasingBatchMeans": "watchers",
    "Interval": "inference",
    "LinearRegression": "models",
    "LocalSGD": "learners",
    "LogisticRegression": "models",
    "MiniBatchBootstrap": "learners",
    "MultiplierBootstrap": "learners",
    "OneStep": "learners",
    "OverlappingBatchMeans": "watchers",
    "ParallelRuns": "learners",
    "PlugIn": "learners",
    "PoissonRegressor": "models",
    "PowerStep": "schedules",
    "Problem": "problems",
    "QuantileRegressor": "models",
    "RandomScaling": "watchers",
    "Result": "inference",
    "RichardsonRomberg": "learners",
    "SGD": "learners",
    "SpectralVariance": "watchers",
    "Threshold": "schedules",
    "TrajectoryRegression": "learners",
    "TruncatedSGD": "learners",
    "TruncationSets": "schedules",
    "ZerothOrderSGD": "learners",
    "fit": "models",
    "load": "models",
    "problem": "problems",
    "run_study": "study",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    """Import a public name from its room the first time it is used, so that importing the package is quick."""
    if name not in _HOME:
        raise AttributeError(f"module 'halfwidth' has no attribute {name!r}")
    value = getattr(import_module(f"halfwidth.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
