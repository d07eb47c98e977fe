"""What holds for every file of the package: sizes, the parameters of kernels, and what mypy is told to ignore."""

import ast
import re
from pathlib import Path

import pytest

import halfwidth

SOURCE = Path(halfwidth.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
LONGEST_FILE, LONGEST_BODY, MOST_PARAMETERS, MOST_IGNORED = 250, 60, 8, 15
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
REASON = re.compile(r"# type: ignore\[[\w, -]+\]  # \w")


def long_functions(source):
    """Functions whose body, without signature and docstring, is longer than a screen."""
    found = []
    for function in [node for node in ast.walk(ast.parse(source)) if isinstance(node, FUNCTIONS)]:
        body = function.body[1:] if ast.get_docstring(function) else function.body
        if body and function.end_lineno - body[0].lineno >= LONGEST_BODY:
            found.append(function.name)
    return found


def wide_kernels(source):
    """Kernels with too many parameters: functions marked so, and those that the factory of a loop returns."""
    tree = ast.parse(source)
    kernels = []
    for function in [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]:
        returned = {
            ast.unparse(node.value) for node in ast.walk(function) if isinstance(node, ast.Return) and node.value
        }
        kernels += [inner for inner in function.body if isinstance(inner, FUNCTIONS) and inner.name in returned]
        kernels += [function] if {ast.unparse(mark) for mark in function.decorator_list} & {"kernel", "jitable"} else []
    return [kernel.name for kernel in kernels if len(kernel.args.args + kernel.args.kwonlyargs) > MOST_PARAMETERS]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_and_functions_are_short_and_kernels_narrow(path):
    source = path.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= LONGEST_FILE
    assert long_functions(source) == []
    assert wide_kernels(source) == []


def test_negative_control_long_functions_and_wide_kernels_are_found():
    assert long_functions("def f():\n    '''Text.'''\n" + "    x = 1\n" * (LONGEST_BODY + 1)) == ["f"]
    assert long_functions("def f():\n    '''Text.'''\n" + "    x = 1\n" * LONGEST_BODY) == []
    many = ", ".join(f"p{i}" for i in range(MOST_PARAMETERS + 1))
    assert wide_kernels(f"@kernel\ndef f({many}): pass\n") == ["f"]
    assert wide_kernels(f"def make(sample):\n    def loop({many}): pass\n    return loop\n") == ["loop"]


def test_what_mypy_is_told_to_ignore_is_little_and_has_a_reason():
    lines = [line for path in FILES for line in path.read_text(encoding="utf-8").splitlines() if "type: ignore" in line]
    assert 0 < len(lines) <= MOST_IGNORED
    assert [line for line in lines if not REASON.search(line)] == []


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("__init__.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_package_that_has_names_says_which_are_public(path):
    body = ast.parse(path.read_text(encoding="utf-8")).body
    names = [
        node for node in body if isinstance(node, ast.ImportFrom | FUNCTIONS) and "__future__" not in ast.unparse(node)
    ]
    public = [node for node in body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"]
    assert not names or public
