"""Stores of several pieces of data become one.

`pool` is for independent pieces (workers, partitions): batches of one piece follow those of the other, and no kernel
reaches across more than their ends. `concat` is for consecutive pieces: the second began where the first ended. Batches
are brought to the same length and reference first. Buckets of groups are added one by one, as the same group is in the
same bucket of both; or group by group while every group still owns one.

Pieces may come in coordinates and weights of their own: with x = M x' and rows that count `factor` times as much,

    H' = factor M'H M,   b' = factor M'b,   reference' = M^-1 reference.
"""

from __future__ import annotations

import numpy as np

from halfwidth.equation.batch_store import BatchStore
from halfwidth.equation.buckets import SMALLEST, BucketStore
from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector


def concat(first: BatchStore, second: BatchStore) -> BatchStore:
    """One store for consecutive pieces; the open batch of the first is closed as it is."""
    if first.dim != second.dim or first.capacity != second.capacity or first.lower != second.lower:
        facts = [(store.dim, store.capacity, store.lower) for store in (first, second)]
        raise InputError.of("the stores", "have the same dimension, capacity and layout", facts)
    one, two = first.copy(), second.copy()
    two.rebase(one.reference)
    while one.length < two.length:
        one.merge()
    while two.length < one.length or one.batches + two.batches >= one.capacity:
        for store in (one, two) if one.length == two.length else (two,):
            store.merge()
    a, b = one.batches, two.batches
    for mine, theirs in zip(one.sums, two.sums, strict=True):
        mine[a : a + b] = theirs[:b]
    one.open = a + b
    if one.single:
        one._closed += two._closed
    one.reset_closed()
    return one


def pool(first: BatchStore | BucketStore, second: BatchStore | BucketStore) -> BatchStore | BucketStore:
    """One store for independent pieces."""
    if isinstance(first, BatchStore) and isinstance(second, BatchStore):
        return concat(first, second)
    if isinstance(first, BucketStore) and isinstance(second, BucketStore):
        return _pool_buckets(first, second)
    raise InputError("grouped and ungrouped pieces cannot be pooled; give groups with all of them or with none")


def _pool_buckets(first: BucketStore, second: BucketStore) -> BucketStore:
    facts = [(store.dim, store.capacity, store.owned) for store in (first, second)]
    if facts[0] != facts[1]:
        raise InputError.of("the stores", "have the same dimension, capacity and ownership", facts)
    pooled = BucketStore.from_state(first.to_state())
    places = np.arange(second.capacity)
    if second.owned:
        if len(set(first._owners) | set(second._owners)) > first.capacity or not second.groups[1]:
            raise InputError(
                f"more than {first.capacity:,} groups can be pooled only from stores made with owned=False, where the "
                "same group is in the same bucket of each"
            )
        keys = np.array(list(second._owners), dtype=np.uint64)
        places = np.array([pooled._owners.setdefault(int(key), len(pooled._owners)) for key in keys], dtype=np.int64)
    pooled.add(places, second.b[: len(places)], second.H[: len(places)], second.n[: len(places)])
    pooled._smallest = np.union1d(first._smallest, second._smallest)[:SMALLEST]
    return pooled


def recast(store: BatchStore | BucketStore, M: Vector, factor: float) -> None:
    """Bring a store, in place, to coordinates that M maps to its own, and to other weights; one matrix at a time."""
    matrices, b = (store.sums.H, store.sums.b) if isinstance(store, BatchStore) else (store.H, store.b)
    for H in matrices:
        if H.any():
            H[:] = factor * (M.T @ H @ M)
    b[:] = factor * (b @ M)
    if isinstance(store, BatchStore):
        if store.single:
            store._closed = factor * (M.T @ store._closed @ M)
        store.reset_closed()
        store.reference = np.asarray(np.linalg.solve(M, store.reference), dtype=np.float64)
