"""Docstrings that classes share: what several classes take is described once, in their base class.

A class documents its own arguments. `share_parameters` completes its docstring with the entries of its base class for
the other arguments of its constructor, in the order of the signature, with the base's attributes, and with the base's
section Raises if it has none; `help` and documentation tools see the whole.
"""

from __future__ import annotations

import inspect
import re
import textwrap

_ORDER = ("Parameters", "Attributes", "Raises", "Warns", "See Also", "Notes", "References", "Examples")
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
    ordered = sorted(sections.items(), key=lambda section: _ORDER.index(section[0]))
    body = "".join(f"{name}\n{'-' * len(name)}\n{text}" for name, text in ordered)
    cls.__doc__ = f"{summary.rstrip()}\n\n{body.rstrip()}\n"


def _shared(base: type) -> dict[str, str]:
    """The sections of a base class, or nothing if it does not document its arguments."""
    sections = _sections(base.__doc__ or "")[1]
    foreign = base.__module__.startswith("sklearn.")  # whose mixins document no arguments of ours
    return sections if "Parameters" in sections and not foreign else {}


def _joined(name: str, shared: dict[str, str], own: dict[str, str]) -> dict[str, str]:
    return _entries(shared.get(name, "")) | _entries(own.get(name, ""))


def _arguments(cls: type) -> list[str]:
    stars: dict[object, str] = {inspect.Parameter.VAR_KEYWORD: "**", inspect.Parameter.VAR_POSITIONAL: "*"}
    parameters = inspect.signature(cls).parameters.values()
    return [stars.get(parameter.kind, "") + parameter.name for parameter in parameters]


def _sections(doc: str) -> tuple[str, dict[str, str]]:
    """The text before the first section, and the text of each section."""
    parts = _HEADER.split(inspect.cleandoc(doc))
    texts = [f"{text.rstrip()}\n\n" for text in parts[2::2]]
    return parts[0], dict(zip(parts[1::2], texts, strict=True))


def _entries(section: str) -> dict[str, str]:
    """The entries of a section Parameters by name."""
    parts = re.split(r"^(?=\S)", section, flags=re.MULTILINE)[1:]
    return {re.split(r"[\s:]", part, maxsplit=1)[0]: f"{part.rstrip()}\n" for part in parts}
