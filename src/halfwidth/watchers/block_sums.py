"""The sums of overlapping batch means along one trajectory.

| paper                    | here                        |
|--------------------------|-----------------------------|
| l_i                      | `age`                       |
| W_i                      | `block_sum`                 |
| V = sum W_i W_i'         | `scatter`                   |
| P = sum l_i W_i          | `cross`                     |
| q = sum l_i^2            | `age_squares`               |
| v = sum l_i              | `ages`                      |
| a_m = floor(c m^beta)    | `schedules.BlockPlan`       |

All sums are of theta minus a reference, which moves to the running mean whenever a block starts (the estimator does not
change under shifts), so that a parameter near 1e8 loses no digits, wherever it started.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.compile import kernel
from halfwidth.kernels.products import add_symmetric
from halfwidth.schedules import BlockPlan
from halfwidth.watchers.block_plan_state import SAMPLED_EVERY, squares_to, sum_to
from halfwidth.watchers.view import Scatter

_BUFFER_NUMBERS = 32_768  # block sums are still in the processor's cache when they are multiplied
_SMALL = 128  # up to here one kernel for all of a block's extension beats calls between its parts
_SMALL_BUFFER_ROWS = 128
_ARRAYS = ("reference", "block_sum", "cross", "total", "sampled_total", "spread")
_COUNTS = ("age", "sampled")
_WEIGHTS = ("ages", "age_squares")


class OpenBlock(NamedTuple):
    """The block that is being extended; a kernel adds to its sums in place."""

    reference: Vector
    """What all sums are relative to."""
    age: int
    """Rows in the block so far."""
    block_sum: Vector
    """W_i, the sum of the block."""
    cross: Vector
    """P, the sum of l_i W_i."""
    scatter: Vector
    """V, column-major; only its upper triangle is added to."""
    buffer: Vector
    """Scratch space for block sums, one in each row."""


@kernel
def extend_sums(thetas: Vector, reference: Vector, block_sum: Vector, block_sums: Vector) -> None:
    """Extend the current block by every row of thetas; block_sums[i] is the block's sum after row i."""
    rows, size = thetas.shape
    for j in range(size):
        block_sums[0, j] = block_sum[j] + (thetas[0, j] - reference[j])
    for i in range(1, rows):
        for j in range(size):
            block_sums[i, j] = block_sums[i - 1, j] + (thetas[i, j] - reference[j])


@kernel
def add_aged(block_sums: Vector, age: int, cross: Vector) -> None:
    """Add every block sum to cross, times its age; the first one's is age + 1."""
    rows, size = block_sums.shape
    for i in range(rows):
        for j in range(size):
            cross[j] += (age + i + 1.0) * block_sums[i, j]


@kernel
def add_sampled(thetas: Vector, first: int, reference: Vector, total: Vector, squares: Vector) -> int:
    """Add every so many rows of thetas, from the given one on, and their squares; returns how many."""
    sampled = 0
    for i in range(first, thetas.shape[0], SAMPLED_EVERY):
        for j in range(thetas.shape[1]):
            away = thetas[i, j] - reference[j]
            total[j] += away
            squares[j] += away * away
        sampled += 1
    return sampled


@kernel
def extend_small(thetas: Vector, block: OpenBlock) -> None:
    """All of a block's extension in one go: below some size, calls between its parts cost more than the parts."""
    rows, size = thetas.shape
    reference, block_sum, cross = block.reference, block.block_sum, block.cross
    at = 0
    while at < rows:
        piece = block.buffer[: min(block.buffer.shape[0], rows - at)]
        for i in range(piece.shape[0]):
            for j in range(size):
                block_sum[j] += thetas[at, j] - reference[j]
            for j in range(size):
                piece[i, j] = block_sum[j]
            for j in range(size):
                cross[j] += (block.age + at + 1.0) * block_sum[j]
            at += 1
        add_symmetric(piece, piece, block.scatter)


class BlockSums:
    """What overlapping batch means keep of a trajectory.

    Parameters
    ----------
    plan : BlockPlan
        Where blocks start.
    size : int
        Numbers in a row.
    diagonal : bool
        Whether only the diagonal of V is kept.
    """

    def __init__(self, plan: BlockPlan, size: int, diagonal: bool) -> None:
        self.plan = plan
        self.n, self.age, self.sampled = 0, 0, 0
        self.ages, self.age_squares = 0.0, 0.0
        self._block, self._next_start = 1, 2
        self.reference, self.block_sum, self.cross, self.total = (np.zeros(size) for _ in range(4))
        # Of every so many iterates, around the reference: their sum and sum of squares; diagnostics only.
        self.sampled_total, self.spread = np.zeros(size), np.zeros(size)
        self.scatter = Scatter(size, diagonal)
        self._small = size <= _SMALL and not diagonal
        rows = _SMALL_BUFFER_ROWS if self._small else min(4096, max(256, _BUFFER_NUMBERS // size))
        self._buffer = np.empty((rows, size))

    def take(self, seen: Vector) -> None:
        """See the next rows of a contiguous array."""
        at = 0
        while at < len(seen):
            if self.n == 0:
                self.reference[:] = seen[0]
                self._next_start = self.plan.start(2)
            elif self.n + 1 == self._next_start:
                self._start_block()
            rows = min(len(seen) - at, self._next_start - self.n - 1)
            self._extend_block(seen[at : at + rows])
            at += rows

    def mean(self) -> Vector:
        """The average of all rows."""
        return np.asarray(self.reference + self.total / self.n)

    def centred_scatter(self) -> Vector:
        """V - P theta_bar' - theta_bar P' + q theta_bar theta_bar'."""
        mean = self.total / self.n
        if self.scatter.diagonal:
            return self.scatter.read() - 2.0 * self.cross * mean + self.age_squares * mean**2
        mixed = np.outer(self.cross, mean)
        return self.scatter.read() - (mixed + mixed.T) + self.age_squares * np.outer(mean, mean)

    def centred_spread(self) -> Vector:
        """The sum of squares of the sampled rows around their mean."""
        return np.asarray(self.spread - self.sampled_total**2 / max(self.sampled, 1))

    def longest_block(self, n: int) -> int:
        """The rows in the longest block after n rows."""
        return int(np.max(np.diff(np.append(self.plan.starts_up_to(n), n + 1))))

    def _start_block(self) -> None:
        self._block += 1
        self._next_start = self.plan.start(self._block + 1)
        self.age = 0
        self.block_sum[:] = 0.0
        self._move_reference(self.mean())

    def _move_reference(self, reference: Vector) -> None:
        step = self.reference - reference
        self.scatter.shift(step, self.cross, self.age_squares)
        self.cross += self.age_squares * step
        self.total += self.n * step
        self.spread += 2.0 * step * self.sampled_total + self.sampled * step**2
        self.sampled_total += self.sampled * step
        self.reference = reference

    def _extend_block(self, thetas: Vector) -> None:
        rows = len(thetas)
        self.total -= self.block_sum
        if self._small:
            sums = (self.block_sum, self.cross, self.scatter.matrix, self._buffer)
            extend_small(thetas, OpenBlock(self.reference, self.age, *sums))
        else:
            self._extend_by_pieces(thetas)
        self.total += self.block_sum
        first = -self.n % SAMPLED_EVERY
        self.sampled += add_sampled(thetas, first, self.reference, self.sampled_total, self.spread)
        self.ages += sum_to(self.age + rows) - sum_to(self.age)
        self.age_squares += squares_to(self.age + rows) - squares_to(self.age)
        self.age += rows
        self.n += rows

    def _extend_by_pieces(self, thetas: Vector) -> None:
        for at in range(0, len(thetas), len(self._buffer)):
            piece = thetas[at : at + len(self._buffer)]
            block_sums = self._buffer[: len(piece)]
            extend_sums(piece, self.reference, self.block_sum, block_sums)
            self.scatter.add(block_sums)
            add_aged(block_sums, self.age + at, self.cross)
            self.block_sum[:] = block_sums[-1]

    def to_state(self) -> dict[str, Any]:
        """Plain numbers and arrays."""
        state: dict[str, Any] = {"n_seen": self.n, "scatter": self.scatter.read()}
        state |= {name: getattr(self, name) for name in _COUNTS + _WEIGHTS}
        return state | {name: getattr(self, name).copy() for name in _ARRAYS}

    def restore(self, state: dict[str, Any]) -> None:
        """Become what `to_state` described."""
        self.n, self.scatter = int(state["n_seen"]), Scatter.holding(state["scatter"])
        for name in _COUNTS:
            setattr(self, name, int(state[name]))
        for name in _WEIGHTS:
            setattr(self, name, float(state[name]))
        for name in _ARRAYS:
            setattr(self, name, np.array(state[name]))
        if self.n:
            self._block = self.plan.blocks_up_to(self.n)
            self._next_start = self.plan.start(self._block + 1)
