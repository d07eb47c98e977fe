"""The tables of methods and of limit laws in Markdown, as README.md and docs/methods.md show them.

`tests/unit/test_methods.py` holds the pages to these functions. After a change of the table,
``python -m halfwidth.methods.tables README.md docs/methods.md`` writes them anew.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from halfwidth.errors import InputError
from halfwidth.methods import LAWS, METHODS


def recommended_table() -> str:
    """The methods that say when to use them: data, cost per row and limit law."""
    columns = ("method", "when", "data it is valid for", "cost per row", "limit law")
    rows = [(f"`{row.name}`", row.use, row.data_text, row.cost, row.law_text) for row in METHODS.values() if row.use]
    return markdown_table(columns, rows)


def methods_table() -> str:
    """All methods."""
    columns = ("method", "what it is", "data it is valid for", "cost per row", "memory", "limit law", "source")
    rows = [
        (f"`{row.name}`", row.summary, row.data_text, row.cost, row.memory, row.law_text, row.citation)
        for row in METHODS.values()
    ]
    return markdown_table(columns, rows)


def laws_table() -> str:
    """All limit laws, and the methods that use each."""
    columns = ("law", "limit of (estimate - truth) / standard error", "critical values", "source", "methods")
    rows = []
    for law in LAWS.values():
        users = ", ".join(f"`{row.name}`" for row in METHODS.values() if row.law == law.name)
        rows.append((law.name, law.limit, law.critical, law.source, users))
    return markdown_table(columns, rows)


TABLES: dict[str, Callable[[], str]] = {
    "recommended methods": recommended_table,
    "methods": methods_table,
    "limit laws": laws_table,
}


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def with_tables(page: str) -> str:
    """The page with the tables between its marks written anew.

    A table stands between ``<!-- table: NAME -->`` and ``<!-- end of table -->``.
    """
    parts = page.split("<!-- table: ")
    written = [parts[0]]
    for part in parts[1:]:
        name, _, rest = part.partition(" -->")
        _, end, after = rest.partition("<!-- end of table -->")
        if name not in TABLES or not end:
            raise InputError.of("a table's mark", f"name one of {', '.join(TABLES)} and have an end", name)
        written.append(f"{name} -->\n{TABLES[name]()}\n{end}{after}")
    return "<!-- table: ".join(written)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        path = Path(argument)
        path.write_text(with_tables(path.read_text(encoding="utf-8")), encoding="utf-8")
