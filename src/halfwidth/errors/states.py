"""Saved states that are broken, files that cannot be written, and runs that were interrupted."""

from __future__ import annotations

from halfwidth.docstrings import share_arguments
from halfwidth.errors.base import BUILT, RULE, HalfwidthError, InputError, KeepsFields


class BrokenCheckpoint(InputError):
    """A checkpoint that is cut short, altered, or of another kind or version."""


class CannotWrite(InputError):
    """A file that could not be written; the message says which, why, and what to do."""


class Busy(HalfwidthError, RuntimeError):
    """An object that one thread is changing, used by another."""


class HalfInterrupted(HalfwidthError, RuntimeError):
    """An object that a call left half changed; it refuses to go on."""


class Interrupted(KeepsFields, KeyboardInterrupt):
    """A run that a signal ended between two chunks; the message says what was kept and how to go on.

    Parameters
    ----------
    message : str
        The whole message.
    signal : int
        The number of the signal.
    """

    def __init__(self, message: str, signal: int) -> None:
        super().__init__(message)
        self.signal = signal


@share_arguments(RULE, returns=BUILT)
class BadState(BrokenCheckpoint):
    """A saved state that breaks a rule of its schema; the message names the field, the rule and the value."""

    @classmethod
    def at(cls, where: str, rule: str, value: object) -> BadState:
        """Build the usual message: which field, which rule, and what came instead, cut short.

        Parameters
        ----------
        where : str
            The field of the state.
        """
        return cls(f"{where} must {rule}; got {_shown(value)}")


def _shown(value: object) -> str:
    """A value of unknown size in a few words."""
    shape = getattr(value, "shape", ())
    if shape:
        return f"an array of {getattr(value, 'dtype', '')} of shape {shape}"
    if isinstance(value, (dict, list, tuple, set)):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 128:
        return f"an integer of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
