"""What the states of the engines of `auto` must hold."""

from __future__ import annotations

from typing import Any

from halfwidth.equation import BatchStore
from halfwidth.learners.auto.arguments import Moving, Notes, Steering
from halfwidth.state.containers import Named, Nested, Optional
from halfwidth.state.fields import Array, Bool, Field, Real, State, Whole
from halfwidth.state.schema import Relation, Schema

MOST_CHUNK_ROWS = 16_384
"""The most rows that the engine for given rows expands at once."""
NOTES = 128
"""Chunks that are noted before they are folded into the moments."""
WEIGHED_CHUNKS = 8
"""Chunks over which a move of the linearisation point is weighed."""
REMEMBERED = 4
"""Sums kept along somebody else's trajectory: after 4 calls, and after the last three powers of 2."""

_STORE = Nested(BatchStore.SCHEMA, doc="the linearised equation in batches")
_VECTOR, _MATRIX = Array(("dim",)), Array(("dim", "dim"))
_SHAPES: dict[str, Field] = dict.fromkeys(("H", "P", "J", "far_curvature"), _MATRIX)
_SHAPES |= {"spread": Array((1,)), "guard": Array((3,)), "probed": Array((4,)), "swept": Array((3,))}
_SHAPES |= {"share": Array((1,)), "trace": Array(("dim",), finite=False)}
_PAGE = Array(("noted", "dim"))
_NOTES: dict[str, Field] = {
    "pages": Named(dict.fromkeys(Notes._fields, _PAGE), doc="what was noted since the last fold"),
    "page_renewals": Array(("noted",), doc="m times the step of each"),
    "renewals": Real(doc="the sum of m eta over the chunks that are folded in"),
    "lags": Array(("noted", "dim"), doc="the trace of the dither, less itself"),
    "trace": Optional(Array(("dim",), doc="the last one")),
    "products": Array(("wide", "wide"), doc="the sum of v v', v = (g, x, x~ - x, 1)"),
    "dither_products": Array(("double", "wide"), doc="the sum of w v', w = (z, z~ - z)"),
    "dither_spread": Array(("double", "double"), doc="the sum of w w'"),
}
_SHARES: dict[str, Field] = {
    "began": Whole(doc="the row at which the session began"),
    "chunks": Whole(doc="chunks that were dithered in it"),
    "products": Array(("triple", "triple"), doc="the sum of v v', v = (g, b, z / |z|)"),
    "dithered": Array((2, 5), doc="sums of z'g, z'b and their products; with the z before, too"),
    "last": Array(("dim",), doc="the last z"),
    "largest": Array(("dim",), doc="the largest diagonal of a chunk's Hessian, per row"),
    "pooled": Array((5,), doc="sums of z'g, z'b and their products over the sessions before"),
    "each": Array((5, "dim"), doc="of all sessions and each coordinate: z_j g_j, z_j b_j and their products"),
    "before": Optional(Array((5,), doc="k, its variance and its tests, by the sessions before")),
}
_WIDE = {
    "wide": lambda s: 3 * _dim(s) + 1,
    "double": lambda s: 2 * _dim(s),
    "triple": lambda s: 3 * _dim(s),
    "told": lambda s: (3 * _dim(s) + 1) ** 2 + _dim(s) + 2,
}


def _dim(state: State) -> int:
    return len(state["origin"] if "origin" in state else state["moving"]["theta"])


def _notes_fit(state: State) -> bool:
    return len(state["notes"]["page_renewals"]) < NOTES and state["notes"]["products"][-1, -1] >= 0.0


def _calls_fit(state: State) -> bool:
    counts = state["before"][:, (3 * _dim(state) + 1) ** 2 - 1]
    remembered = (counts >= 0.0).all() and (4.0 * counts[1] <= state["chunks"]) and counts[0] <= state["chunks"]
    return bool(remembered and state["store"]["n"].sum() == state["m"] * state["chunks"])


def _sample_fits(state: State) -> bool:
    sample = state["sample"]
    expanded = state["store"]["n"].sum()
    return len(sample["weights"]) <= sample["seen"] == expanded and len(state["chunk"]) < MOST_CHUNK_ROWS


def _tuple_of(kind: Any) -> dict[str, Field]:
    return {name: _SHAPES.get(name, _VECTOR) for name in kind._fields}


def _shares_fit(state: State) -> bool:
    """No variance is negative; while chunks are unlike each other theta stays at the root, and no move is weighed."""
    shares = state["shares"]
    if shares is None:
        return True
    before = shares["before"]
    squares = (shares["dithered"][:, 2], shares["dithered"][:, 4], shares["pooled"][2::2], shares["each"][2::2])
    sound = all((part >= 0.0).all() for part in (*squares, shares["largest"], shares["products"].diagonal()))
    known = before is None or before[1] >= 0.0
    return bool(sound and known and state["settled"] and state["weighed"] < 0 and state["phase"] != 1)


_NOTED = Relation("have fewer notes than are folded at once, of a number of chunks", _notes_fit)

GIVEN_SCHEMA = Schema(
    "auto-given",
    2,
    {
        "theta": Array(("dim",), doc="the root of all rows so far"),
        "chunk": Array(("filled", "row_size"), doc="rows of the open chunk"),
        "widths": Array(("dim",), doc="widths of the differences"),
        "prior": Array(("dim",), low=0.0, doc="the prior of each column"),
        "expanded_again": Whole(doc="chunks that were expanded twice"),
        "rough": Bool(doc="whether gradients jump"),
        "straight": Bool(doc="whether gradients are linear in theta, as far as their differences show"),
        "store": _STORE,
        "sample": Named(
            {
                "seen": Whole(doc="rows that it was drawn from"),
                "rows": Array(("kept", "row_size"), doc="the rows"),
                "points": Array(("kept", "dim"), doc="where each was expanded"),
                "weights": Array(("kept",), low=1.0, doc="how many rows each stands for"),
                "numbers": Array(("kept",), low=0.0, doc="the number of each in the stream"),
            },
            doc="a sample of rows",
        ),
    },
    relations=(Relation("have a sample of the rows in its store, and a chunk that is not full", _sample_fits),),
    title="engine of `auto` for given rows",
)
OBSERVED_SCHEMA = Schema(
    "auto-observed",
    5,
    {
        "m": Whole(1, 1 << 40, doc="rows of a call"),
        "origin": Array(("dim",), doc="the theta of the first call"),
        "store": _STORE,
        "notes": Named(_NOTES, doc="moments of gradients and iterates"),
        "chunks": Whole(1, doc="calls"),
        "last": Array(("dim",), doc="the theta of the last call"),
        "trace": Array(("dim",), doc="a moving average of theta, less the origin"),
        "products": Array((2,), doc="of the offsets with themselves and with those of the call before"),
        "total": Array(("dim",), doc="the sum of the offsets"),
        "before": Array(
            (REMEMBERED, "told"), doc="moments, products and total after 4 calls and after the last powers of 2"
        ),
    },
    _WIDE,
    (
        _NOTED,
        Relation("have `m` rows of each of its `chunks`, and remember no more than a quarter of them", _calls_fit),
    ),
    title="engine of `auto` for somebody else's iterates",
)
STEERED_SCHEMA = Schema(
    "auto-steered",
    8,
    {
        **{name: Whole() for name in ("k", "chunks", "clipped")},
        "phase": Whole(0, 2, doc="0 moving, 1 averaging, 2 estimating"),
        **{name: Whole() for name in ("phase_ends", "began", "restarts", "next_refresh", "next_feedback")},
        "turn": Whole(doc="of differences: the next chunk"),
        "whole": Whole(doc="how many chunks in a row make differences"),
        **{name: Real(0.0) for name in ("prior_rows", "hessian_rows", "bent")},
        "usual": Real(0.0, finite=False, doc="the usual decrement of the phase before"),
        "height": Real(0.0, doc="the mean Hessian over what first rows showed of it, at the same time"),
        "highest": Real(0.0, doc="of the first phase: the largest decrement of the last chunks, four at most"),
        **{name: Bool() for name in ("differences", "detect", "settled", "jumps")},
        "shares": Optional(Named(_SHARES, doc="where chunks are unlike each other: what the dither says")),
        "moving": Named(_tuple_of(Moving), doc="what every chunk changes"),
        "steering": Named(_tuple_of(Steering), doc="what stays between refreshes"),
        "hessian_sum": _MATRIX,
        "prior": Array(("dim",), low=0.0),
        "bends": _VECTOR,
        "weighed": Whole(-1, WEIGHED_CHUNKS - 1, doc="chunks since the point moved; -1 if it is not weighed"),
        "truncations": Array(("hits",), "i", low=0, doc="where theta went back"),
        "gain": Named({name: Real(0.0) for name in ("largest", "share", "now")}, doc="the limit of the steps"),
        "dither": Named({"key": Whole(0, 1 << 62), "root": Optional(_MATRIX)}, doc="the signs added to theta"),
        "store": _STORE,
        "notes": Named(_NOTES, doc="moments of gradients and iterates"),
        "excitation": Named(
            {
                "total": Real(0.0, doc="the sum of m eta since estimation began"),
                "marks": Array(("turns", 2), low=0.0, doc="rows, and the sum up to them"),
            },
            doc="how noisy the deployed theta was",
        ),
    },
    _WIDE,
    (
        _NOTED,
        Relation("have clipped no more than its chunks", lambda s: s["clipped"] <= s["chunks"]),
        Relation("have shares with variances of at least 0, only where it is settled and weighs nothing", _shares_fit),
    ),
    title="engine of `auto` that steers",
)
ENGINES = {schema.kind: schema for schema in (GIVEN_SCHEMA, OBSERVED_SCHEMA, STEERED_SCHEMA) if schema.kind}
