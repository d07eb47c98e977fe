"""Sums of consecutive equal batches of a stream of unknown length.

Complete batches of `length` rows are kept until there are `CAPACITY` of them; then neighbours are merged and the length
doubles. So there are always between CAPACITY/2 and CAPACITY batches (one per row before that), their length is the
smallest power of two L with floor(n / L) < CAPACITY, memory is O(CAPACITY size) and the time per row is O(size).

Sums are of theta minus a reference that moves to the mean at every merge, so that a parameter near 1e8 loses no digits,
wherever it started. The merging is that of R. Singh, A. Shukla and D. Vats, *On the utility of equal batch sizes for
inference in stochastic gradient descent* (2023).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from halfwidth.kernels.arrays import Indices, Vector
from halfwidth.kernels.compile import kernel
from halfwidth.state.fields import MOST_ROWS, Array, Field, State
from halfwidth.state.schema import Relation
from halfwidth.watchers.state_parts import check_array

CAPACITY = 256


def batch_fields(prefix: str = "", size: int | str = "size") -> dict[str, Field]:
    """What a state says about a store of batches."""
    docs = {
        "counts": "rows in a batch, complete batches, rows in the open one, rows in all",
        "reference": "what all sums are relative to",
        "sums": "sums of the complete batches; zero beyond them",
        "current": "sum of the open batch",
        "sampled": "sum and sum of squares of one row in sixteen",
    }
    shapes = {"reference": (size,), "sums": (CAPACITY, size), "current": (size,), "sampled": (2, size)}
    counts: Field = Array((4,), "i", 0, MOST_ROWS, doc=docs["counts"])
    arrays: dict[str, Field] = {prefix + name: Array(shape, doc=docs[name]) for name, shape in shapes.items()}
    return {prefix + "counts": counts} | arrays


def batch_relations(prefix: str = "") -> tuple[Relation, ...]:
    """What holds between the parts of a store of batches."""

    def counts_follow_rows(s: State) -> bool:
        length, count, age, seen = s[prefix + "counts"].tolist()
        expected = 1
        while seen // expected >= CAPACITY:
            expected *= 2
        return (length, count, age) == (expected, *divmod(seen, expected))

    def empty_is_zero(s: State) -> bool:
        _, count, age, _ = s[prefix + "counts"].tolist()
        return not s[prefix + "sums"][count:].any() and (age > 0 or not s[prefix + "current"].any())

    return (
        Relation(f"have `{prefix}counts` that follow from the number of rows", counts_follow_rows),
        Relation(f"have zeros in `{prefix}sums` and `{prefix}current` where no row is", empty_is_zero),
    )


class BatchArrays(NamedTuple):
    """What is kept of the rows; a kernel updates all of it in place."""

    counts: Indices
    """Rows in a batch, complete batches, rows in the open one, rows in all."""
    reference: Vector
    """What all sums are relative to."""
    sums: Vector
    """Sums of the complete batches, (CAPACITY, size); zero beyond them."""
    current: Vector
    """Sum of the open batch."""
    sampled: Vector
    """Sum and sum of squares of one row in sixteen, (2, size)."""


@kernel
def _absorb(rows: Vector, kept: BatchArrays) -> None:
    """Add rows to the batches."""
    counts, reference, sums, current, sampled = kept
    size = rows.shape[1]
    length, count, age, seen = counts
    at = 0
    while at < rows.shape[0]:
        end = min(rows.shape[0], at + length - age)
        for i in range(at + (-seen & 15), end, 16):
            for j in range(size):
                x = rows[i, j] - reference[j]
                sampled[0, j] += x
                sampled[1, j] += x * x
        whole = at + (end - at) // 4 * 4
        for i in range(at, whole, 4):  # four rows at once, to load and store the sum a quarter as often
            for j in range(size):
                r = reference[j]
                current[j] += ((rows[i, j] - r) + (rows[i + 1, j] - r)) + ((rows[i + 2, j] - r) + (rows[i + 3, j] - r))
        for i in range(whole, end):
            for j in range(size):
                current[j] += rows[i, j] - reference[j]
        seen += end - at
        age += end - at
        at = end
        if age == length:
            for j in range(size):
                sums[count, j] = current[j]
                current[j] = 0.0
            age = 0
            count += 1
        if count == sums.shape[0]:
            count //= 2
            length *= 2
            looked = (seen + 15) // 16
            for j in range(size):
                total = 0.0
                for k in range(count):
                    sums[k, j] = sums[2 * k, j] + sums[2 * k + 1, j]
                    total += sums[k, j]
                step = total / seen
                for k in range(count):
                    sums[k, j] -= length * step
                sums[count:, j] = 0.0
                sampled[1, j] -= 2.0 * step * sampled[0, j] - looked * step * step
                sampled[0, j] -= looked * step
                reference[j] += step
    counts[:] = length, count, age, seen


class DyadicBatches:
    """The batches of a stream of vectors.

    Parameters
    ----------
    size : int
        Numbers in a vector.
    """

    def __init__(self, size: int) -> None:
        counts = np.array([1, 0, 0, 0], dtype=np.int64)
        shapes = ((size,), (CAPACITY, size), (size,), (2, size))
        self._kept = BatchArrays(counts, *(np.zeros(shape) for shape in shapes))

    @property
    def n_seen(self) -> int:
        return int(self._kept.counts[3])

    @property
    def length(self) -> int:
        """Rows in each complete batch."""
        return int(self._kept.counts[0])

    @property
    def count(self) -> int:
        """How many batches are complete."""
        return int(self._kept.counts[1])

    def take(self, rows: Vector) -> None:
        """See the next rows."""
        if self.n_seen == 0 and len(rows):
            self._kept.reference[:] = rows[0]
        _absorb(np.ascontiguousarray(rows), self._kept)

    def mean(self) -> Vector:
        """The average of all rows."""
        total = self._kept.sums[: self.count].sum(axis=0) + self._kept.current
        return np.asarray(self._kept.reference + total / self.n_seen)

    def sums(self) -> Vector:
        """The sums of the complete batches, oldest first, of rows less the reference."""
        return self._kept.sums[: self.count].copy()

    @property
    def reference(self) -> Vector:
        """What `sums` and `groups` are relative to."""
        return self._kept.reference.copy()

    def groups(self, batches: int) -> tuple[Vector, int]:
        """So many equal batches, as large and as late as possible: their means less the reference, the rows in each."""
        together = self.count // batches
        latest = self._kept.sums[self.count - batches * together : self.count]
        rows = together * self.length
        return latest.reshape(batches, together, -1).sum(axis=1) / rows, rows

    def spread(self) -> Vector:
        """The variance of single rows, from one in sixteen: for diagnostics."""
        looked = (self.n_seen + 15) // 16
        mean = self._kept.sampled[0] / looked
        return np.asarray(np.maximum(self._kept.sampled[1] / looked - mean**2, 0.0))

    def to_state(self, prefix: str = "") -> dict[str, Any]:
        """Plain arrays, each under its name after the prefix."""
        return {prefix + name: array.copy() for name, array in self._kept._asdict().items()}

    def restore(self, state: dict[str, Any], prefix: str = "") -> None:
        """Become what `to_state` described."""
        for name, own in self._kept._asdict().items():
            own[:] = check_array(state, prefix + name, own.shape)
