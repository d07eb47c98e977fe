"""Every example in the README and the docstrings runs."""

import doctest
import importlib
import inspect
import pkgutil
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import typer.main

import halfwidth
from halfwidth.cli.app import app
from halfwidth.inference.diagnostics import batch_diagnostics
from halfwidth.problems import PROBLEMS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMANDS = typer.main.get_command(app).commands
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))


def python_blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def modules_with_examples():
    sources = {module.name: module for module in pkgutil.walk_packages(halfwidth.__path__, "halfwidth.")}
    return [name for name in sorted(sources) if ">>> " in inspect.getsource(importlib.import_module(name))]


@pytest.mark.parametrize("name", modules_with_examples())
def test_docstring_examples_run(name):
    """As in NumPy's own documentation, `np` is taken to be imported."""
    outcome = doctest.testmod(importlib.import_module(name), extraglobs={"np": np})
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_there_are_docstring_examples():
    """The negative control: an empty search would pass the test above."""
    assert len(modules_with_examples()) >= 8


def test_the_readme_has_python_examples():
    assert python_blocks(ROOT / "README.md")


def test_the_page_on_problems_lists_every_built_in_one():
    table = (ROOT / "docs" / "problems.md").read_text().partition("## What is built in")[2]
    assert set(re.findall(r"`([a-z]+(?:-[a-z]+)*)`", table)) == set(PROBLEMS)


def parses(line):
    """Whether a line of a shell block names a command that exists, with options that it has."""
    program, *arguments = shlex.split(line, comments=True)
    if program == "halfwidth":
        try:
            return COMMANDS[arguments[0]].make_context(arguments[0], arguments[1:]) is not None
        except Exception:  # whatever Typer raises in this version
            return False
    if program == "make":
        return set(arguments) <= TARGETS
    return program in ("pip", "python")


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_exist(page):
    text = page.read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    assert [line for block in blocks for line in block.splitlines() if line and not parses(line)] == []
    assert set(re.findall(r"`make ([a-z-]+)`", text)) <= TARGETS
    for module in re.findall(r"`python -m benchmarks\.([a-z_]+)", text):
        assert (ROOT / "benchmarks" / f"{module}.py").exists()


@pytest.mark.parametrize(
    "line", ["halfwidth fits x.csv", "halfwidth study iid-linear --dims 3", "make tests", "half fit x.csv"]
)
def test_negative_control_a_command_that_does_not_exist_is_noticed(line):
    assert not parses(line)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch):
    """The blocks of a page share their names, in order, as a reader would type them."""
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "example"}
    blocks = python_blocks(page)
    for number, block in enumerate(blocks, start=1):
        exec(compile(block, f"{page.name}, block {number}", "exec"), names)
    assert len(names) > 1 or not blocks


def test_the_doubts_of_batch_means_are_among_the_statuses():
    """A regression by engine `sgd` takes them over."""
    page = (ROOT / "docs" / "statuses.md").read_text()
    for name, _ in batch_diagnostics(2.0, 1_000.0, 10, 1_000).flags:
        assert f"| `{name}` |" in page
