"""A hash of the code that a study runs, and of nothing else.

It covers the modules that `halfwidth.study.replicate` imports, directly or through others, as they are parsed:
comments, docstrings, layout and every other module may change without a result being thrown away.
"""

from __future__ import annotations

import ast
import hashlib
from functools import lru_cache
from pathlib import Path

import halfwidth

_STARTS = ("halfwidth.study.replicate", "halfwidth.study.spec")


@lru_cache(maxsize=1)
def code_version() -> str:
    """The hash, in 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for name, tree in sorted(code_of(Path(halfwidth.__file__).parent, _STARTS).items()):
        digest.update(f"{name}\n{ast.dump(tree)}\n".encode())
    return digest.hexdigest()[:16]


def code_of(root: Path, starts: tuple[str, ...]) -> dict[str, ast.Module]:
    """The parsed modules of the package at `root` that these ones reach, without their docstrings."""
    found: dict[str, ast.Module] = {}
    waiting = list(starts)
    while waiting:
        name = waiting.pop()
        path = _path(root, name)
        if path is None or name in found:
            continue
        tree = ast.parse(path.read_bytes())
        found[name] = tree
        waiting += _imports(tree)
        _forget_docstrings(tree)
    return found


def _path(root: Path, name: str) -> Path | None:
    inside = root.joinpath(*name.split(".")[1:])
    if name == "halfwidth" or name.split(".")[1] == "plots":  # lazy names reach everything; pictures change no number
        return None
    return next((path for path in (inside.with_suffix(".py"), inside / "__init__.py") if path.is_file()), None)


def _imports(tree: ast.Module) -> list[str]:
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").split(".")[0] == "halfwidth":
            names += [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names if alias.name.split(".")[0] == "halfwidth"]
    parents = [name.rpartition(".")[0] for name in names]
    return names + [parent for parent in parents if parent]


def _forget_docstrings(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                node.body = node.body[1:] or [ast.Pass()]
