"""The error for a bad row: where it is, what stands there, and what to do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from halfwidth.errors import BadRow
from halfwidth.streams.block import Block
from halfwidth.streams.design.bad_rows import (
    FRACTION,
    INFINITE,
    LABEL,
    LEVEL,
    MISSING,
    NEGATIVE,
    NO_TIME,
    NOT_POSITIVE,
    ORDER,
    ORDER_IN_GROUP,
    TEXT,
    TOO_LARGE,
    Faults,
    fault,
)

if TYPE_CHECKING:
    from halfwidth.streams.design.plan import Plan

_DECIMAL_COMMA = re.compile(r"^\s*[-+]?\d[\d.]*,\d+\s*$")
_SAYS = {
    MISSING: "the value is missing",
    TEXT: "{value!r} is not a number",
    INFINITE: "the value {value!r} is infinite",
    TOO_LARGE: "the value {value!r} is too large to be squared",
    NEGATIVE: "the value {value!r} is negative",
    NOT_POSITIVE: "the value {value!r} is not above 0",
    FRACTION: "the value {value!r} is not a whole number",
    LABEL: "the label {value!r} is not one of {expected}",
    LEVEL: "the level {value!r} was not among the first rows",
    NO_TIME: "{value!r} is neither a number nor a time like 2024-01-31, 2024-01-31 12:00 or 31.01.2024 12:00",
    ORDER: "the time {value!r} is earlier than that of a row before it",
    ORDER_IN_GROUP: "the time {value!r} is earlier than that of the row before it, which is of the same group",
}
_UNPREDICTED = "the model has no coefficient for the level {value!r}"


def explain(parts: Sequence[Block], row: int, cause: Faults | str, plan: Plan) -> BadRow:
    """The error for row `row` of these parts, blamed on what `cause` says of it."""
    why = (cause, plan.options.time, "") if isinstance(cause, str) else cause.why(row)
    if cause == ORDER and plan.options.group is not None:
        why = (ORDER_IN_GROUP, *why[1:])
    if why[0] == TEXT and why[1] == plan.options.time:
        why = (NO_TIME, *why[1:])
    return _explain_cell(parts, row, why, plan.target.expected())


def explain_prediction(parts: Sequence[Block], row: int, cause: Faults) -> BadRow:
    """The error for a row that a model cannot predict."""
    return _explain_cell(parts, row, cause.why(row), predicting=True)


def _explain_cell(
    parts: Sequence[Block], row: int, why: tuple[str, str | None, str], expected: str = "", *, predicting: bool = False
) -> BadRow:
    """The error for row `row` of these parts, with reason, column and detail known."""
    reason, column, detail = why
    for part in parts:
        if row < part.rows:
            break
        row -= part.rows
    if not detail:
        known = column in part.batch.schema.names
        value = part.column(column)[row].as_py() if known and column else "computed by the formula"
        says = _UNPREDICTED if predicting and reason == LEVEL else _SAYS[reason]
        detail = says.format(value=value, expected=expected)
        if reason == TEXT and _DECIMAL_COMMA.match(str(value)):
            detail += " (a decimal comma? decimal=',', --decimal ,; thousands apart? thousands=',', --thousands ,)"
    return fault(part.file, part.before + row + 1, column, reason, detail, predicting=predicting)
