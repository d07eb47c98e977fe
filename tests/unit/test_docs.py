"""Every example in the README and the docstrings runs."""

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import halfwidth
from halfwidth.problems import PROBLEMS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def python_blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def modules_with_examples():
    sources = {module.name: module for module in pkgutil.walk_packages(halfwidth.__path__, "halfwidth.")}
    return [name for name in sorted(sources) if ">>> " in inspect.getsource(importlib.import_module(name))]


@pytest.mark.parametrize("name", modules_with_examples())
def test_docstring_examples_run(name):
    outcome = doctest.testmod(importlib.import_module(name))
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch):
    """The blocks of a page share their names, in order, as a reader would type them."""
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "example"}
    blocks = python_blocks(page)
    for number, block in enumerate(blocks, start=1):
        exec(compile(block, f"{page.name}, block {number}", "exec"), names)
    assert len(names) > 1 or not blocks
