"""What holds for the suite itself: every test asserts, none of them a duration, and none reaches a network."""

import ast
import socket
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
MODULES = sorted(TESTS.rglob("test_*.py"))
ASSERTING = ("assert_", "raises", "warns", "check")  # numpy's and pandas' asserts, pytest's contexts, check suites
CLOCKS = ("perf_counter", "process_time", "monotonic")


def called_names(tree):
    return [ast.unparse(node.func).rpartition(".")[2] for node in ast.walk(tree) if isinstance(node, ast.Call)]


def asserts(function, helpers):
    """Whether a function asserts: itself, by a call that does, or by a helper of its module."""
    if any(isinstance(node, ast.Assert) for node in ast.walk(function)):
        return True
    names = called_names(function)
    if any(name.startswith(ASSERTING) for name in names):
        return True
    return any(asserts(helpers[name], {}) for name in names if name in helpers)


def without_assertions(source):
    functions = {node.name: node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)}
    return [name for name, node in functions.items() if name.startswith("test_") and not asserts(node, functions)]


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(TESTS)))
def test_every_test_asserts_and_none_a_duration(module):
    source = module.read_text(encoding="utf-8")
    assert without_assertions(source) == []
    assert not set(called_names(ast.parse(source))) & set(CLOCKS)


def test_negative_control_a_test_without_an_assertion_is_found():
    assert without_assertions("def helper():\n    pass\n\ndef test_nothing():\n    helper()\n") == ["test_nothing"]


def test_no_test_reaches_beyond_this_machine():
    with socket.socket() as caller, pytest.raises(RuntimeError, match="mark it network"):
        caller.connect(("192.0.2.1", 80))  # an address kept for documentation


def test_pip_finds_no_index():
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "numpy", "--dest", "nowhere"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "No matching distribution found" in done.stderr
