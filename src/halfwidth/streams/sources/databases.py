"""Rows of a database query: SQLite over ADBC, DuckDB through its own Arrow interface; both opened for reading only."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from halfwidth.errors import InputError, MissingExtra
from halfwidth.streams.block import Block, need
from halfwidth.streams.sources.selection import check_columns, shared_names

SCHEMES = ("sqlite", "duckdb")
_ADDRESS = re.compile(rf"^({'|'.join(SCHEMES)})://(?:/)?(.*)$", re.DOTALL)
_BATCH_ROWS = 1 << 14


def is_address(source: Any) -> bool:
    """Whether a source is the address of a database.

    >>> is_address("sqlite:///rows.db"), is_address("rows.csv")
    (True, False)
    """
    return isinstance(source, str) and _ADDRESS.match(source) is not None


class DatabaseSource:
    """The rows of one query, in the order in which the database gives them.

    Without ORDER BY a database owes no order, so the rows are read once; with it the query may run again, for a
    second pass.

    Parameters
    ----------
    address
        "sqlite:///FILE" or "duckdb:///FILE"; four slashes for an absolute path.
    query
        One SELECT.
    """

    default_target = None

    def __init__(self, address: str, query: str | None) -> None:
        matched = _ADDRESS.match(address)
        if query is None or not query.strip():
            raise InputError(f"source {address!r} needs a query (query=, --query 'select ... order by ...')")
        self._scheme, self._file = matched.groups() if matched else ("", "")
        if not os.path.isfile(self._file):
            raise InputError.of("source", "name an existing database file, like sqlite:///rows.db", address)
        self.files, self._query = (address,), query
        self.rereadable = re.search(r"\border\s+by\b", query, re.IGNORECASE) is not None
        self._read = False

    def narrow(self, columns: Sequence[str]) -> None:
        """The query says which columns there are; nothing to do."""

    def blocks(self, columns: Sequence[str] | None, skip: int = 0) -> Iterator[Block]:
        """The blocks after the first `skip` rows of the query."""
        if self._read and not self.rereadable:
            raise InputError(f"{self.files[0]} is read once, because its query has no ORDER BY; add one")
        self._read = True
        before = 0
        for batch in self._batches():
            wanted = check_columns(self.files[0], batch.schema.names, columns)
            block = Block(batch.select(wanted), self.files[0], before, shared=shared_names(batch.schema.names))
            before += block.rows
            if before > skip:
                yield block.cut(max(0, skip - block.before), block.rows)

    def share(self, rows: int) -> float | None:
        """Not known: how many rows a query gives is known at its end."""
        return None

    def _batches(self) -> Iterator[Any]:
        try:
            yield from self._sqlite() if self._scheme == "sqlite" else self._duckdb()
        except (InputError, MissingExtra):
            raise
        except Exception as error:
            said = " ".join(str(error).split())[:300]
            raise InputError(f"{self.files[0]}: the query {self._query!r} failed: {said}") from error

    def _sqlite(self) -> Iterator[Any]:
        adbc = need("adbc_driver_sqlite.dbapi", "databases")
        path = os.path.abspath(self._file).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        with adbc.connect(f"file:{path}?mode=ro") as connection, connection.cursor() as cursor:
            cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(_BATCH_ROWS)})
            cursor.execute(self._query)
            with cursor.fetch_record_batch() as reader:
                yield from reader

    def _duckdb(self) -> Iterator[Any]:
        with need("duckdb", "databases").connect(self._file, read_only=True) as connection:
            rows = connection.sql(self._query)
            if rows is None:
                raise ValueError("it gives no rows")
            read = getattr(rows, "to_arrow_reader", None) or rows.fetch_record_batch  # its name until DuckDB 1.4
            yield from read(_BATCH_ROWS)
