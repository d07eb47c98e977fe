"""Docstrings that classes share: what several classes take is described once, in their base class.

A class documents its own arguments. `share_parameters` completes its docstring with the entries of its base class for
the other arguments of its constructor, in the order of the signature, with the base's attributes, and with the base's
section Raises if it has none. `share_arguments` does the same for the methods of one class that take the same
arguments or return the same. `help` and documentation tools see the whole.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from types import FunctionType
from typing import TypeVar

_ORDER = ("Parameters", "Attributes", "Returns", "Raises", "Warns", "See Also", "Notes", "References", "Examples")
ALPHA = """
alpha : float, default 0.05
    One minus the confidence level.
"""
LEVEL = """
level : float, optional
    The confidence level; that of the result otherwise.
alpha : float, optional
    One minus the confidence level, instead of `level`.
"""
C = TypeVar("C", bound=type)
_HEADER = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)


def share_parameters(cls: type, *more: str) -> None:
    """Complete the docstring of a class from that of the nearest base class that documents its arguments.

    Parameters
    ----------
    cls : type
        The class; both have numpydoc docstrings. Python 3.13 strips their indentation, so that none is assumed.
    *more : str
        Entries for arguments that the constructor of the base class does not have.
    """
    if not cls.__doc__:  # Python was told to drop docstrings
        return
    summary, own = _sections(cls.__doc__)
    shared = next((found for found in map(_shared, cls.__mro__[1:]) if found), {})
    known = _entries("".join(map(textwrap.dedent, more))) | _joined("Parameters", shared, own)
    entries = {"Parameters": {name: known[name] for name in _arguments(cls) if name in known}}
    entries["Attributes"] = _joined("Attributes", shared, own)
    sections = {"Raises": shared["Raises"]} if "Raises" in shared else {}
    sections |= own | {name: "".join(found.values()) + "\n" for name, found in entries.items() if found}
    cls.__doc__ = _written(summary, sections)


def share_arguments(entries: str = "", *, returns: str = "") -> Callable[[C], C]:
    """Describe arguments once for all methods of a class that take them, and what all of them return.

    Parameters
    ----------
    entries : str
        Entries of a section Parameters; those that a method has itself win.
    returns : str
        The section Returns of the methods that have none, with `Self` for the name of the class.

    Returns
    -------
    callable
        A class decorator.
    """
    known, returned = _entries(inspect.cleandoc(entries)), inspect.cleandoc(returns)

    def complete(cls: C) -> C:
        for value in vars(cls).values():
            method = getattr(value, "__func__", value)  # of a class method
            if not isinstance(method, FunctionType) or not method.__doc__:
                continue
            summary, own = _sections(method.__doc__)
            described = known | _entries(own.get("Parameters", ""))
            found = [described[name] for name in _arguments(method) if name in described]
            if found:
                own["Parameters"] = "".join(found) + "\n"
            if returned and not method.__name__.startswith("_"):
                own.setdefault("Returns", returned.replace("Self", cls.__name__, 1) + "\n\n")
            method.__doc__ = _written(summary, own) if own else method.__doc__
        return cls

    return complete


def _shared(base: type) -> dict[str, str]:
    """The sections of a base class, or nothing if it does not document its arguments."""
    sections = _sections(base.__doc__ or "")[1]
    foreign = base.__module__.startswith("sklearn.")  # whose mixins document no arguments of ours
    return sections if "Parameters" in sections and not foreign else {}


def _joined(name: str, shared: dict[str, str], own: dict[str, str]) -> dict[str, str]:
    return _entries(shared.get(name, "")) | _entries(own.get(name, ""))


def _written(summary: str, sections: dict[str, str]) -> str:
    ordered = sorted(sections.items(), key=lambda section: _ORDER.index(section[0]))
    body = "".join(f"{name}\n{'-' * len(name)}\n{text}" for name, text in ordered)
    return f"{summary.rstrip()}\n\n{body.rstrip()}\n"


def _arguments(cls: Callable[..., object]) -> list[str]:
    stars: dict[object, str] = {inspect.Parameter.VAR_KEYWORD: "**", inspect.Parameter.VAR_POSITIONAL: "*"}
    parameters = inspect.signature(cls).parameters.values()
    return [stars.get(parameter.kind, "") + parameter.name for parameter in parameters]


def _sections(doc: str) -> tuple[str, dict[str, str]]:
    """The text before the first section, and the text of each section."""
    parts = _HEADER.split(inspect.cleandoc(doc))
    texts = [f"{text.rstrip()}\n\n" for text in parts[2::2]]
    return parts[0], dict(zip(parts[1::2], texts, strict=True))


def _entries(section: str) -> dict[str, str]:
    """The entries of a section Parameters by name; one for several names stands under the first of them."""
    entries: dict[str, str] = {}
    for part in re.split(r"^(?=\S)", section, flags=re.MULTILINE)[1:]:
        first, *others = re.split(r"\s*,\s*", part.split("\n")[0].split(":")[0].strip())
        entries |= {first: f"{part.rstrip()}\n"} | dict.fromkeys(others, "")
    return entries
