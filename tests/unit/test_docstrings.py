"""numpydoc's validation of every public name: sections, parameters and their types, returns.

Public are the names in `__all__` of `halfwidth` and of its packages, and the public methods and properties of the
classes among them. An override without a docstring inherits that of its base class, as `help` does.
"""

import functools
import importlib
import inspect
import pkgutil

import pytest
from numpydoc.validate import validate

import halfwidth as hw

# The checks by their names in numpydoc's documentation; what is not here is either a matter of layout that ruff
# settles (GL01, GL02), or asks for an extended summary, "See Also" or examples in every method.
CHECKS = {
    *("GL03", "GL05", "GL06", "GL07", "GL08", "GL09", "GL10"),
    *("SS01", "SS02", "SS03", "SS04", "SS05", "SS06"),
    *("PR01", "PR02", "PR03", "PR04", "PR05", "PR06", "PR07", "PR08", "PR09", "PR10"),
    *("RT01", "RT02", "RT03", "RT04", "RT05", "YD01"),
}


def packages():
    return [importlib.import_module(f"halfwidth.{module.name}") for module in pkgutil.iter_modules(hw.__path__)]


def public_objects():
    """Every public class and function, by its full name."""
    modules = [hw, *(package for package in packages() if hasattr(package, "__all__"))]
    found = [getattr(module, name) for module in modules for name in module.__all__]
    found = [value for value in found if inspect.isclass(value) or inspect.isfunction(value)]
    return {f"{value.__module__}.{value.__qualname__}": value for value in found}


def members(value):
    """The public methods and properties of a class, each in the class of its docstring."""
    own = (
        [owner for owner in value.__mro__ if owner.__module__.startswith("halfwidth.")]
        if inspect.isclass(value)
        else []
    )
    for key in {key for owner in own for key in vars(owner) if not key.startswith("_") and not by_sklearn(key)}:
        owners = [owner for owner in own if is_member(vars(owner).get(key))]
        documented = [owner for owner in owners if vars(owner)[key].__doc__]
        for owner in documented or owners[:1]:
            yield f"{owner.__module__}.{owner.__qualname__}.{key}"


def by_sklearn(key):
    """Metadata routing: scikit-learn adds these methods, with docstrings of its own."""
    return key.startswith("set_") and key.endswith("_request")


def is_member(value):
    return inspect.isroutine(value) or isinstance(value, property | functools.cached_property)


def public_names():
    objects = public_objects()
    return sorted(
        {*objects, *(name for value in objects.values() if inspect.isclass(value) for name in members(value))}
    )


def complaints(name):
    """A protocol is never constructed: typing gives it a signature, which nobody documents."""
    protocol = getattr(public_objects().get(name), "_is_protocol", False)
    checks = CHECKS - {"PR01"} if protocol else CHECKS
    return [f"{code}: {text}" for code, text in validate(name)["errors"] if code in checks]


@pytest.mark.parametrize("name", public_names())
def test_the_docstring_is_valid_numpydoc(name):
    assert not complaints(name)


@pytest.mark.parametrize("name", [n for n in hw.__all__ if n != "__version__"])
def test_the_public_api_shows_examples(name):
    """`help(hw.name)` ends in an example that runs (`test_docs.py` runs it)."""
    assert ">>> " in (inspect.getdoc(getattr(hw, name)) or "")


def undocumented(dim, level=0.95):
    """Nothing is said about the parameters."""
    return dim * level


def test_a_missing_section_is_reported(monkeypatch):
    """The negative control: the same validation reports parameters and returns that are not described."""
    monkeypatch.setattr(hw, "undocumented", undocumented, raising=False)
    codes = {text.partition(":")[0] for text in complaints("halfwidth.undocumented")}
    assert {"PR01", "RT01"} <= codes


def test_the_public_names_are_found():
    names = public_names()
    assert len(names) > 200
    assert {"halfwidth.inference.interval.Interval.covers", "halfwidth.problems.problem"} <= set(names)
