"""Every exception a user can see, each with advice in its message.

Bad input is an `InputError`, which is a `ValueError`; its message names the argument, the rule and the value.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class HalfwidthError(Exception):
    """The base of every exception raised on purpose by halfwidth."""


class InputError(HalfwidthError, ValueError):
    """An argument breaks a stated rule."""

    @classmethod
    def of(cls, argument: str, rule: str, value: object) -> InputError:
        """The usual message: which argument, which rule, and what came instead."""
        return cls(f"{argument} must {rule}; got {value!r}")


class UnknownName(InputError):
    """A problem, method or option with no such name."""

    @classmethod
    def among(cls, what: str, name: str, known: Iterable[str]) -> UnknownName:
        names = sorted(known)
        near = get_close_matches(name, names, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        return cls(f"there is no {what} named {name!r}; known: {', '.join(names)}.{hint}")


class NotEnoughData(InputError):
    """Too little was seen for what was asked; the message says how much is needed."""

    @classmethod
    def rows(cls, what: str, seen: int, needed: int) -> NotEnoughData:
        return cls(f"{what} needs at least {needed} rows; {seen} were seen. Feed more rows and ask again")


class BadRow(InputError):
    """A row of a stream that cannot be used; the message names the file, the row and the column.

    Rows are counted from 1 and are rows of data: a header or a blank line does not count. `row` or `column` is
    None where the whole file, or the whole row, is at fault.
    """

    def __init__(self, message: str, file: str, row: int | None, column: str | None, reason: str) -> None:
        super().__init__(message)
        self.file, self.row, self.column, self.reason = file, row, column, reason

    @classmethod
    def at(cls, file: str, row: int | None, column: str | None, reason: str, detail: str, advice: str) -> BadRow:
        """The usual message: where, what is wrong there, and what to do."""
        place = [file]
        if row is not None:
            place.append(f"row {row}")
        if column is not None:
            place.append(f"column {column!r}")
        return cls(f"{', '.join(place)}: {detail}; {advice}", file, row, column, reason)

    def __reduce__(self) -> tuple[type[BadRow], tuple[object, ...]]:
        return type(self), (self.args[0], self.file, self.row, self.column, self.reason)


class BrokenCheckpoint(InputError):
    """A checkpoint that is cut short, altered, or of another kind or version."""


class BadState(BrokenCheckpoint):
    """A saved state that breaks a rule of its schema; the message names the field, the rule and the value."""

    @classmethod
    def at(cls, where: str, rule: str, value: object) -> BadState:
        """The usual message: which field, which rule, and what came instead, cut short."""
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


class DataUnavailable(HalfwidthError, OSError):
    """An example data set that could not be fetched or found; the message says what to do."""


class CannotPool(InputError):
    """Two watchers that cannot be joined, or a pooled one asked to learn."""


class Diverged(HalfwidthError, ArithmeticError):
    """The iterates left the finite numbers; the message says at which row and what helps."""


class MissingExtra(HalfwidthError, ImportError):
    """An optional dependency is needed and not installed."""

    @classmethod
    def named(cls, package: str, extra: str) -> MissingExtra:
        return cls(f"this needs {package}; install it with: pip install 'halfwidth[{extra}]'")


class NotIdentified(InputError):
    """The rows do not determine the coefficients (collinear columns, separated classes); `status` names the reason."""

    def __init__(self, message: str, status: str) -> None:
        super().__init__(message)
        self.status = status

    def __reduce__(self) -> tuple[type[NotIdentified], tuple[object, ...]]:
        return type(self), (self.args[0], self.status)
