"""The state of renewable Newton: its fields and what holds between them."""

from __future__ import annotations

from halfwidth.errors import InputError
from halfwidth.families import FAMILIES, make_loss
from halfwidth.families.dispersed import Dispersed, estimated_dispersion
from halfwidth.learners.newton.chunk_sums import ChunkSums
from halfwidth.state.containers import MapOf, Nested, Optional
from halfwidth.state.fields import Array, Bool, Field, Real, State, Text, Whole
from halfwidth.state.schema import Relation

_MOST_CHUNK_ROWS = 1 << 24

LOSS_FIELDS: dict[str, Field] = {
    "loss": Text(tuple(FAMILIES), doc="the family"),
    "options": MapOf(
        Real(0.0, strict=True),
        doc="its options: the quantile, a given alpha, the number of classes",
    ),
    "scale": Real(0.0, doc="scale of the residuals, or the dispersion"),
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
    "pending": Array(("filled", "width"), doc="rows put aside: columns, y, weight, offset"),
    "pending_ids": Array(("filled",), "u", doc="hashes of their groups"),
    "column_centre": Optional(Array(("dim",)), doc="centre of the columns, once it is known"),
    "column_scale": Optional(Array(("dim",), low=0.0), doc="their scale"),
    "prior": Array(("size",), low=0.0, doc="weights of the prior of the first chunk"),
    "prior_centre": Array(("size",), doc="its centre"),
    "unit": Real(0.0, strict=True, doc="the weight that counts as one"),
    "sums": Optional(Nested(ChunkSums.SCHEMA), doc="what was expanded, if any chunk was"),
}


def equations_of(state: State) -> int:
    """How many equations the family of this state has."""
    return max(int(state["options"].get("classes", 2.0)) - 1, 1)


def options_fit_loss(state: State) -> bool:
    """Whether the options are those of the family."""
    try:
        loss = make_loss(state["loss"], **state["options"])
    except (InputError, TypeError):
        return False
    used = loss.uses_scale or (isinstance(loss, Dispersed) and loss.steers)
    given = state["options"].get("alpha", state["scale"]) == state["scale"]
    return given and set(loss.options()) == set(state["options"]) and (state["scale"] > 0.0 or not used)


def _expanded(state: State) -> float:
    return 0.0 if state["sums"] is None else float(state["sums"]["batches"]["n"].sum())


def _rows_add_up(state: State) -> bool:
    return bool(_expanded(state) + len(state["pending"]) == state["n_seen"])


def _parts_have_one_size(state: State) -> bool:
    size = len(state["prior"])
    return size > 0 and (state["sums"] is None or len(state["sums"]["smoothing"]) == size)


def _scaled_once_expanded(state: State) -> bool:
    there = {state[name] is not None for name in ("column_centre", "column_scale")}
    return len(there) == 1 and (True in there or _expanded(state) == 0)


def _sample_unless_quadratic(state: State) -> bool:
    sums, quadratic = state["sums"], make_loss(state["loss"], **state["options"]).quadratic
    return sums is None or quadratic or sums["sample"] is not None


def _dispersion_if_estimated(state: State) -> bool:
    estimated = estimated_dispersion(make_loss(state["loss"], **state["options"])) is not None
    return state["sums"] is None or ("dispersion" in state["sums"]) == estimated


def _buckets_if_grouped(state: State) -> bool:
    return state["sums"] is None or (state["sums"]["buckets"] is not None) == bool(state["grouped"])


def _targets_allowed(state: State) -> bool:
    """Of the rows put aside and of the kept ones: a class beyond the last, say, would be looked up in memory."""
    loss, targets = make_loss(state["loss"], **state["options"]), [state["pending"][:, state["dim"]]]
    if state["sums"] is not None and state["sums"]["sample"] is not None:
        targets.append(state["sums"]["sample"]["rows"][:, state["dim"] + state["intercept"]])
    most = state["options"].get("classes", float("inf"))
    return all(bool((loss.allows(y) & (y < most)).all()) for y in targets)


RELATIONS = (
    Relation("have the options of its family, and a positive scale where that is used", options_fit_loss),
    Relation("have as many rows in `sums` and `pending` as `n_seen` says", _rows_add_up),
    Relation("put fewer rows aside than fill a chunk", lambda s: len(s["pending"]) < s["chunk_rows"]),
    Relation("have sums of as many coefficients as it has", _parts_have_one_size),
    Relation("have targets that its family takes", _targets_allowed),
    Relation("have centres and scales of columns when rows were expanded", _scaled_once_expanded),
    Relation("have a sample where the loss is not quadratic", _sample_unless_quadratic),
    Relation("have buckets exactly when it is grouped", _buckets_if_grouped),
    Relation("have the equation of a dispersion exactly where one is estimated", _dispersion_if_estimated),
)
