"""Groups of rows in any order, in flat memory.

Every group goes to one of K buckets and a bucket holds whole groups, so buckets are independent when groups are, in
whatever order rows come. The first K groups own a bucket each; later ones share by a fixed 64-bit hash of their
canonical bytes, never Python's `hash`, which differs from run to run. A bucket adds up H and b like a batch
(`halfwidth.equation.batch_store`), and the jackknife over buckets with the identity for a kernel gives the errors.

The number of groups is exact while there are at most `SMALLEST` of them. Beyond, it is estimated from the k-th smallest
hash h_k as (k - 1) / h_k, with hashes uniform on (0, 1] and k = SMALLEST: a relative error of about 2%.

Z. Bar-Yossef et al., *Counting distinct elements in a data stream*, RANDOM 2002, for the estimate.
"""

from __future__ import annotations

import hashlib
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.equation.batch_sums import MOST_BATCHES, Sums, capacity_for
from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.state.fields import Array, Bool, State, Whole
from halfwidth.state.schema import Relation, Schema, Stored

Ids = NDArray[np.uint64]

SMALLEST = 2_048


def canonical_bytes(value: Any) -> bytes:
    """The same bytes for equal ids of any type: 5, 5.0 and np.uint64(5) are one group, "5" is another."""
    if isinstance(value, (bool, np.bool_)):
        value = int(value)
    if isinstance(value, (float, np.floating)):
        if not np.isfinite(value):
            raise InputError("group must not be missing or infinite; leave such rows out, or name their group")
        value = int(value) if float(value).is_integer() else float(value)
    if isinstance(value, (int, np.integer)):
        return b"i" + str(int(value)).encode()
    if isinstance(value, float):
        return b"f" + repr(value).encode()
    if isinstance(value, str):
        return b"s" + value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes):
        return b"b" + value
    if isinstance(value, (np.datetime64, np.timedelta64)):
        if np.isnat(value):
            raise InputError("group must not be missing; leave such rows out, or name their group")
        return b"t" + str(value.astype("M8[ns]" if isinstance(value, np.datetime64) else "m8[ns]").astype(int)).encode()
    if value is None:
        raise InputError("group must not be missing; leave such rows out, or name their group")
    if isinstance(value, tuple):
        parts = [canonical_bytes(part) for part in value]
        return b"(" + b"".join(str(len(part)).encode() + b":" + part for part in parts)
    if hasattr(value, "isoformat"):
        return b"t" + str(value.isoformat()).encode()
    raise InputError.of("group", "hold numbers, text, dates or tuples of them", type(value).__name__)


def digests(groups: ArrayLike) -> Ids:
    """A 64-bit hash of every id."""
    ids = np.asarray(groups)
    if ids.ndim != 1:
        raise InputError.of("group", "be one label for each row", ids.shape)
    if ids.dtype.kind in "OU":
        try:
            unique = {value: _digest(value) for value in dict.fromkeys(ids.tolist())}
        except TypeError:
            raise InputError("group must hold numbers, text, dates or tuples of them") from None
        return np.array([unique[value] for value in ids.tolist()], dtype=np.uint64)
    values, inverse = np.unique(ids, return_inverse=True)
    return np.array([_digest(value) for value in values], dtype=np.uint64)[inverse.reshape(-1)]


def _digest(value: Any) -> int:
    return int.from_bytes(hashlib.blake2b(canonical_bytes(value), digest_size=8).digest(), "little")


def _in_order(state: State) -> bool:
    used, smallest, owners = state["used"], state["smallest"], state["owners"]
    ordered = bool((np.diff(used) > 0).all()) and (not len(used) or used[-1] < state["capacity"])
    distinct = len(set(owners.tolist())) == len(owners) <= (state["capacity"] if state["owned"] else 0)
    return ordered and distinct and len(smallest) <= SMALLEST and bool((smallest[1:] > smallest[:-1]).all())


class BucketStore(Stored):
    """H, b and rows of every bucket.

    Parameters
    ----------
    dim : int
        Number of coefficients.
    capacity : int, optional
        Number of buckets; by default 2,048, fewer where their matrices would be large.
    owned : bool
        Whether the first groups own a bucket each. Stores to be pooled need False: then the same group is in the same
        bucket of each.
    """

    kind = "bucket-store"
    version = 1
    SCHEMA = Schema(
        kind,
        version,
        {
            "dim": Whole(1, doc="coefficients"),
            "capacity": Whole(2, MOST_BATCHES, doc="buckets"),
            "owned": Bool(doc="whether the first groups own a bucket each"),
            "owners": Array(("owning",), "u", doc="hashes of the groups that own a bucket, in order"),
            "smallest": Array(("counted",), "u", doc="the smallest hashes, for counting groups"),
            "used": Array(("buckets",), "i", low=0, doc="buckets that hold rows"),
            "H": Array(("buckets", "dim", "dim"), doc="their sums of Hessians"),
            "b": Array(("buckets", "dim"), doc="their sums of H (l - reference) - g"),
            "n": Array(("buckets",), low=1.0, doc="their rows"),
        },
        relations=(Relation("have buckets, owners and hashes in order, within its capacity", _in_order),),
    )

    def __init__(self, dim: int, capacity: int | None = None, *, owned: bool = True) -> None:
        self.dim, self.owned = dim, owned
        self.capacity = capacity_for(dim) if capacity is None else capacity
        K = self.capacity
        self.H, self.b, self.n = np.zeros((K, dim, dim)), np.zeros((K, dim)), np.zeros(K)
        self.rows = 0
        self._owners: dict[int, int] = {}
        self._smallest: Ids = np.empty(0, dtype=np.uint64)

    @property
    def groups(self) -> tuple[int, bool]:
        """How many groups were seen, and whether that is exact."""
        k = len(self._smallest)
        if k < SMALLEST:
            return k, True
        return round((k - 1) * 2.0**64 / (float(self._smallest[-1]) + 1.0)), False

    @property
    def buckets(self) -> int:
        """How many buckets hold any row."""
        return int(np.count_nonzero(self.n))

    def places(self, ids: Ids) -> NDArray[np.int64]:
        """The bucket of every row, by the hash of its group."""
        unique, inverse = np.unique(ids, return_inverse=True)
        if len(self._smallest) < SMALLEST or unique[0] < self._smallest[-1]:
            self._smallest = np.union1d(self._smallest, unique)[:SMALLEST]
        order = np.argsort(np.unique(ids, return_index=True)[1])  # the first to come owns the first bucket
        found = np.empty(len(unique), dtype=np.int64)
        for at in order.tolist():
            key = int(unique[at])
            place = self._owners.get(key)
            if place is None:
                place = len(self._owners) if self.owned and len(self._owners) < self.capacity else key % self.capacity
                if self.owned and len(self._owners) < self.capacity:
                    self._owners[key] = place
            found[at] = place
        return found[inverse.reshape(-1)]

    def add(self, places: NDArray[np.int64], b: Vector, H: Vector, rows: Vector) -> None:
        """Add pieces, each of rows of one bucket, to their buckets; no bucket twice in one call."""
        self.b[places] += b
        self.H[places] += H
        self.n[places] += rows
        self.rows += int(rows.sum())

    def rebase(self, moved: Vector) -> None:
        """Make b relative to another reference, which is less by `moved` than the one before."""
        for H, b in zip(self.H, self.b, strict=True):
            b += H @ moved

    def closed(self) -> Sums:
        """The sums of the buckets that hold rows."""
        used = self.n > 0.0
        count = int(used.sum())
        none = np.empty((count, 0))
        return Sums(self.H[used], self.b[used], none, none, none, self.n[used], np.zeros(count))

    def curvature(self) -> Vector:
        """The sum of H over all rows."""
        return np.asarray(self.H.sum(axis=0))

    def score(self) -> Vector:
        """The sum of b over all rows."""
        return np.asarray(self.b.sum(axis=0))

    def to_state(self) -> dict[str, Any]:
        """Plain arrays; `from_state` goes on with the same bits."""
        used = np.flatnonzero(self.n)
        return {
            "kind": self.kind,
            "version": self.version,
            "dim": self.dim,
            "capacity": self.capacity,
            "owned": self.owned,
            "owners": np.array(list(self._owners), dtype=np.uint64),
            "smallest": self._smallest.copy(),
            "used": used,
            "H": self.H[used],
            "b": self.b[used],
            "n": self.n[used],
        }

    @classmethod
    def _restored(cls, state: dict[str, Any]) -> Self:
        store = cls(int(state["dim"]), int(state["capacity"]), owned=bool(state["owned"]))
        used = np.array(state["used"], dtype=np.int64)
        store.H[used], store.b[used], store.n[used] = state["H"], state["b"], state["n"]
        store.rows = int(store.n.sum())
        store._owners = {int(key): place for place, key in enumerate(np.array(state["owners"], dtype=np.uint64))}
        store._smallest = np.array(state["smallest"], dtype=np.uint64)
        return store
