"""What the batches of an equation hold, how many are kept, and the schema of their state."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from halfwidth.kernels.arrays import Vector
from halfwidth.state.fields import Array, Bool, State, Whole
from halfwidth.state.schema import Relation, Schema

MOST_BATCHES = 2_048
MOST_NUMBERS = 2**23
FEWEST_BATCHES = 32
_WIDE_NUMBERS = 220_000_000
_ROUNDED, _ROUNDED_SINGLE = 1e-9, 1e-3


class Sums(NamedTuple):
    """What every batch holds, one row of each array a batch; a kernel adds to them in place.

    T is the sum over rows of the deployed theta, U that of each row's Hessian times it, R what gradients along a dither
    of theta leave out of their expansions; `moved` counts the rows since the linearisation point last moved, for
    learners that weigh its moves.
    """

    H: Vector
    b: Vector
    T: Vector
    U: Vector
    R: Vector
    n: Vector
    moved: Vector


def capacity_for(dim: int, most_batches: int = MOST_BATCHES, most_numbers: int = MOST_NUMBERS) -> int:
    """How many batches are kept: a power of two, at least 32; an even number of fewer beyond 2,622 dimensions."""
    fitting = max(most_numbers // max(dim, 1) ** 2, FEWEST_BATCHES)
    most = max(2, 2 * (_WIDE_NUMBERS // dim**2 // 2))
    return int(min(most_batches, 2 ** (fitting.bit_length() - 1), most))


def _fits(state: State) -> bool:
    K, open_, dim = state["capacity"], state["open"], len(state["reference"])
    powers = state["length"] // state["first_length"]
    return (
        open_ < K
        and K % 2 == 0
        and 2 * capacity_for(max(dim, 1)) >= K  # memory is taken for them all
        and state["T"].shape == state["U"].shape == state["R"].shape
        and state["T"].shape[1] in (0, dim)
        and state["first_length"] * powers == state["length"]
        and powers & (powers - 1) == 0
        and bool(state["n"][open_] < state["length"])
    )


def _has_rows(state: State) -> bool:
    """Whether every closed batch has rows, and an open one without any has nothing else."""
    n, open_ = state["n"], state["open"]
    return bool(
        (n[:open_] > 0.0).all() and (n[open_] > 0.0 or not (state["H"][open_].any() or state["b"][open_].any()))
    )


@np.errstate(over="ignore", invalid="ignore")
def _adds_up(state: State) -> bool:
    """Whether `closed` is the sum of the batches' matrices up to rounding, one of them at a time."""
    single, closed = state["H"].dtype == np.float32, state["closed"]
    left, size = closed.copy(), np.zeros_like(closed)
    for H in state["H"][: state["open"] + single]:
        left -= H
        size += np.abs(H)
    roots = np.sqrt(np.diag(size))
    return bool((np.abs(left) <= (_ROUNDED_SINGLE if single else _ROUNDED) * (size + np.outer(roots, roots))).all())


BATCH_STORE_SCHEMA = Schema(
    "batch-store",
    3,
    {
        "first_length": Whole(1, doc="rows of a batch at first"),
        "length": Whole(1, doc="rows of a batch now"),
        "capacity": Whole(2, MOST_BATCHES, doc="most batches"),
        "open": Whole(0, MOST_BATCHES, doc="which batch is being filled"),
        "lower": Bool(doc="whether only the lower triangle of H is kept"),
        "reference": Array(("dim",), doc="what b and T are relative to"),
        "closed": Array(
            ("dim", "dim"), doc="sum of H over the closed batches; over all, where H is in single precision"
        ),
        "H": Array(("used", "dim", "dim"), any_width=True, doc="sums of Hessians"),
        "b": Array(("used", "dim"), doc="sums of H (l - reference) - g"),
        "T": Array(("used", "wide"), doc="sums of deployed theta - reference, where that is kept"),
        "U": Array(("used", "wide"), doc="sums of H (deployed theta - reference), where that is kept"),
        "R": Array(("used", "wide"), doc="sums of what is not linear along dithers of theta, where that is kept"),
        "n": Array(("used",), low=0.0, doc="rows"),
        "moved": Array(("used",), low=0.0, doc="rows since the linearisation point moved"),
    },
    {"used": lambda s: s["open"] + 1},
    (
        Relation("have its batches within its capacity, and its shapes from its dimension", _fits),
        Relation("have rows in every closed batch, and nothing where there are none", _has_rows),
        Relation("have in `closed` the sum of H, up to rounding", _adds_up),
    ),
)
