"""How text is written: separator, decimal mark, thousands mark, encoding, quotes; and the query of a database."""

from __future__ import annotations

import codecs
from dataclasses import asdict, dataclass, fields
from typing import Any, Self, TypedDict

from halfwidth.errors import InputError, UnknownName
from halfwidth.streams.sources.files import FORMATS

SEPARATORS = (",", "\t", ";", "|")
_NAMED = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " ", "none": ""}


class ReaderArguments(TypedDict, total=False):
    """The arguments of `open_stream` and `fit` that say how a source is read; all may be left out.

    Attributes
    ----------
    format : str or None
        "csv", "ndjson", "arrow" or "parquet"; taken from the name or the first bytes otherwise.
    separator : str or None
        What stands between the fields of CSV, one character ("tab" is understood).
    decimal : str or None
        The decimal mark, "." or ",".
    thousands : str or None
        The mark between groups of three digits.
    encoding : str or None
        A codec of Python, like "latin-1"; UTF-8 by default.
    quote : str or None
        The quote, one character; "none" if quotes have no meaning.
    query : str or None
        The SQL query of a database.
    """

    format: str | None
    separator: str | None
    decimal: str | None
    thousands: str | None
    encoding: str | None
    quote: str | None
    query: str | None


@dataclass(frozen=True)
class ReaderOptions:
    """The checked form of `ReaderArguments`; None stands for what the source shows."""

    format: str | None = None
    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    quote: str | None = None
    query: str | None = None

    @classmethod
    def of(cls, arguments: ReaderArguments) -> Self:
        """Check the arguments; an unknown one raises."""
        known = [field.name for field in fields(cls)]
        for name in arguments:
            if name not in known:
                raise UnknownName.among("argument", name, known)
        named: dict[str, Any] = dict(arguments)
        if named.get("thousands") == "." and named.get("decimal") is None:
            named["decimal"] = ","  # a point cannot be both
        for name in ("separator", "quote"):
            if named.get(name) is not None:
                named[name] = _NAMED.get(named[name], named[name])
        return cls(**named)

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in FORMATS:
            raise UnknownName.among("format", self.format, FORMATS)
        if self.separator is not None and not _single(self.separator):
            raise InputError.of("separator", "be one ASCII character", self.separator)
        if self.quote is not None and self.quote != "" and not _single(self.quote):
            raise InputError.of("quote", "be one ASCII character, or 'none'", self.quote)
        if self.decimal is not None and self.decimal not in (".", ","):
            raise InputError.of("decimal", "be '.' or ','", self.decimal)
        if self.thousands is not None and (len(self.thousands) != 1 or self.thousands.isalnum()):
            raise InputError.of("thousands", "be one character that is no letter or digit", self.thousands)
        if self.thousands is not None and self.thousands == self.decimal:
            raise InputError.of("thousands", "differ from the decimal mark", self.thousands)
        if self.separator is not None and self.separator == self.quote:
            raise InputError.of("quote", "differ from the separator", self.quote)
        if self.encoding is not None:
            try:
                codecs.getincrementaldecoder(self.encoding)
            except LookupError:
                raise InputError.of("encoding", "be a codec of Python, like 'latin-1'", self.encoding) from None


@dataclass(frozen=True)
class Dialect:
    """How one CSV file is written; `found` says what was not set by options but seen in the file."""

    separator: str = ","
    quote: str = '"'
    decimal: str = "."
    thousands: str | None = None
    found: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether numbers are written as everywhere in computing."""
        return self.decimal == "." and self.thousands is None

    def describe(self) -> str:
        """What was found, for the result."""
        return ", ".join(f"{name} {getattr(self, name)!r}" for name in self.found)


def _single(mark: str) -> bool:
    return len(mark) == 1 and mark.isascii() and mark not in "\r\n"


def reader_state(options: ReaderOptions, dialect: Dialect | None) -> dict[str, Any]:
    """Plain values: what was asked for, and what was found."""
    found = None if dialect is None else asdict(dialect) | {"found": list(dialect.found)}
    return {"options": asdict(options), "dialect": found}


def resumed_reader(options: ReaderOptions, state: dict[str, Any] | None) -> tuple[ReaderOptions, Dialect | None]:
    """These options with the gaps filled from an earlier run, and what that run found; a contradiction raises."""
    if state is None:
        return options, None
    merged = dict(state["options"])
    if merged["query"] is not None and options.query is None:
        raise InputError(
            f"give the query again: this run began with {merged['query']!r}, and a query in a file is compared with "
            "yours, never run"
        )
    for name, value in asdict(options).items():
        if value is not None and merged[name] is not None and value != merged[name]:
            raise InputError.of(name, f"stay {merged[name]!r} when a run is resumed", value)
        merged[name] = merged[name] if value is None else value
    found = state["dialect"]
    return ReaderOptions(**merged), None if found is None else Dialect(**found | {"found": tuple(found["found"])})
