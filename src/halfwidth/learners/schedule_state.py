"""Schedules in the state of a learner: their name and their numbers."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from halfwidth.errors import BadState, InputError
from halfwidth.schedules import ConstantStep, PowerStep, Threshold, TruncationSets

SCHEDULES: dict[str, Any] = {cls.__name__: cls for cls in (PowerStep, ConstantStep, Threshold, TruncationSets)}
"""The schedules that a state can hold, by name."""


def schedule_to_state(schedule: Any, name: str) -> dict[str, Any]:
    """A schedule as its name and its numbers; `name` is the argument it was given as."""
    if type(schedule) not in SCHEDULES.values():
        rule = f"be one of {', '.join(SCHEDULES)} to be kept in a state"
        raise InputError.of(name, rule, type(schedule).__name__)
    return {"schedule": type(schedule).__name__, **asdict(schedule)}


def schedule_from_state(state: Any) -> Any:
    """The schedule that `schedule_to_state` described."""
    kind = SCHEDULES.get(str(state.get("schedule"))) if isinstance(state, dict) else None
    if kind is None:
        raise BadState.at("schedule", f"be one of {', '.join(SCHEDULES)}", state)
    values = {name: value for name, value in state.items() if name != "schedule"}
    names = {field.name for field in fields(kind)}
    if set(values) != names:
        raise BadState.at(f"schedule {kind.__name__}", f"name {', '.join(sorted(names))}", sorted(values))
    return kind(**values)
