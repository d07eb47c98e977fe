"""Batches that merge by information where rows know very unequal amounts.

Where a few hundred of a million rows know nearly everything, as the first rows of a table in other units do, batches of
equal numbers of rows leave them in one or two, and coefficients without degrees of freedom. What batch b knows is its
leverage h_b = tr(A^-1 H_b), A = sum H_b, in all as much as there are coefficients. When batches have to merge into
blocks of twice as many rows as the longest have, P of them,

    and blocks that know more than `UNEQUAL` times the mean h / P know less than `SHARE` of everything together, every
    block becomes one batch, as in `BatchStore`;
    else batches of a block merge, in order, as long as they know no more than `MOST` h / P together.

The share leaves a rare column among many alone: its few spells of dependent rows are better whole.

Two neighbouring batches of a block know more than that, so that there are at most P (1 + 2 / MOST) batches, and memory
stays flat. Batches are cut wherever blocks are. What later rows make little of merges at a later time.

Short batches beside long ones have no common scale for a kernel over them. So they are read as they are only while no
dependence shows between neighbours, or between sums over 2, 4, 8, ... of them, by a test that holds where variances
differ (`halfwidth.inference.slow_dependence`); otherwise blocks of equal numbers of rows are read (`readable`).
"""

from __future__ import annotations

import numpy as np

from halfwidth.equation.batch_store import BatchStore, Edges
from halfwidth.equation.equation import Equation
from halfwidth.equation.linear_algebra import whitening
from halfwidth.inference.batch_result import in_pairs
from halfwidth.inference.slow_dependence import FEWEST_SUMS, excess
from halfwidth.kernels.arrays import Vector

UNEQUAL, SHARE, MOST = 8.0, 0.1, 4.0
LEVEL = 0.05
"""Of all tests for dependence between unequal batches, by Bonferroni."""


class InformationStore(BatchStore):
    """A `BatchStore` that keeps batches apart which know much more than others; in double precision only."""

    def merge(self) -> None:
        """Merge batches within blocks of twice the length, all of them unless they know very unequal amounts."""
        rows = self.sums.n[self.sums.n > 0.0].copy()
        begins = block_begins(rows, 2 * self.length)
        if not self.single and len(rows):
            known = leverages(self._whole(self.sums.H[: len(rows)]))
            begins = merged_begins(rows, known, 2 * self.length)
        if len(begins) == len(block_begins(rows, 2 * self.length)) and (rows[: self.open] == self.length).all():
            super().merge()
            return
        for array in self.sums:
            array[: len(begins)] = np.add.reduceat(array[: len(rows)], begins, axis=0)
            array[len(begins) : len(rows)] = 0.0
        self.length *= 2
        last = len(begins) - 1  # of stores that were put together, a batch may reach beyond its block
        self.open = last + int(rows.sum() % self.length == 0 or self.sums.n[last] >= self.length)
        self.reset_closed()


def leverages(H: Vector) -> Vector:
    """What each of the batches (K, d, d) knows, tr(A^-1 H_b); nothing where there is no such number."""
    A = H.sum(axis=0)
    if not np.isfinite(A).all():
        return np.zeros(len(H))
    C = whitening(0.5 * (A + A.T)).C
    known = H.reshape(len(H), -1) @ (C @ C.T).reshape(-1)
    return np.where(np.isfinite(known), np.maximum(known, 0.0), 0.0)


def block_begins(rows: Vector, length: int) -> Edges:
    """The first batch of each block of `length` rows."""
    block = (np.cumsum(rows) - rows) // length
    return np.flatnonzero(np.diff(block, prepend=-1.0))


def merged_begins(rows: Vector, known: Vector, length: int) -> Edges:
    """The first of the batches that become one, for batches of so many rows that know so much.

    The last block is one batch while it is not full: rows are still added to it.
    """
    begins = block_begins(rows, length)
    blocks, mean = np.add.reduceat(known, begins), known.sum() / len(begins)
    if not blocks[blocks > UNEQUAL * mean].sum() > SHARE * known.sum():
        return begins
    full = rows.sum() % length == 0
    found, own = [], set(begins.tolist())
    together = 0.0
    for b, more in enumerate(known.tolist()):
        within = full or b < begins[-1]
        if b in own or (within and together + more > MOST * mean):
            found.append(b)
            together = 0.0
        together += more
    return np.array(found, dtype=np.int64)


def readable(equation: Equation, length: int) -> Equation:
    """The equation itself where no dependence shows between unequal batches, else that of blocks of `length` rows."""
    if not (is_unequal(equation.rows, length) and _depends(equation)):
        return equation
    begins = block_begins(equation.rows, length)
    return Equation(*(np.add.reduceat(array, begins, axis=0) for array in (equation.A, equation.B, equation.rows)))


def is_unequal(rows: Vector, length: int) -> bool:
    """Whether some block of `length` rows is several batches."""
    return len(block_begins(rows, length)) < len(rows)


def _depends(equation: Equation) -> bool:
    """Whether neighbours, or neighbouring sums, add to the error in the same direction beyond chance."""
    from scipy.special import ndtri

    A = equation.A.sum(axis=0)
    C = whitening(0.5 * (A + A.T)).C
    z = equation.centred_residuals(np.zeros(len(A))) @ C @ C.T
    levels = max((len(z) // FEWEST_SUMS).bit_length(), 1)
    limit = float(ndtri(1.0 - LEVEL / (levels * max(len(A), 1))))
    for _ in range(levels):
        if (excess(z, np.zeros(len(A))) > limit).any():
            return True
        z = in_pairs(z)
    return False
