"""The state of a stream: the plan that its first rows fixed, and where it stood.

The formula of a run is there to be compared with the one the user gives again; it is never evaluated.
"""

from __future__ import annotations

from halfwidth.state.containers import Either, ListOf, MapOf, Nested, Optional, Variant
from halfwidth.state.fields import Bool, Field, Real, Text, Whole
from halfwidth.state.schema import Relation, Schema
from halfwidth.streams.design.formulas import MOST_FEATURES
from halfwidth.streams.design.labels import LABELS, MOST_CLASSES
from halfwidth.streams.design.levels import MOST_LEVELS
from halfwidth.streams.fingerprint import ORIGIN_SCHEMA
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

_COLUMNS_DESIGN = Schema(
    None,
    None,
    {"kind": Text(("columns",)), "features": ListOf(Text(), least=1, doc="the columns of X")},
    relations=(Relation("name each column once", lambda s: len(set(s["features"])) == len(s["features"])),),
    title="design by columns",
)
_LEVELS = Schema(
    None,
    None,
    {
        "column": Text(doc="the column of the source"),
        "numeric": Bool(doc="whether its cells are numbers"),
        "names": ListOf(Text(), least=1, most=MOST_LEVELS + 1, doc="the levels, the reference first"),
        "other": Optional(Whole(), doc="the place of the level that stands for all unknown ones"),
        "first": Whole(doc="how many of the levels were among the first rows"),
    },
    relations=(
        Relation("have each level once", lambda s: len(set(s["names"])) == len(s["names"])),
        Relation("have `other` among its levels", lambda s: (s["other"] or 0) < len(s["names"])),
        Relation("have no more first levels than levels", lambda s: s["first"] <= len(s["names"])),
    ),
    title="category",
)
_INPUTS = Schema(
    None,
    None,
    {
        "kinds": MapOf(Text(("number", "moment")), doc="what each column that is read as a number holds"),
        "levels": MapOf(Nested(_LEVELS), doc="the categories, by their text in the formula"),
        "constants": MapOf(MapOf(ListOf(Real())), doc="what transforms took from the first rows, by their text"),
        "rows": Whole(0, 1 << 32, doc="usable rows of the first buffer"),
    },
    title="set of inputs of a formula",
)
_CELL = Schema(
    None,
    None,
    {
        "term": Whole(doc="number of the coded term"),
        "columns": ListOf(Whole(), doc="one column of each of its numeric factors"),
        "levels": ListOf(Whole(), doc="one level of each of its categories"),
    },
    title="column of X",
)
_FORMULA_DESIGN = Schema(
    None,
    None,
    {
        "kind": Text(("formula",)),
        "formula": Text(doc="parsed against the list of transforms, never evaluated"),
        "dot": ListOf(Text(), doc="what `.` stands for"),
        "inputs": Nested(_INPUTS, doc="what it reads"),
        "cells": ListOf(Nested(_CELL), most=MOST_FEATURES, doc="the columns of X"),
    },
    title="design by a formula",
)
DESIGNS = {"columns": _COLUMNS_DESIGN, "formula": _FORMULA_DESIGN}

SPECIFICATION_SCHEMA = Schema(
    None,
    None,
    {
        "design": Variant("kind", lambda: DESIGNS, doc="from raw columns to X"),
        "offset": _NAME,
        "target": _NAME,
    },
    title="specification of a model",
)

_TARGET = Schema(
    None,
    None,
    {
        "seen": ListOf(_LABEL, most=MOST_CLASSES, doc="the labels so far, class 0 first"),
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
        "design": Variant("kind", lambda: DESIGNS, doc="the columns of X"),
        "target": Text(doc="the column to explain"),
        "labels": Nested(_TARGET, doc="what its labels mean"),
        "group_text": Bool(doc="whether groups are text"),
        "time_kind": Text(("number", "moment"), doc="what the time column holds"),
        "left_out": ListOf(Text(), doc="columns that do not enter, with the reason"),
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
    5,
    {
        "plan": Nested(PLAN_SCHEMA, doc="what the first rows fixed"),
        "reader": Nested(READER_SCHEMA, doc="how the source is read"),
        "origin": Nested(ORIGIN_SCHEMA, doc="what the source is known by"),
        "position": Whole(doc="rows of the source consumed"),
        "skipped": MapOf(Whole(), doc="rows skipped, by reason"),
        "skipped_for": MapOf(Whole(), doc="the same by column"),
        "other_levels": MapOf(Whole(), doc="rows counted as the level `other`, by column"),
        "last_time": Real(finite=False, doc="the time of the last row"),
        "last_group": Optional(Text(), doc="its group as text, where there are both"),
    },
    relations=(
        Relation("have skipped no more rows than it read", lambda s: sum(s["skipped"].values()) <= s["position"]),
    ),
    title="stream",
)
