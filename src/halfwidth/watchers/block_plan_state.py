"""The state of overlapping batch means: its fields, and the counts that the block plan determines.

Of a trajectory of n rows the plan a_1 = 1, a_m = floor(c m^beta) determines everything but the sums themselves: the
age l_n of the open block, sum l_i, sum l_i^2 and how many rows were sampled.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from halfwidth.schedules import BlockPlan
from halfwidth.state.containers import ListOf, Row
from halfwidth.state.fields import Array, Field, Real, State, Whole
from halfwidth.state.schema import Relation, close
from halfwidth.watchers.view import scatter_shape

SAMPLED_EVERY = 16
_MOST_BLOCKS = 1 << 20  # more would take seconds to add up, and no stream has them

OBM_FIELDS: dict[str, Field] = {
    "step_exponent": Real(0.5, 1.0, strict=True, doc="the exponent a of the step"),
    "block_constant": Real(0.0, strict=True, doc="the constant c of the block plan"),
    "block_exponent": Real(1.0, strict=True, doc="its exponent beta"),
    "pieces": ListOf(Row((Whole(2), Real(0.0))), doc="rows and ages of each trajectory, if pooled; else empty"),
    "n_seen": Whole(doc="iterates seen"),
    "age": Whole(doc="l_n, rows in the open block"),
    "ages": Real(0.0, doc="v = sum l_i"),
    "age_squares": Real(0.0, doc="q = sum l_i^2"),
    "reference": Array(("size",), doc="what all sums are relative to"),
    "block_sum": Array(("size",), doc="W_n, sum of the open block"),
    "cross": Array(("size",), doc="P = sum l_i W_i"),
    "total": Array(("size",), doc="sum of all rows"),
    "sampled_total": Array(("size",), doc="sum of one row in sixteen"),
    "spread": Array(("size",), doc="sum of squares of one row in sixteen"),
    "sampled": Whole(doc="rows in these two"),
    "scatter": Array(scatter_shape, doc="V = sum W_i W_i'"),
}


def sum_to(age: int) -> int:
    """1 + 2 + ... + age."""
    return age * (age + 1) // 2


def squares_to(age: int) -> int:
    """1 + 4 + ... + age^2."""
    return age * (age + 1) * (2 * age + 1) // 6


def _plan_counts(state: State, n: int) -> tuple[int, int, int]:
    """l_n, sum l_i and sum l_i^2 after n rows."""
    plan = BlockPlan.for_step(state["step_exponent"], state["block_constant"], state["block_exponent"])
    blocks = plan.blocks_up_to(n)
    if blocks > _MOST_BLOCKS:
        raise ValueError(f"{blocks} blocks")
    starts = [*(plan.start(m) for m in range(1, blocks + 1)), n + 1]
    ages = [end - start for start, end in pairwise(starts)]
    return ages[-1], sum(map(sum_to, ages)), sum(map(squares_to, ages))


def _counts_follow_rows(state: State) -> bool:
    n = int(state["n_seen"])
    found: tuple[Any, ...] = tuple(state[name] for name in ("age", "ages", "age_squares", "sampled"))
    if n == 0:
        return not any(found) and not state["pieces"]
    if state["pieces"]:
        return _pieces_add_up(state)
    age, ages, squares = _plan_counts(state, n)
    whole = found[0] == age and found[3] == -(-n // SAMPLED_EVERY)
    return whole and close(found[1], ages) and close(found[2], squares)


def _pieces_add_up(state: State) -> bool:
    pieces = state["pieces"]
    if len(pieces) < 2 or sum(rows for rows, _ in pieces) != state["n_seen"]:
        return False
    if state["age"] or state["age_squares"] or not close(sum(ages for _, ages in pieces), state["ages"]):
        return False
    sampled = sum(-(-rows // SAMPLED_EVERY) for rows, _ in pieces)
    return state["sampled"] == sampled and all(close(_plan_counts(state, rows)[1], ages) for rows, ages in pieces)


def _unused_is_zero(state: State) -> bool:
    if state["pieces"] or not state["n_seen"]:
        return not any(state[name].any() for name in ("block_sum", "cross", "total", "sampled_total"))
    return True


OBM_RELATIONS = (
    Relation("have ages, samples and pieces that follow from `n_seen` and the block plan", _counts_follow_rows),
    Relation("have no sums of a trajectory where there is none", _unused_is_zero),
)
