"""The table of methods: what it says of a limit law is what the code returns, and the pages show this table."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from halfwidth.errors import InputError, UnknownName
from halfwidth.inference.replicate_result import HullResult
from halfwidth.methods import LAWS, METHODS, Setting, method
from halfwidth.methods.tables import TABLES, laws_table, markdown_table, with_tables
from halfwidth.problems import problem

ROOT = Path(__file__).parents[2]
ROWS = 8_000
WORLD = problem("seed-linear", dim=2)
"""Data with feedback, so that methods that estimate it show what that costs them."""


def result_of(row):
    setting = Setting(watched_rows=ROWS)
    if row.learn is not None:
        return row.learn(WORLD, setting, 0).run(ROWS).result()
    watcher = row.watch(WORLD.dim, setting)
    return setting.make_learner(WORLD, [watcher], 0).run(ROWS).result(watcher, row.critical)


def stated_freedom_holds(row, result):
    nu = result.law.degrees_of_freedom
    if row.freedom.isdecimal():
        return nu == float(row.freedom)
    if row.freedom == "batches - 1":
        return nu == round(nu) and nu < ROWS / 2
    if row.freedom.startswith("at most batches - 1"):
        return 0.0 < nu <= len(result.influences) - 1
    if row.freedom == "each coefficient's own":
        return ((result.df > 0.0) & (result.df < ROWS / 2)).all()
    return (row.freedom == "two-moment" and 0.0 < nu < ROWS) or (not row.freedom and row.law != "t")


@pytest.mark.parametrize("name", METHODS)
def test_the_law_in_the_table_is_that_of_the_result(name):
    row = METHODS[name]
    result = result_of(row)
    assert type(result.law) is LAWS[row.law].kind
    assert isinstance(result, HullResult) == (row.law == "hull")
    assert stated_freedom_holds(row, result)
    assert np.isfinite(result.interval().half_width).all()


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("auto", {"law": "normal"}), ("fixed-batches", {"freedom": "5"}), ("plug-in", {"law": "t"})],
)
def test_a_wrong_law_would_be_seen(name, wrong):
    """The negative control of the test above, through the same comparison."""
    row = replace(METHODS[name], **wrong)
    result = result_of(row)
    assert type(result.law) is not LAWS[row.law].kind or not stated_freedom_holds(row, result)


@pytest.mark.parametrize("page", ["README.md", "docs/methods.md"])
def test_the_pages_show_the_tables(page):
    """Written by `python -m halfwidth.methods.tables README.md docs/methods.md`."""
    text = (ROOT / page).read_text()
    assert "<!-- table: " in text
    assert text == with_tables(text)


def test_an_edited_table_is_written_anew():
    page = "before\n<!-- table: limit laws -->\n| stale |\n<!-- end of table -->\nafter\n"
    assert with_tables(page) == f"before\n<!-- table: limit laws -->\n{laws_table()}\n<!-- end of table -->\nafter\n"
    assert with_tables("no table") == "no table"
    for mark in ("<!-- table: nonsense -->\n<!-- end of table -->", "<!-- table: methods -->\nno end"):
        with pytest.raises(InputError, match="name one of recommended methods, methods, limit laws and have an end"):
            with_tables(mark)


def test_every_law_is_used_and_every_table_has_rows():
    assert {row.law for row in METHODS.values()} == set(LAWS)
    assert all(table().count("\n") > 5 for table in TABLES.values())
    assert markdown_table(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"


def test_a_method_must_name_a_known_law():
    with pytest.raises(UnknownName, match="no limit law named 'cauchy'"):
        replace(method("obm"), law="cauchy")
