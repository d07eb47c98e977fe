"""How many batches of given rows are kept, and of how many rows at first.

Batches begin with a single row, so that short streams have many. There are as many of them as can be deleted one by one
at little cost, between 128 and 1,024; fewer where their matrices would take too much memory. Above 512 dimensions,
where a chunk would be cut into dozens of large matrices, they begin with 128 rows and are kept in single precision,
their sum in double.
"""

from __future__ import annotations

from halfwidth.equation import BatchStore, capacity_for
from halfwidth.equation.wide_errors import WIDE
from halfwidth.kernels.arrays import Vector

MOST_BATCHES, FEWEST_BATCHES, JACKKNIFE_FLOPS = 1_024, 128, 2.5e7
WIDE_LENGTH = 128


def empty_store(theta_0: Vector) -> BatchStore:
    """The store of an engine that has seen nothing."""
    dim = len(theta_0)
    deleted = max(power_of_two(JACKKNIFE_FLOPS / dim**3), FEWEST_BATCHES)
    capacity = min(capacity_for(dim, MOST_BATCHES), deleted)
    return BatchStore(dim, WIDE_LENGTH if dim > WIDE else 1, capacity, single=dim > WIDE, reference=theta_0)


def power_of_two(number: float) -> int:
    """The largest one that is not above the number."""
    return 1 << (max(int(number), 1).bit_length() - 1)
