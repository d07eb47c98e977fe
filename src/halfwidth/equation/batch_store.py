"""Batches of the linearised estimating equation in flat memory.

A piece of n rows with gradient sum g and Hessian sum H at the linearisation point l adds, relative to `reference`,

    H,   b = H (l - reference) - g,   n,   and where theta is deployed T = n (theta - reference), U = H T / n, and R.

Everything the equation needs of the rows is a sum of these over pieces (`halfwidth.equation.equation`), whatever the
points were. Rows fill batches of `length` rows; when all `capacity` batches are full, neighbours merge and the length
doubles: between capacity/2 and capacity batches at any time, cut at multiples of the length wherever the calls end.

Compiled loops add to the arrays in place, at `open`, up to `free_rows` rows, and then `note()` closes what is full. The
number of batches falls with the dimension, so that their matrices stay within `MOST_NUMBERS`, and within 1 GB beyond.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfwidth.equation.batch_sums import BATCH_STORE_SCHEMA, Sums, capacity_for
from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.products import mirrored
from halfwidth.state.schema import Stored

_ENTRIES = 2**15  # that are added at a time: they stay in the processor's cache
Edges = NDArray[np.int64]


class BatchStore(Stored):
    """The batches so far; the one at `open` is being filled.

    Parameters
    ----------
    dim : int
        Number of coefficients.
    length : int
        Rows of a batch, until neighbours merge for the first time.
    capacity : int, optional
        Most batches, an even number; by default as many as `capacity_for` allows.
    deployed : bool
        Whether T, the deployed theta, is kept.
    single : bool
        Whether the batches' own H are kept in single precision, and only their sum in double: for wide rows. Then rows
        must come through `add`.
    lower : bool
        Whether H is symmetric and only its lower triangle is added to (by kernels).
    reference : array_like, optional
        What b and T are relative to; zero by default.
    """

    kind = "batch-store"
    version = BATCH_STORE_SCHEMA.version
    SCHEMA = BATCH_STORE_SCHEMA

    def __init__(
        self,
        dim: int,
        length: int,
        capacity: int | None = None,
        *,
        deployed: bool = False,
        single: bool = False,
        lower: bool = False,
        reference: ArrayLike | None = None,
    ) -> None:
        self.dim, self.first_length, self.lower, self.single = dim, length, lower, single
        self.capacity = capacity_for(dim) if capacity is None else capacity
        self.reference = np.zeros(dim) if reference is None else np.array(reference, dtype=np.float64)
        K = self.capacity
        shapes = ((K, dim, dim), (K, dim), *[(K, dim if deployed else 0)] * 3, (K,), (K,))
        matrices = np.zeros(shapes[0], dtype=np.float32 if single else np.float64)
        self.sums = Sums(matrices, *(np.zeros(shape) for shape in shapes[1:]))
        # the sum of H over all batches but the open one, over all if single; and whether it is read elsewhere
        self._closed, self._lent, self.open, self.length = np.zeros((dim, dim)), False, 0, length

    def clear(self) -> None:
        """Forget every row."""
        self.open, self.length, self._closed = 0, self.first_length, np.zeros_like(self._closed)
        for array in self.sums:
            array[:] = 0.0

    @property
    def rows(self) -> int:
        """How many rows were added."""
        return int(self.sums.n[: self.open + 1].sum())

    @property
    def batches(self) -> int:
        """How many there are, with the open one if it holds any row."""
        return self.open + int(self.sums.n[self.open] > 0.0)

    @property
    def free_rows(self) -> int:
        """How many rows can be added before neighbours have to merge."""
        return int((self.capacity - self.open) * self.length - self.sums.n[self.open])

    def edges(self, rows: int) -> Edges:
        """Where to cut the next rows, at most `free_rows`: 0, inner cuts, rows. Every inner cut closes a batch."""
        first = int(self.length - self.sums.n[self.open])
        return np.concatenate([[0], np.arange(first, rows, self.length), [rows]]).astype(np.int64)

    def add(self, edges: Edges, b: Vector, H: Vector | None) -> None:
        """Take in the pieces between the edges, at most `free_rows` rows."""
        sizes = np.diff(edges).astype(np.float64)
        if sizes.sum() > self.free_rows:
            raise InputError.of("edges", f"hold at most {self.free_rows} rows until neighbours merge", int(sizes.sum()))
        to = slice(self.open, self.open + len(sizes))
        if H is not None:
            self.sums.H[self.open] += H[0]
            self.sums.H[self.open + 1 : to.stop] = H[1:]  # nothing is in those
            if self.single:
                self._closed, self._lent = self._closed.copy() if self._lent else self._closed, False
                for matrix in H:
                    self._closed += matrix
        self.sums.b[to], self.sums.n[to] = self.sums.b[to] + b, self.sums.n[to] + sizes
        self.note()

    def note(self) -> None:
        """Close the batches that are full; merge neighbours when all of them are."""
        first, full = self.open, self.sums.n[self.open :] >= self.length
        self.open += len(full) if full.all() else int(np.argmin(full))
        if not self.single and self.open > first:
            # One after the other: the sum must not depend on how rows are cut. A single column would be added pairwise.
            terms = self.sums.H[first : self.open]
            own, terms[0] = terms[0].copy(), self._closed + terms[0]
            self._closed[:] = np.add.accumulate(terms)[-1] if self.dim == 1 else np.add.reduce(terms)
            terms[0] = own
        if self.open == self.capacity:
            self.merge()

    def merge(self) -> None:
        """Add neighbours to each other: batches twice as long; an odd last one goes on being filled."""
        used = self.open + int(self.open < self.capacity)
        pairs, odd = divmod(used, 2)
        for array in self.sums:
            for a in range(0, pairs, step := max(1, _ENTRIES // max(array[0].size, 1))):
                b = min(a + step, pairs)
                np.add(array[2 * a : 2 * b : 2], array[2 * a + 1 : 2 * b : 2], out=array[a:b])
            if odd:
                array[pairs] = array[2 * pairs]
            array[pairs + odd : used] = 0.0
        self.length *= 2
        self.open //= 2
        self.reset_closed()

    def reset_closed(self) -> None:
        """Add up H over the closed batches again, after they were changed."""
        if not self.single:
            self._closed[:] = self.sums.H[: self.open].sum(axis=0)

    def curvature(self) -> Vector:
        """The sum of H over all rows; of wide rows it is not copied, and must not be written to."""
        self._lent = True
        return self._whole(self._closed if self.single else self._closed + self.sums.H[self.open])

    def score(self) -> Vector:
        """The sum of b over all rows."""
        return np.asarray(self.sums.b[: self.open + 1].sum(axis=0))

    def give_back(self, shift: Vector) -> None:
        """Add `shift` for every row since the last move of the linearisation point, which is forgotten."""
        self.sums.b[:] += self.sums.moved[:, None] * shift
        self.sums.moved[:] = 0.0

    def closed(self, *, copy: bool = True) -> Sums:
        """The batches' sums, in order; an open one less than half full joins its neighbour, unless none is copied."""
        K = self.open
        if not copy:
            return Sums(*(array[: self.batches] for array in self.sums))
        join = 0.0 < self.sums.n[K] < 0.5 * self.length and K > 0
        end = K if join or self.sums.n[K] == 0.0 else K + 1
        found = [array[:end].copy() for array in self.sums]
        if join:
            for last, array in zip(found, self.sums, strict=True):
                last[-1] += array[K]
        return Sums(self._whole(found[0]), *found[1:])

    def rebase(self, reference: ArrayLike) -> None:
        """Make the sums relative to another reference."""
        moved = self.reference - np.asarray(reference, dtype=np.float64)
        for a in range(0, self.batches, step := max(1, _ENTRIES // self.dim**2)):
            part = slice(a, min(a + step, self.batches))
            self.sums.b[part] += (pull := self._whole(self.sums.H[part]) @ moved)
            self.sums.U[part] += pull[:, : self.sums.U.shape[1]]
        self.sums.T[:] += self.sums.n[:, None] * moved[: self.sums.T.shape[1]]
        self.reference = self.reference - moved

    def copy(self) -> Self:
        """An independent copy; memory of batches that are not used is not touched."""
        twin, used = copy(self), self.open + 1
        twin.sums = Sums(*(np.zeros(array.shape, array.dtype) for array in self.sums))
        for new, array in zip(twin.sums, self.sums, strict=True):
            new[:used] = array[:used]
        twin.reference, twin._closed, twin._lent = self.reference.copy(), self._closed.copy(), False
        return twin

    @contextmanager
    def borrowed(self) -> Iterator[None]:
        """Until the end of the block rows go to the open batch, however many; then it is as it was before."""
        at, length, closed = self.open, self.length, self._closed
        before = [array[at].copy() for array in self.sums]
        self.length, self._lent = 2**62, True
        try:
            yield
        finally:
            self.open, self.length, self._closed, self._lent = at, length, closed, True
            for array, was in zip(self.sums, before, strict=True):
                array[at] = was

    def _whole(self, H: Vector) -> Vector:
        return mirrored(np.swapaxes(H, -1, -2)) if self.lower else H

    def to_state(self) -> dict[str, Any]:
        """Plain arrays; `from_state` goes on with the same bits."""
        used = self.open + 1
        return {
            "kind": self.kind,
            "version": self.version,
            "first_length": self.first_length,
            "length": self.length,
            "capacity": self.capacity,
            "open": self.open,
            "lower": self.lower,
            "reference": self.reference.copy(),
            "closed": self._closed.copy(),
            **{name: array[:used].copy() for name, array in zip(Sums._fields, self.sums, strict=True)},
        }

    @classmethod
    def _restored(cls, state: dict[str, Any]) -> Self:
        store = cls(
            len(state["reference"]),
            int(state["first_length"]),
            int(state["capacity"]),
            deployed=np.shape(state["T"])[-1] > 0,
            single=state["H"].dtype == np.float32,
            lower=bool(state["lower"]),
            reference=state["reference"],
        )
        store.length, store.open = int(state["length"]), int(state["open"])
        for name, array in zip(Sums._fields, store.sums, strict=True):
            array[: store.open + 1] = state[name]
        store._closed[:] = state["closed"]
        return store
