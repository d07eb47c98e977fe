"""A renewable Newton that goes on with more columns, which were zero in all rows so far.

With centre 0 and a scale s_j of their own the new columns are zero on the internal scale too, so H, b and the kept rows
are those of the narrow model with zeros around them, and nothing is lost: for squared loss the estimate stays exact. A
store whose batches would now take too much memory merges them first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from halfwidth.equation import BatchStore, capacity_for
from halfwidth.errors import InputError
from halfwidth.families import make_loss
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.newton.chunk_sums import TIME_BATCHES
from halfwidth.learners.newton.kept_sample import capacity_for_sample, hashed, width_of

State = dict[str, Any]

_MOST_BUCKET_NUMBERS = 2**27


def with_columns(state: State, scales: Vector) -> State:
    """The state of a `RenewableNewton` with one more column for each of the scales, at the end."""
    more, dim = len(scales), state["dim"]
    loss = make_loss(state["loss"], **state["options"])
    prior = np.full(more, loss.curvature_unit if state["prior"].any() else 0.0)
    wide = state | {
        "dim": dim + more,
        "anchor": None if state["anchor"] is None else _longer(state["anchor"], np.zeros(more)),
        "pending": np.insert(state["pending"], [dim] * more, 0.0, axis=1),
        "prior": _longer(state["prior"], prior),
        "prior_centre": _longer(state["prior_centre"], np.zeros(more)),
    }
    if state["column_centre"] is not None:
        wide["column_centre"] = _longer(state["column_centre"], np.zeros(more))
        wide["column_scale"] = _longer(state["column_scale"], scales)
    if state["sums"] is not None:
        wide["sums"] = _sums(state["sums"], more)
    return wide


def _longer(values: Any, end: Vector) -> Vector:
    return np.concatenate([np.asarray(values, dtype=np.float64), end])


def _padded(values: Vector, more: int, axes: int) -> Vector:
    """Zeros behind the last `axes` axes."""
    return np.pad(values, [(0, 0)] * (values.ndim - axes) + [(0, more)] * axes)


def _sums(state: State, more: int) -> State:
    size = len(state["smoothing"]) + more
    grouped = state["buckets"] is not None
    fitting = capacity_for(size, TIME_BATCHES) if grouped else capacity_for(size)
    if "dispersion" in state:
        cross = _padded(state["dispersion"]["cross"], more, 1)
        state = state | {"dispersion": state["dispersion"] | {"cross": cross}}
    return state | {
        "smoothing": _padded(state["smoothing"], more, 1),
        "batches": _batches(state["batches"], more, fitting),
        "buckets": _buckets(state["buckets"], more) if grouped else None,
        "sample": None if state["sample"] is None else _sample(state["sample"], more),
    }


def _batches(state: State, more: int, fitting: int) -> State:
    if state["capacity"] > fitting:
        store = BatchStore.from_state(state)
        while store.open >= fitting:
            store.merge()
        state = store.to_state() | {"capacity": fitting}
    return state | {
        "reference": _padded(state["reference"], more, 1),
        "closed": _padded(state["closed"], more, 2),
        "H": _padded(state["H"], more, 2),
        "b": _padded(state["b"], more, 1),
    }


def _buckets(state: State, more: int) -> State:
    dim = state["dim"] + more
    if state["capacity"] * dim**2 > _MOST_BUCKET_NUMBERS:
        raise InputError(
            f"{dim} columns are too many for {state['capacity']:,} buckets of groups that a narrower model began with; "
            "name all levels in the first rows, or refuse late ones: unknown_level='error'"
        )
    return state | {"dim": dim, "H": _padded(state["H"], more, 2), "b": _padded(state["b"], more, 1)}


def _sample(state: State, more: int) -> State:
    rows, index, ids, thinning = state["rows"], state["index"], state["ids"], state["thinning"]
    size = rows.shape[1] - width_of(0)
    while len(rows) > capacity_for_sample(size + more):
        thinning += 1
        stay = np.flatnonzero(hashed(index) >> np.uint64(64 - thinning) == 0)
        rows, index, ids = rows[stay], index[stay], ids[stay]
    wide = np.insert(rows, [size] * more, 0.0, axis=1)
    return {"thinning": thinning, "rows": wide, "index": index, "ids": ids}
