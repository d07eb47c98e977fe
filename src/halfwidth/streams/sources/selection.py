"""Which columns a reader reads: all of them at first, the needed ones once the design is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from halfwidth.streams.design.bad_rows import BROKEN_FILE, fault, missing_column


class Selection:
    """The columns to read, None for all; a source that is read once narrows it on the way."""

    def __init__(self, names: Sequence[str] | None = None) -> None:
        self.names = None if names is None else list(names)


def shared_names(known: Sequence[str]) -> tuple[str, ...]:
    """The names that stand for several columns: nobody can say which one is meant."""
    return tuple(name for name, count in Counter(known).items() if count > 1) if len(set(known)) < len(known) else ()


def check_columns(file: str, known: Sequence[str], columns: Sequence[str] | None) -> list[str]:
    """The columns to read from a file that has the known ones; one that is absent or there twice raises.

    Without `columns` these are all names that stand for one column.
    """
    places = set(known)
    if columns is None:
        shared = shared_names(known)
        return [name for name in known if name not in shared]
    for name in columns:
        if name not in places:
            raise missing_column(file, name, list(known))
        if len(places) < len(known) and list(known).count(name) > 1:
            raise fault(file, None, name, BROKEN_FILE, "two columns have this name")
    return list(columns)
