"""Everything that is fixed on the first buffer, and how rows are converted by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from halfwidth.errors import InputError
from halfwidth.streams.block import Array, Block
from halfwidth.streams.design.bad_rows import NEGATIVE, Faults, missing_column
from halfwidth.streams.design.columns import (
    TIME,
    ColumnsDesign,
    Design,
    RowRules,
    default_features,
    group_column,
    has_numeric_type,
    is_declared,
    known_columns,
    number_column,
    time_kind,
)
from halfwidth.streams.design.formula_terms import Formula
from halfwidth.streams.design.formulas import FormulaDesign
from halfwidth.streams.design.labels import Target
from halfwidth.streams.design.specification import Specification, design_from_state
from halfwidth.streams.options import Options


@dataclass(frozen=True)
class Rows:
    """Converted rows, the bad ones included; `faults` says which those are."""

    X: Array
    y: Array
    weight: Array | None
    offset: Array | None
    group: NDArray[Any] | None
    time: Array | None
    faults: Faults


class Plan:
    """Which columns make X, y, weight, offset, group and time, and what their cells mean."""

    def __init__(
        self,
        options: Options,
        design: Design,
        target: Target,
        group_text: bool,
        time_kind: str,
        left_out: Sequence[str] = (),
    ) -> None:
        self.options, self.design, self.target = options, design, target
        self.left_out = list(left_out)
        self._group_text, self._time_kind = group_text, time_kind
        self.computed = isinstance(design, FormulaDesign) and design.computes_response
        read = [*design.columns, *([] if self.computed else [target.column]), *options.special]
        self.columns = tuple(dict.fromkeys(read))
        self.categories = sorted(set(design.categories) - {target.column, *options.special})

    @classmethod
    def learn(cls, options: Options, parts: Sequence[Block], default_target: str | None) -> Plan:
        """Fix the plan on the first buffer."""
        known = known_columns(parts)
        formula = None if options.formula is None else Formula(options.formula)
        name = _target_name(options, formula, default_target, known)
        computed = formula is not None and formula.computes_response
        asked = [*(options.features or ()), *options.special, *([] if computed else [name])]
        others: list[str] = []
        if formula is not None:
            reserved = {"", name, *options.special, *formula.response_columns}
            others = [column for column in known if column not in reserved] if formula.uses_dot else []
            asked += formula.columns(others)
        there = set(known)
        for column in asked:
            if column not in there:
                raise missing_column(parts[0].file, column, known)
        target = Target(name, options.labels or "number", options.classes)
        left_out: list[str] = []
        if formula is not None:
            design: Design = FormulaDesign.learn(formula, parts, others)
            if formula.uses_dot:
                left_out = _left_out(parts, known)
        else:
            for column in options.features or ():
                if is_declared(parts, column):
                    raise InputError(
                        f"column {column!r} is a category by its type: enter it by a formula, as C({column})"
                    )
            features = options.features or default_features(parts, [name, *options.special])
            if not features:
                raise InputError.of("source", "have a numeric column besides the target (or name features)", known)
            design = ColumnsDesign(features)
            if not options.features:
                used = {"", name, *options.special, *features}
                left_out = _left_out(parts, known, [column for column in known if column not in used])
        group_text = options.group is not None and not has_numeric_type(parts, options.group)
        plan = cls(options, design, target, group_text, time_kind(parts, options.time), left_out)
        if not plan.computed:
            target.learn(parts)
        return plan

    def rows(self, parts: Sequence[Block]) -> Rows:
        """Convert these rows. A row is blamed on its target first, then on special columns, then on features."""
        options = self.options
        faults = Faults(sum(part.rows for part in parts))
        faults.mark_broken(parts)
        y = None if self.computed else self.target.encode(parts, faults)
        weight, offset = (
            None if name is None else number_column(parts, name, faults) for name in (options.weight, options.offset)
        )
        if weight is not None:
            faults.mark(weight < 0, NEGATIVE, options.weight)
        group = None if options.group is None else group_column(parts, options.group, faults, self._group_text)
        time = None
        if options.time is not None:
            time = number_column(parts, options.time, faults, TIME[self._time_kind])
        rules = RowRules(options.unknown_level or "add", options.bad_rows != "skip")
        made = self.design.matrix(parts, faults, rules)
        if made.offset is not None:
            offset = made.offset if offset is None else offset + made.offset
        if y is None:
            y = self.target.encode(parts, faults, made.response)
        return Rows(made.X, y, weight, offset, group, time, faults)

    @property
    def specification(self) -> Specification:
        """What a model needs to predict from raw columns."""
        return Specification(self.design, self.options.offset, self.target.column)

    def to_state(self) -> dict[str, Any]:
        return {
            "options": self.options.to_state(),
            "design": self.design.to_state(),
            "target": self.target.column,
            "labels": self.target.to_state(),
            "group_text": self._group_text,
            "time_kind": self._time_kind,
            "left_out": self.left_out,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], options: Options) -> Plan:
        design = design_from_state(state["design"])
        target = Target(state["target"], options.labels or "number", options.classes)
        target.restore(state["labels"])
        return cls(options, design, target, state["group_text"], state["time_kind"], state["left_out"])


def _left_out(parts: Sequence[Block], known: Sequence[str], words: Sequence[str] = ()) -> list[str]:
    """What does not enter where all columns are asked for, with the reason."""
    shared = [name or "''" for name in parts[0].shared]
    found = {"not numeric": words, "several columns have this name": shared, "no name": ["''"] if "" in known else []}
    return [f"{', '.join(names)} ({why})" for why, names in found.items() if names]


def _target_name(options: Options, formula: Formula | None, default: str | None, known: Sequence[str]) -> str:
    left = None if formula is None else formula.response_name
    if left and options.target and options.target != left:
        raise InputError.of("target", f"agree with the formula's left side {left!r}", options.target)
    name = left or options.target or (default if default in known else None)
    if name is None and formula is not None:
        raise InputError.of("formula", "have a left side and ~, like 'y ~ x'", options.formula)
    if name is None:
        raise InputError(f"give target, the column to explain (--target); the columns are {list(known)}")
    if options.features and name in options.features:
        raise InputError.of("features", f"not hold the target {name!r}", list(options.features))
    return name
