"""The state of renewable Newton: its fields and what holds between them."""

from __future__ import annotations

from halfwidth.families import FAMILIES, make_loss
from halfwidth.learners.newton.kept_sample import RowSample
from halfwidth.learners.newton.score_batches import ScoreBatches
from halfwidth.state.containers import MapOf, Nested, Optional
from halfwidth.state.fields import Array, Bool, Field, Real, State, Text, Whole
from halfwidth.state.schema import Relation

_MOST_CHUNK_ROWS = 1 << 24

LOSS_FIELDS: dict[str, Field] = {
    "loss": Text(tuple(FAMILIES), doc="the family"),
    "options": MapOf(Real(0.0, 1.0, strict=True), doc="its options: the quantile, or none"),
    "scale": Real(0.0, doc="scale of the residuals"),
}

FIELDS: dict[str, Field] = {
    "dim": Whole(0, doc="columns"),
    **LOSS_FIELDS,
    "bandwidth": Real(0.0, strict=True, doc="smoothing of a quantile, in units of the scale"),
    "intercept": Bool(doc="whether there is an intercept"),
    "ridge": Real(0.0, doc="penalty"),
    "anchor": Optional(Array(("size",)), doc="where a second pass is expanded"),
    "chunk_rows": Whole(1, _MOST_CHUNK_ROWS, doc="rows that are expanded together"),
    "n_seen": Whole(doc="rows seen"),
    "grouped": Optional(Bool(), doc="whether rows come in groups; empty before the first"),
    "last_group": Optional(Array((1,), "biufUS", finite=False, any_width=True), doc="label of the last group"),
    "pending": Array(("filled", "width"), doc="rows put aside: columns, y, weight, offset"),
    "pending_starts": Array(("filled",), "b", doc="whether each of them starts a group"),
    "column_centre": Optional(Array(("dim",)), doc="centre of the columns, once it is known"),
    "column_scale": Optional(Array(("dim",), low=0.0), doc="their scale"),
    "prior": Array(("size",), low=0.0, doc="weights of the prior of the first chunk"),
    "prior_centre": Array(("size",), doc="its centre"),
    "reference": Array(("size",), doc="what scores are relative to"),
    "score": Array(("size",), doc="sum of U + H (theta_j - reference)"),
    "curvature": Array(("size", "size"), doc="A, sum of H"),
    "moments": Array((3,), low=0.0, doc="sums of squared scores, of weights, of misclassified rows"),
    "weight": Real(0.0, doc="sum of the weights of expanded rows"),
    "batches": Nested(ScoreBatches.SCHEMA, doc="score batches"),
    "sample": Optional(Nested(RowSample.SCHEMA), doc="the thinned sample, for smooth losses"),
}


def options_fit_loss(state: State) -> bool:
    """Whether the options are those of the family."""
    loss = make_loss(state["loss"], **state["options"])
    return set(loss.options()) == set(state["options"]) and (state["scale"] > 0.0 or not loss.uses_scale)


def _expanded(state: State) -> float:
    return float(state["batches"]["rows"].sum() + state["batches"]["open_rows"])


def _rows_add_up(state: State) -> bool:
    return bool(_expanded(state) + len(state["pending"]) == state["n_seen"])


def _parts_have_one_size(state: State) -> bool:
    size, sample = len(state["prior"]), state["sample"]
    kept = sample is None or sample["rows"].shape[1] == size + 4
    return size > 0 and len(state["batches"]["open_score"]) == size and kept


def _scaled_once_expanded(state: State) -> bool:
    there = [state[name] is not None for name in ("column_centre", "column_scale")]
    return there == [_expanded(state) > 0] * 2


def _sample_where_smooth(state: State) -> bool:
    return (state["sample"] is not None) == make_loss(state["loss"], **state["options"]).smooth


def _last_group_if_any(state: State) -> bool:
    return (state["last_group"] is not None) == bool(state["grouped"])


RELATIONS = (
    Relation("have the options of its family, and a positive scale where that is used", options_fit_loss),
    Relation("have as many rows in `batches` and `pending` as `n_seen` says", _rows_add_up),
    Relation("put fewer rows aside than fill a chunk", lambda s: len(s["pending"]) < s["chunk_rows"]),
    Relation("have batches and a sample of as many coefficients as it has", _parts_have_one_size),
    Relation("have centres and scales of columns exactly when rows were expanded", _scaled_once_expanded),
    Relation("have a sample exactly where the loss is smooth", _sample_where_smooth),
    Relation("have a last group exactly when it is grouped", _last_group_if_any),
)
