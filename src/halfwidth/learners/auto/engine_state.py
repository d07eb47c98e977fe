"""The state of a steered engine, field by field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from halfwidth.equation import restored_store
from halfwidth.errors import BadState
from halfwidth.learners.auto.engine_schemas import STEERED_SCHEMA
from halfwidth.learners.auto.proportional import ShareSums
from halfwidth.state.schema import validate

if TYPE_CHECKING:
    from halfwidth.learners.auto.steered_sums import SteeredSums

_WHOLE = (
    "k",
    "chunks",
    "clipped",
    "phase",
    "phase_ends",
    "began",
    "restarts",
    "next_refresh",
    "next_feedback",
    "turn",
    "whole",
)
_NUMBERS = ("prior_rows", "hessian_rows", "bent", "usual", "height", "highest")
_SWITCHES = ("differences", "detect", "settled", "jumps")
_ARRAYS = ("hessian_sum", "prior", "bends")


def engine_state(engine: SteeredSums) -> dict[str, Any]:
    """Plain numbers and arrays."""
    return {
        **STEERED_SCHEMA.head,
        **{name: int(getattr(engine, name)) for name in _WHOLE},
        **{name: float(getattr(engine, name)) for name in _NUMBERS},
        **{name: bool(getattr(engine, name)) for name in _SWITCHES},
        **{name: getattr(engine, name).copy() for name in _ARRAYS},
        "weighed": -1 if engine.weighed is None else engine.weighed,
        "truncations": np.array(engine.truncations, dtype=np.int64),
        "moving": {name: array.copy() for name, array in engine.moving._asdict().items()},
        "steering": {name: array.copy() for name, array in engine.steering._asdict().items()},
        "gain": engine.gain.to_state(),
        "dither": engine.dither.to_state(),
        "store": engine.store.to_state(),
        "notes": engine.notes.to_state(),
        "excitation": engine.excitation.to_state(),
        "shares": None if engine.shares is None else engine.shares.to_state(),
    }


def restore_engine(engine: SteeredSums, state: dict[str, Any]) -> None:
    """Make the engine what `engine_state` described; `BadState` where that breaks a rule."""
    validate(state, STEERED_SCHEMA, "engine")
    for names, kind in ((_WHOLE, int), (_NUMBERS, float), (_SWITCHES, bool)):
        for name in names:
            setattr(engine, name, kind(state[name]))
    for name in _ARRAYS:
        setattr(engine, name, np.array(state[name], dtype=np.float64))
    engine.weighed = None if int(state["weighed"]) < 0 else int(state["weighed"])
    engine.truncations = [int(row) for row in state["truncations"]]
    for part in ("moving", "steering"):
        for name, array in getattr(engine, part)._asdict().items():
            array[...] = state[part][name]
    engine.gain.restore(state["gain"])
    engine.dither.restore(state["dither"])
    engine.notes.restore(state["notes"])
    engine.excitation.restore(state["excitation"])
    engine.shares = None if state["shares"] is None else ShareSums.from_state(state["shares"])
    engine.store = restored_store(engine.empty_store(), state["store"], "engine.store")
    if not len(engine.plan(most=1).steps):
        raise BadState("engine must leave a next chunk to be planned; nothing follows from its counts")
