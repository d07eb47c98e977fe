"""The types that users see: `assert_type` holds, no public name is `Any`, and the stub agrees with the code."""

import ast
import inspect
import re
from pathlib import Path

import pytest
from mypy import api

import halfwidth as hw

ROOT = Path(__file__).parents[2]
STUB = Path(hw.__file__).with_suffix(".pyi")
EXAMPLES = sorted(Path(__file__).parent.glob("*_types.py"))
BROKEN = 'import halfwidth as hw\n\nreveal_type(hw.load)\nx: int = hw.problem("iid-linear")\n'


def mypy(*paths: Path) -> tuple[str, int]:
    """Check the files as `make lint` does, so that its cache serves here too; returns (output, exit status)."""
    output, errors, status = api.run(["--config-file", str(ROOT / "pyproject.toml"), *map(str, paths)])
    assert not errors, errors
    return output, status


@pytest.fixture(autouse=True)
def _in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def members(name: str) -> list[str]:
    """The public methods and properties of a public class that halfwidth itself defines."""
    value = getattr(hw, name)
    if not inspect.isclass(value):
        return []
    own = [base for base in value.__mro__ if base.__module__.startswith("halfwidth.")]
    found = {key for base in own for key, member in vars(base).items() if callable(member) or is_descriptor(member)}
    by_sklearn = {key for key in found if key.startswith("set_") and key.endswith("_request")}  # metadata routing
    return sorted(f"{name}.{key}" for key in found - by_sklearn if not key.startswith("_"))


def is_descriptor(member: object) -> bool:
    return isinstance(member, property | classmethod | staticmethod) or hasattr(member, "__get__")


def revealed(names: list[str], folder: Path) -> dict[str, str]:
    """The types that mypy reveals for `hw.name`, by name."""
    page = folder / "reveal.py"
    page.write_text("import halfwidth as hw\n\n" + "".join(f"reveal_type(hw.{name})\n" for name in names))
    output, _ = mypy(page)
    found = re.findall(r'reveal\.py:(\d+): note: Revealed type is "(.*)"', output)
    return {names[int(line) - 3]: kind for line, kind in found}


def test_the_asserted_types_hold() -> None:
    output, status = mypy(*EXAMPLES)
    assert status == 0, output


def test_a_wrong_type_is_reported(tmp_path: Path) -> None:
    """The negative control: the checker that passes the files above rejects a wrong assignment."""
    page = tmp_path / "broken.py"
    page.write_text(BROKEN)
    output, status = mypy(page)
    assert status == 1
    assert "Incompatible types in assignment" in output


FRAMES = {"Result.to_frame"}
"""Methods that return a pandas frame, for which mypy knows no types without pandas-stubs."""


def test_no_public_name_is_any(tmp_path: Path) -> None:
    """Neither a public name, nor what a public method or property returns."""
    names = [*hw.__all__, *(member for name in hw.__all__ for member in members(name))]
    kinds = revealed(names, tmp_path)
    assert set(kinds) == set(names)
    assert len(kinds) > 200
    unknown = {name for name, kind in kinds.items() if kind == "Any" or kind.endswith("-> Any")}
    assert unknown <= FRAMES


def test_any_would_be_seen(tmp_path: Path) -> None:
    """The negative control: a name that the stub lacks is revealed as Any."""
    assert revealed(["fitt"], tmp_path) == {"fitt": "Any"}


def test_the_stub_names_what_the_packages_export() -> None:
    """Every import statement of the stub works, and takes a public name of its package."""
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            package = __import__(str(node.module), fromlist=["__all__"])
            for alias in node.names:
                assert alias.asname == alias.name
                assert alias.name in getattr(package, "__all__", dir(package))
                assert getattr(hw, alias.name) is getattr(package, alias.name)


def test_all_is_the_stub_and_nothing_else() -> None:
    imports = [node for node in ast.parse(STUB.read_text()).body if isinstance(node, ast.ImportFrom)]
    assert set(hw.__all__) == {alias.name for node in imports for alias in node.names} | {"__version__"}
    assert set(dir(hw)) == set(hw.__all__)
    with pytest.raises(AttributeError, match="no attribute 'fitt'"):
        getattr(hw, "fitt")  # noqa: B009
