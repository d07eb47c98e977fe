"""`--param NAME=VALUE`: the settings of a problem as a person types them."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

from halfwidth.errors import InputError, UnknownName


def read_params(problem: str, texts: Iterable[str]) -> dict[str, Any]:
    """The settings that these texts give, each read as what the problem expects under that name."""
    from halfwidth.problems import PROBLEMS, problem_settings

    known = problem_settings(problem)
    parameters = inspect.signature(PROBLEMS[problem]).parameters
    settings: dict[str, Any] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise InputError.of("param", "read NAME=VALUE", text)
        if name not in known:
            raise UnknownName.among(f"parameter of {problem}", name, known)
        if name in settings:
            raise InputError(f"param {name} is given twice")
        settings[name] = _read(name, value, known[name], str(getattr(parameters.get(name), "annotation", "")))
    return settings


def _read(name: str, text: str, default: Any, kind: str) -> Any:
    """A number where the default is one, text where text is expected, and otherwise numbers with commas between."""
    if "str" in kind:
        return text
    try:
        if isinstance(default, int):
            return int(text)
        return float(text) if isinstance(default, float) else [float(part) for part in text.split(",")]
    except ValueError:
        rule = "be a whole number" if isinstance(default, int) else "be a number"
        raise InputError.of(f"param {name}", rule if default is not None else "read like 0,0.5,1", text) from None


def listed(text: str) -> list[str]:
    """The parts of a comma-separated option."""
    return [part.strip() for part in text.split(",") if part.strip()]
