"""Schedules in the state of a learner: their name and their numbers."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from halfwidth.errors import InputError
from halfwidth.schedules import ConstantStep, PowerStep, Threshold, TruncationSets
from halfwidth.state.containers import Variant
from halfwidth.state.fields import Field, Real, Text
from halfwidth.state.schema import Schema

SCHEDULES: dict[str, Any] = {cls.__name__: cls for cls in (PowerStep, ConstantStep, Threshold, TruncationSets)}
"""The schedules that a state can hold, by name."""

_POSITIVE = Real(0.0, strict=True)
_NUMBERS: dict[str, dict[str, Field]] = {
    "PowerStep": {"eta": _POSITIVE, "exponent": Real(0.5, 1.0, strict=True), "offset": Real(0.0)},
    "ConstantStep": {"eta": _POSITIVE},
    "Threshold": {"scale": _POSITIVE, "exponent": Real(0.0, 0.375, strict=True)},
    "TruncationSets": {"radius": _POSITIVE, "growth": _POSITIVE, "kind": Text(("linear", "geometric"))},
}


def schedule_field(*names: str, doc: str) -> Field:
    """A place for one of the named schedules."""
    schemas = {
        name: Schema(None, None, {"schedule": Text((name,)), **_NUMBERS[name]}, title=f"schedule {name}")
        for name in names
    }
    return Variant("schedule", lambda: schemas, doc=doc)


STEP_FIELD = schedule_field("PowerStep", "ConstantStep", doc="the step-size schedule")


def schedule_to_state(schedule: Any, name: str) -> dict[str, Any]:
    """A schedule as its name and its numbers; `name` is the argument it was given as."""
    if type(schedule) not in SCHEDULES.values():
        rule = f"be one of {', '.join(SCHEDULES)} to be kept in a state"
        raise InputError.of(name, rule, type(schedule).__name__)
    return {"schedule": type(schedule).__name__, **asdict(schedule)}


def schedule_from_state(state: dict[str, Any]) -> Any:
    """The schedule that `schedule_to_state` described; its state was validated."""
    return SCHEDULES[state["schedule"]](**{name: value for name, value in state.items() if name != "schedule"})
