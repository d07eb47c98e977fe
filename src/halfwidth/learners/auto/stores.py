"""How many batches are kept, and of how many rows at first.

Of given rows: batches begin with a single row, so that short streams have many. There are as many of them as can be
deleted one by one at little cost, between 128 and 1,024; fewer where their matrices would take too much memory. Above
512 dimensions, where a chunk would be cut into dozens of large matrices, they begin with 128 rows and are kept in
single precision, their sum in double. Below, batches that know much more than others stay short
(`halfwidth.equation.information_store`).

Of rows that may respond: batches of at least four chunks, 64 to 128 of them up to 128 columns, and half as many above.
Batch means, which a response needs, rest on these where they are long enough (`reading.long_enough`); the doubts look
at no more than 64. Where chunks are unlike each other, batches of a chunk under a kernel, as many as of given rows and
at least 256, tell what coefficients rest on (`careful_result`), up to 128 columns.
"""

from __future__ import annotations

from halfwidth.equation import BatchStore, InformationStore, capacity_for
from halfwidth.equation.wide_errors import WIDE
from halfwidth.kernels.arrays import Vector

MOST_BATCHES, FEWEST_BATCHES, JACKKNIFE_FLOPS = 1_024, 128, 2.5e7
WIDE_LENGTH = 128
MEANS, FEWER_MEANS, KERNEL_BATCHES, KERNEL_WIDTH = 64, 32, 256, 128


def empty_store(theta_0: Vector) -> InformationStore:
    """The store of an engine that has seen nothing."""
    dim = len(theta_0)
    capacity = most_deleted(dim)
    return InformationStore(dim, WIDE_LENGTH if dim > WIDE else 1, capacity, single=dim > WIDE, reference=theta_0)


def most_deleted(dim: int) -> int:
    """How many batches can be deleted one by one."""
    return min(capacity_for(dim, MOST_BATCHES), max(power_of_two(JACKKNIFE_FLOPS / dim**3), FEWEST_BATCHES))


def steered_store(dim: int, batch_rows: int, chunk_rows: int | None = None) -> BatchStore:
    """The store of rows that may respond; with chunks of so many rows where these are unlike each other."""
    if chunk_rows is None or dim > KERNEL_WIDTH:
        return BatchStore(dim, batch_rows, most_means(dim) * (2 if dim <= KERNEL_WIDTH else 1), deployed=True)
    return BatchStore(dim, chunk_rows, max(most_deleted(dim), KERNEL_BATCHES), deployed=True)


def most_means(dim: int) -> int:
    """How many batches the doubts look at: at most 64, and 32 where their matrices would take half a gigabyte."""
    return MEANS if dim <= WIDE else FEWER_MEANS


def power_of_two(number: float) -> int:
    """The largest one that is not above the number."""
    return 1 << (max(int(number), 1).bit_length() - 1)
