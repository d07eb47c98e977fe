"""The table of methods: a name, how it learns, watches and makes an interval, and what it assumes.

A method either watches the trajectory of the learner that a study sets (`watching`), or brings a learner of its own
(`learning`). A new method is a new file in `watchers` or `learners` and a row there. The table of limit laws is in
`laws`; `tables` writes both in Markdown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from halfwidth.errors import InputError, UnknownName
from halfwidth.methods.base import Method, Setting
from halfwidth.methods.laws import LAWS, LawRow
from halfwidth.methods.learning import CHOOSING, LEARNING, Learning
from halfwidth.methods.watching import WATCHING

__all__ = ["LAWS", "METHODS", "LawRow", "Method", "Setting", "method", "methods"]

METHODS: dict[str, Method] = {row.name: row for row in (*CHOOSING, *WATCHING, *LEARNING)}


def method(name: str) -> Method:
    """Return the row of the table of methods that has this name.

    Parameters
    ----------
    name : str
        The name; ``bootstrap:copies=200`` is the row ``bootstrap`` with an option changed.

    Returns
    -------
    Method
        The row.

    Raises
    ------
    UnknownName
        If there is no such method.

    Examples
    --------
    >>> method("fixed-batches").law_text
    't, 9 degrees of freedom'
    """
    base, colon, options = name.partition(":")
    if base not in METHODS:
        raise UnknownName.among("method", base, METHODS)
    row = METHODS[base]
    if not colon:
        return row
    if not isinstance(row.learn, Learning):
        raise InputError.of("method", "have options to change; this one has none", name)
    return replace(row, name=name, learn=row.learn.changed(options))


def methods(names: Iterable[str]) -> tuple[Method, ...]:
    """Return several rows of the table of methods.

    Parameters
    ----------
    names : iterable of str
        The names, each once.

    Returns
    -------
    tuple of Method
        The rows, in the order of the names.
    """
    rows = tuple(method(name) for name in names)
    if not rows or len({row.name for row in rows}) < len(rows):
        raise InputError.of("methods", "name at least one method, each once", [row.name for row in rows])
    return rows
