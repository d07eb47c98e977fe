"""Which engine learns a model, chosen once, when the number of columns is known."""

from __future__ import annotations

from typing import Any

from halfwidth.errors import InputError, UnknownName
from halfwidth.families import Loss
from halfwidth.learners.newton.renewable import RenewableNewton
from halfwidth.models.newton_engine import METHOD, NewtonEngine
from halfwidth.models.sgd_engine import SGDEngine

Engine = NewtonEngine | SGDEngine

ENGINES = ("auto", "newton", "sgd")
MOST_COLUMNS_FOR_NEWTON = 3_000
_DEFAULT_SGD_METHOD = "obm"


def make_engine(dim: int, loss: Loss, *, intercept: bool, ridge: float, engine: str, method: str) -> Engine:
    """Newton up to 3,000 columns, SGD beyond, or as asked; naming a method of the table asks for SGD."""
    if engine not in ENGINES:
        raise UnknownName.among("engine", str(engine), ENGINES)
    if dim == 0 and not intercept:
        raise InputError(
            "the formula has no columns and no intercept; name a column, or write 1 for a mean, as in y ~ 1"
        )
    if loss.equations > 1 and (engine == "sgd" or method not in ("auto", METHOD)):
        found = f"{engine}, {method}"
        raise InputError.of("engine, method", f"be 'newton' and 'auto' for family {loss.name!r}", found)
    if loss.equations > 1:
        engine = "newton"
    if engine == "newton" and method not in ("auto", METHOD):
        raise InputError.of("method", f"be 'auto' or {METHOD!r} with engine='newton'", method)
    if engine == "auto":
        few = method == METHOD or (method == "auto" and dim <= MOST_COLUMNS_FOR_NEWTON)
        engine = "newton" if few else "sgd"
    if engine == "newton":
        return NewtonEngine(RenewableNewton(dim, loss, intercept=intercept, ridge=ridge))
    name = _DEFAULT_SGD_METHOD if method == "auto" else method
    return SGDEngine(dim, loss, intercept=intercept, ridge=ridge, method_name=name)


def engine_from_state(state: dict[str, Any]) -> Engine:
    """The engine that `to_state` described."""
    return NewtonEngine.from_state(state) if state["engine"] == NewtonEngine.name else SGDEngine.from_state(state)
