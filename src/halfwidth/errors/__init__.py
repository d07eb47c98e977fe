"""Every exception a user can see, each with advice in its message.

Bad input is an `InputError`, which is a `ValueError`; its message names the argument, the rule and the value.
"""

from halfwidth.errors.base import (
    BadRow,
    CannotPool,
    DataUnavailable,
    Diverged,
    EnvironmentFailed,
    HalfwidthError,
    InputError,
    MissingExtra,
    NotEnoughData,
    NotIdentified,
    UnknownName,
)
from halfwidth.errors.states import (
    BadState,
    BrokenCheckpoint,
    Busy,
    CannotWrite,
    HalfInterrupted,
    Interrupted,
)

__all__ = [
    "BadRow",
    "BadState",
    "BrokenCheckpoint",
    "Busy",
    "CannotPool",
    "CannotWrite",
    "DataUnavailable",
    "Diverged",
    "EnvironmentFailed",
    "HalfInterrupted",
    "HalfwidthError",
    "InputError",
    "Interrupted",
    "MissingExtra",
    "NotEnoughData",
    "NotIdentified",
    "UnknownName",
]
