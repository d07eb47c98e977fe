"""The state of a stream: the plan that its first rows fixed, and where it stood.

The formula is there to be compared with the one the user gives again; it is never evaluated.
"""

from __future__ import annotations

from halfwidth.state.containers import Either, ListOf, MapOf, Nested, Optional, Variant
from halfwidth.state.fields import Array, Bool, Field, Real, State, Text, Whole
from halfwidth.state.schema import Relation, Schema
from halfwidth.streams.design.labels import LABELS
from halfwidth.streams.options import BAD_ROWS, UNKNOWN_LEVEL
from halfwidth.streams.sources.files import FORMATS

_LABEL = Either((Text(), Bool(), Real()))
_NAME = Optional(Text())
_OPTIONS: dict[str, Field] = {
    "target": _NAME,
    "features": Optional(ListOf(Text(), least=1)),
    "formula": _NAME,
    "weight": _NAME,
    "offset": _NAME,
    "group": _NAME,
    "time": _NAME,
    "labels": Optional(Text(LABELS)),
    "classes": Optional(ListOf(_LABEL, least=2, most=2)),
    "bad_rows": Optional(Text(BAD_ROWS)),
    "unknown_level": Optional(Text(UNKNOWN_LEVEL)),
    "chunk_rows": Optional(Whole(1)),
    "buffer_rows": Optional(Whole(1)),
}
OPTIONS_SCHEMA = Schema(None, None, _OPTIONS, title="set of options of a stream")

_LEVELS = Schema(
    None,
    None,
    {
        "levels": ListOf(_LABEL, doc="the levels, in order"),
        "codes": Array(("rows",), "i", -1, any_width=True, doc="the level of each row, -1 for none"),
    },
    relations=(
        Relation("have codes within the levels", lambda s: (s["codes"] < len(s["levels"])).all()),
        Relation("have each level once", lambda s: len(set(s["levels"])) == len(s["levels"])),
    ),
    title="column of levels",
)


def _buffer_fits(state: State) -> bool:
    lengths = {len(column["codes"]) if isinstance(column, dict) else len(column) for column in state["buffer"].values()}
    kinds = {name: "number" if not isinstance(c, dict) else "level" for name, c in state["buffer"].items()}
    same = {name: "number" if kind == "number" else "level" for name, kind in state["kinds"].items()} == kinds
    return lengths <= {state["rows"]} and same


_COLUMNS_DESIGN = Schema(
    None,
    None,
    {"kind": Text(("columns",)), "features": ListOf(Text(), least=1, doc="the columns of X")},
    relations=(Relation("name each column once", lambda s: len(set(s["features"])) == len(s["features"])),),
    title="design by columns",
)
_FORMULA_DESIGN = Schema(
    None,
    None,
    {
        "kind": Text(("formula",)),
        "formula": Text(doc="to be compared with the user's, never evaluated"),
        "kinds": MapOf(Text(("number", "level", "text")), doc="what each column of the source is taken for"),
        "features": ListOf(Text(), doc="the columns of X"),
        "rows": Whole(0, 1 << 32, doc="rows of the first buffer"),
        "buffer": MapOf(Either((Array(("rows",), finite=False), Nested(_LEVELS))), doc="its columns"),
    },
    relations=(Relation("have a buffer of `rows` rows of the stated kinds", _buffer_fits),),
    title="design by a formula",
)
_DESIGNS = {"columns": _COLUMNS_DESIGN, "formula": _FORMULA_DESIGN}

_TARGET = Schema(
    None,
    None,
    {
        "seen": ListOf(_LABEL, most=2, doc="the labels so far, class 0 first"),
        "text": Bool(doc="whether labels are text"),
        "bool": Bool(doc="whether they are booleans"),
        "settled": Bool(doc="whether the user gave them"),
    },
    relations=(
        Relation(
            "have labels of one type, each once",
            lambda s: all(isinstance(x, str) == s["text"] for x in s["seen"]) and len(set(s["seen"])) == len(s["seen"]),
        ),
    ),
    title="state of the labels",
)

PLAN_SCHEMA = Schema(
    None,
    None,
    {
        "options": Nested(OPTIONS_SCHEMA, doc="what was asked for"),
        "design": Variant("kind", lambda: _DESIGNS, doc="the columns of X"),
        "target": Text(doc="the column to explain"),
        "labels": Nested(_TARGET, doc="what its labels mean"),
        "group_text": Bool(doc="whether groups are text"),
        "time_kind": Text(("number", "moment"), doc="what the time column holds"),
        "left_out": ListOf(Text(), doc="columns that are not numeric"),
    },
    relations=(
        Relation(
            "have a design by a formula exactly when one was asked for",
            lambda s: s["design"].get("formula") == s["options"]["formula"],
        ),
    ),
    title="plan of a stream",
)

_READER_OPTIONS: dict[str, Field] = {
    "format": Optional(Text(FORMATS)),
    "separator": _NAME,
    "decimal": Optional(Text((".", ","))),
    "thousands": _NAME,
    "encoding": _NAME,
    "quote": _NAME,
    "query": _NAME,
}
_DIALECT: dict[str, Field] = {
    "separator": Text(),
    "quote": Text(),
    "decimal": Text((".", ",")),
    "thousands": _NAME,
    "found": ListOf(Text(("separator", "quote", "decimal", "thousands"))),
}
READER_SCHEMA = Schema(
    None,
    None,
    {
        "options": Nested(
            Schema(None, None, _READER_OPTIONS, title="set of options of a reader"), doc="what was asked for"
        ),
        "dialect": Optional(
            Nested(Schema(None, None, _DIALECT, title="dialect of CSV")), doc="how CSV was found to be written"
        ),
    },
    title="state of a reader",
)

STREAM_SCHEMA = Schema(
    "stream",
    3,
    {
        "plan": Nested(PLAN_SCHEMA, doc="what the first rows fixed"),
        "reader": Nested(READER_SCHEMA, doc="how the source is read"),
        "position": Whole(doc="rows of the source consumed"),
        "skipped": MapOf(Whole(), doc="rows skipped, by reason"),
        "skipped_for": MapOf(Whole(), doc="the same by column"),
        "other_levels": MapOf(Whole(), doc="rows counted to the reference level, by column"),
        "last_time": Real(finite=False, doc="the time of the last row"),
    },
    relations=(
        Relation("have skipped no more rows than it read", lambda s: sum(s["skipped"].values()) <= s["position"]),
    ),
    title="stream",
)
