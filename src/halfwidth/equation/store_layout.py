"""A batch store from a state, for whoever knows how such a store is laid out."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from halfwidth.equation.batch_store import BatchStore
from halfwidth.errors import BadState

Store = TypeVar("Store", bound=BatchStore)
_SIZES = ("first_length", "capacity", "lower")


def restored_store(fresh: Store, state: dict[str, Any], where: str = "batches", *, rebased: bool = False) -> Store:
    """The store that a state describes; `BadState` unless it is laid out as the fresh one is.

    Its reference is that of the fresh one, unless it may have been `rebased`.
    """
    store = type(fresh).from_state(state)
    for name in _SIZES:
        if getattr(store, name) != getattr(fresh, name):
            raise BadState.at(f"{where}.{name}", f"be {getattr(fresh, name)} for this run", getattr(store, name))
    for name in fresh.sums._fields:
        wanted, found = getattr(fresh.sums, name), getattr(store.sums, name)
        if (wanted.shape, wanted.dtype) != (found.shape, found.dtype):
            raise BadState.at(f"{where}.{name}", f"be of {wanted.dtype}, {wanted.shape[1:]} per batch", found.shape[1:])
    if not rebased and not np.array_equal(store.reference, fresh.reference):
        raise BadState.at(f"{where}.reference", "be that of this run", store.reference)
    return store
