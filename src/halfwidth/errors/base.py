"""Bad input, bad rows, too little data, missing packages: each exception with advice in its message."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from halfwidth.docstrings import share_arguments

RULE = """
rule : str
    What it must do, as a verb phrase such as ``"be positive"``.
value : object
    What was given instead.
"""
BUILT = """
Self
    The exception, to be raised by the caller.
"""


class HalfwidthError(Exception):
    """The base class of every exception that halfwidth raises on purpose."""


@share_arguments(RULE, returns=BUILT)
class InputError(HalfwidthError, ValueError):
    """An argument that breaks a stated rule."""

    @classmethod
    def of(cls, argument: str, rule: str, value: object) -> InputError:
        """Build the usual message: which argument, which rule, and which value was given.

        Parameters
        ----------
        argument : str
            The name of the argument.
        """
        return cls(f"{argument} must {rule}; got {value!r}")


@share_arguments(returns=BUILT)
class UnknownName(InputError):
    """A problem, method or option with no such name."""

    @classmethod
    def among(cls, what: str, name: str, known: Iterable[str]) -> UnknownName:
        """Build a message that lists the known names and suggests the nearest.

        Parameters
        ----------
        what, name : str
            The kind of thing, such as ``"method"``, and the name that was given.
        known : iterable of str
            The names there are.
        """
        names = sorted(known)
        near = get_close_matches(name, names, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        return cls(f"there is no {what} named {name!r}; known: {', '.join(names)}.{hint}")


@share_arguments(returns=BUILT)
class NotEnoughData(InputError):
    """Too few rows for what was asked; the message says how many are needed."""

    @classmethod
    def rows(cls, what: str, seen: int, needed: int) -> NotEnoughData:
        """Build the usual message for too few rows.

        Parameters
        ----------
        what : str
            What needs the rows.
        seen, needed : int
            How many rows there were, and how many it takes.
        """
        return cls(f"{what} needs at least {needed} rows; {seen} were seen. Feed more rows and ask again")


class KeepsFields(BaseException):
    """An exception with more than its message: a copy or a pickle of it keeps the rest too."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _with_fields, (type(self), self.args, vars(self))


def _with_fields(cls: type[BaseException], args: tuple[object, ...], fields: dict[str, object]) -> BaseException:
    made = cls.__new__(cls, *args)
    vars(made).update(fields)
    return made


@share_arguments(returns=BUILT)
class BadRow(KeepsFields, InputError):
    """A row of a stream that cannot be used; the message names the file, the row and the column.

    Parameters
    ----------
    message : str
        The whole message.
    file : str
        The file, or a name for the source.
    row : int or None
        The row, counted from 1 among the rows of data: a header or a blank line does not count. None where the whole
        file is at fault.
    column : str or None
        The column; None where the whole row is at fault.
    reason : str
        A short name of the fault, under which such rows are counted.
    """

    def __init__(self, message: str, file: str, row: int | None, column: str | None, reason: str) -> None:
        super().__init__(message)
        self.file, self.row, self.column, self.reason = file, row, column, reason

    @classmethod
    def at(cls, file: str, row: int | None, column: str | None, reason: str, detail: str, advice: str) -> BadRow:
        """Build the usual message: where, what is wrong there, and what to do.

        Parameters
        ----------
        file, row, column, reason : str, int or None
            As the class takes them.
        detail, advice : str
            What is wrong, in words, and what the user can do.
        """
        place = [file]
        if row is not None:
            place.append(f"row {row}")
        if column is not None:
            place.append(f"column {column!r}")
        return cls(f"{', '.join(place)}: {detail}; {advice}", file, row, column, reason)


class DataUnavailable(HalfwidthError, OSError):
    """An example data set that could not be fetched or found; the message says what to do."""


class EnvironmentFailed(HalfwidthError, RuntimeError):
    """A simulator raised, or gave something that cannot be used; the message says what was kept."""


class CannotPool(InputError):
    """Two watchers that cannot be pooled, or a pooled one that was asked to learn."""


class Diverged(HalfwidthError, ArithmeticError):
    """The iterates became non-finite; the message says at which row and what helps."""


@share_arguments(returns=BUILT)
class MissingExtra(HalfwidthError, ImportError):
    """An optional dependency that is needed and not installed."""

    @classmethod
    def named(cls, package: str, extra: str) -> MissingExtra:
        """Build the usual message: which package is missing, and which extra installs it.

        Parameters
        ----------
        package : str
            The package that could not be imported.
        extra : str
            The extra of halfwidth that brings it.
        """
        return cls(f"this needs {package}; install it with: pip install 'halfwidth[{extra}]'")


class NotIdentified(KeepsFields, InputError):
    """The rows do not determine the coefficients: collinear columns, separated classes.

    Parameters
    ----------
    message : str
        The whole message.
    status : str
        The name of the reason.
    """

    def __init__(self, message: str, status: str) -> None:
        super().__init__(message)
        self.status = status
