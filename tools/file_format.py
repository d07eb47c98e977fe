"""The page of the file format, written from the schemas: python tools/file_format.py > docs/file-format.md."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from halfwidth import learners
from halfwidth.adapters.evaluation_state import STATE_SCHEMA
from halfwidth.learners.auto.engine_schemas import ENGINES
from halfwidth.learners.base import Learner
from halfwidth.learners.learner_state import learner_schema
from halfwidth.learners.newton.renewable import RenewableNewton
from halfwidth.models.model_state import MODEL_SCHEMA
from halfwidth.models.run_state import FIT_SCHEMA
from halfwidth.models.sgd_engine import SGDEngine
from halfwidth.state.containers import Either, ListOf, MapOf, Named, Nested, Optional, Plain
from halfwidth.state.fields import Field
from halfwidth.state.schema import Schema
from halfwidth.streams.stream_state import STREAM_SCHEMA
from halfwidth.study.store import ARRAYS_SCHEMA, SPAN_SCHEMA
from halfwidth.watchers.kinds import watcher_schemas

HEAD = """# File format

Checkpoints, saved models and stored studies are files of one layout. Nothing in them is pickled and nothing is ever
evaluated as code: a formula or a query in a file is compared with the one that the user gives again.

| bytes | content |
|---|---|
| 12 | the magic `halfwidth-ck` |
| 4 | the version of the layout, 2, little endian |
| 8 | the size of the file |
| 32 | SHA-256 of everything that follows |
| 8 | length of the header |
| header | UTF-8 JSON with `tree`, the state, and `arrays`, the dtype and shape of each array |
| the rest | the arrays, C order, little endian, one after the other |

In the tree an object has one key, which says what it is: `dict`, `tuple`, `array` and `scalar` (the number of an
array), `float` (sixteen hexadecimal digits, for values that JSON lacks). Everything else stands for itself.

A reader checks the size before the checksum, the checksum before the header, and every field of the state against the
tables below, with the relations between fields, before it builds anything. Files of halfwidth 0.1 (layout 1) are
refused with advice; a newer version says so. The tables are written from the schemas that the code validates against
(`python tools/file_format.py > docs/file-format.md`).
"""


def inner(field: Field) -> Iterator[Schema]:
    """The schemas that a field holds."""
    if isinstance(field, Nested):
        yield field.schema
    elif isinstance(field, (Optional, ListOf, MapOf)):
        yield from inner(field.inner)
    elif isinstance(field, Named):
        for part in field.fields.values():
            yield from inner(part)
    elif isinstance(field, Either):
        for choice in field.inner:
            yield from inner(choice)


def named(name: str, field: Field) -> Iterator[str]:
    """The lines of a field, and of the fields within it that have names."""
    rule = field.rule().replace("|", "\\|")
    yield f"| `{name}` | {rule} | {field.doc} |"
    if isinstance(field, Named):
        for part, within in field.fields.items():
            yield from named(f"{name}.{part}", within)


def learner_kinds() -> list[type[Learner]]:
    """Every kind of learner of the library, by name."""
    public = (getattr(learners, name) for name in learners.__all__)
    kinds = [kind for kind in public if isinstance(kind, type) and hasattr(kind, "name")]
    return sorted(kinds, key=lambda kind: str(kind.name))


def learner_sections() -> Iterator[str]:
    """What the states of all learners share, and what each kind has of its own."""
    own = ("settings", "kept", "parts")
    kinds = learner_kinds()
    shared = learner_schema(kinds[0])
    yield "## State of a learner\n\n| field | must | meaning |\n|---|---|---|"
    for name, field in shared.fields.items():
        yield from named(name, Plain(doc=field.doc) if name in own else field)
    for kind in kinds:
        schema = learner_schema(kind)
        yield f"\n### Learner {kind.name!r}, version {kind.version}\n\n| field | must | meaning |\n|---|---|---|"
        for name in own:
            yield from named(name, schema.fields[name])
        yield "\nAnd it must\n\n" + "\n".join(f"- {relation.rule}" for relation in schema.relations)
    yield ""


def section(schema: Schema, done: set[int]) -> Iterator[str]:
    """The table of a schema, and those of the schemas within it that had none yet."""
    if id(schema) in done:
        return
    done.add(id(schema))
    version = "" if schema.version is None else f", version {schema.version}"
    yield f"## {schema.title[0].upper()}{schema.title[1:]}{version}\n"
    yield "| field | must | meaning |\n|---|---|---|"
    for name, field in schema.fields.items():
        for i, line in enumerate(named(name, field)):
            left_out = i == 0 and name in schema.optional
            yield line.replace("` |", "` (may be left out) |", 1) if left_out else line
    if schema.relations:
        yield "\nAnd it must\n\n" + "\n".join(f"- {relation.rule}" for relation in schema.relations)
    yield ""
    for field in schema.fields.values():
        for part in inner(field):
            yield from section(part, done)


def page() -> str:
    """The whole page."""
    done: set[int] = set()
    tops = [
        FIT_SCHEMA,
        MODEL_SCHEMA,
        RenewableNewton.SCHEMA,
        SGDEngine.SCHEMA,
        STREAM_SCHEMA,
        SPAN_SCHEMA,
        ARRAYS_SCHEMA,
        STATE_SCHEMA,
    ]
    watchers = [schema for _, schema in sorted(watcher_schemas().items())]
    lines = [line for schema in (*tops, *watchers) for line in section(schema, done)]
    lines += learner_sections()
    lines += [line for schema in ENGINES.values() for line in section(schema, done)]
    return HEAD + "\n" + "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(page())
