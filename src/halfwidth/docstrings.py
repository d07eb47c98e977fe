"""Docstrings that classes share: an argument that several classes take is described once, in their base class.

A class documents its own arguments. `share_parameters` completes its docstring with the entries of its base class for
the other arguments of its constructor, in the order of the signature, and with the base's section Raises if it has
none; `help` and documentation tools see the whole.
"""

from __future__ import annotations

import inspect
import re

_ORDER = ("Parameters", "Attributes", "Raises", "Warns", "See Also", "Notes", "References", "Examples")
_HEADER = re.compile(r"^    (\w[\w ]*)\n    -{3,}\n", re.MULTILINE)


def share_parameters(cls: type, *more: str) -> None:
    """Complete the docstring of a class from that of its first base class, mixins of scikit-learn aside.

    Parameters
    ----------
    cls : type
        The class; both have numpydoc docstrings, indented by four spaces.
    *more : str
        Entries for arguments that the constructor of the base class does not have.
    """
    base = next(base for base in cls.__bases__ if not base.__module__.startswith("sklearn."))
    if not cls.__doc__ or not base.__doc__:  # Python was told to drop docstrings
        return
    summary, own = _sections(cls.__doc__)
    _, shared = _sections(base.__doc__)
    known = _entries("".join(more)) | _entries(shared.get("Parameters", "")) | _entries(own.get("Parameters", ""))
    names = [name for name in _arguments(cls) if name in known]
    sections = {"Parameters": "".join(known[name] for name in names) + "\n"}
    if "Raises" in shared:
        sections["Raises"] = shared["Raises"]
    sections |= {name: text for name, text in own.items() if name != "Parameters"}
    ordered = sorted(sections.items(), key=lambda section: _ORDER.index(section[0]))
    body = "".join(f"    {name}\n    {'-' * len(name)}\n{text}" for name, text in ordered)
    cls.__doc__ = f"{summary.rstrip()}\n\n{body.rstrip()}\n    "


def _arguments(cls: type) -> list[str]:
    stars: dict[object, str] = {inspect.Parameter.VAR_KEYWORD: "**", inspect.Parameter.VAR_POSITIONAL: "*"}
    parameters = inspect.signature(cls).parameters.values()
    return [stars.get(parameter.kind, "") + parameter.name for parameter in parameters]


def _sections(doc: str) -> tuple[str, dict[str, str]]:
    """The text before the first section, and the text of each section."""
    parts = _HEADER.split(doc)
    texts = [f"{text.rstrip()}\n\n" for text in parts[2::2]]
    return parts[0], dict(zip(parts[1::2], texts, strict=True))


def _entries(section: str) -> dict[str, str]:
    """The entries of a section Parameters by name."""
    parts = re.split(r"^    (?=\S)", section, flags=re.MULTILINE)[1:]
    return {re.split(r"[\s:]", part, maxsplit=1)[0]: f"    {part.rstrip()}\n" for part in parts}
