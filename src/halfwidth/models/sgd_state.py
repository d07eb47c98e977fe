"""The state of the engine for many columns: its fields and what holds between them."""

from __future__ import annotations

import numpy as np

from halfwidth.learners import CappedSGD
from halfwidth.learners.newton.column_scaling import Scaling
from halfwidth.learners.newton.kept_sample import RowSample
from halfwidth.learners.newton.renewable_state import LOSS_FIELDS, options_fit_loss
from halfwidth.methods import method
from halfwidth.models.separation import ColumnExtremes
from halfwidth.models.sgd_checks import FIRST_ROWS
from halfwidth.problems.given_rows import EXTRA_COLUMNS
from halfwidth.state.containers import Nested, Optional, Variant
from halfwidth.state.fields import Array, Bool, Field, Real, State, Text, Whole
from halfwidth.state.schema import Relation, Schema
from halfwidth.watchers.kinds import restored, watcher_schemas

_FIELDS: dict[str, Field] = {
    "engine": Text(("sgd",), doc="which engine"),
    "dim": Whole(0, doc="columns"),
    **LOSS_FIELDS,
    "intercept": Bool(doc="whether there is an intercept"),
    "ridge": Real(0.0, doc="penalty"),
    "method": Text(doc="the row of the table of methods that watches"),
    "first": Optional(Array(("filled", "width")), doc="rows before the first step: columns, y, weight, offset"),
    "y_centre": Real(doc="subtracted from the target"),
    "y_scale": Real(0.0, strict=True, doc="what the target is divided by"),
    "unit": Real(0.0, strict=True, doc="the weight that counts as one"),
    "extremes": Nested(ColumnExtremes.SCHEMA, doc="extremes of the columns, for separation"),
    "started": Bool(doc="whether the steps have begun; the fields below are there if so"),
    "column_centre": Array(("dim",), doc="centre of the columns"),
    "column_scale": Array(("dim",), low=0.0, doc="their scale"),
    "ridges": Array(("size",), low=0.0, doc="the penalty on the internal scale"),
    "theta_0": Array(("size",), doc="where the steps began"),
    "theta": Array(("size",), doc="where they are"),
    "total": Array(("size",), doc="sum of the iterates"),
    "n_seen": Whole(doc="steps taken"),
    "capped": Whole(doc="how many of them were capped"),
    "watcher": Variant("kind", watcher_schemas, doc="the watcher of the iterates"),
    "sample": Nested(RowSample.SCHEMA, doc="the thinned sample of rows"),
}
_STARTED = tuple(_FIELDS)[list(_FIELDS).index("started") + 1 :]


def _begun_or_not(state: State) -> bool:
    there = {name in state for name in _STARTED}
    if there != {bool(state["started"])} or (state["started"] and state["first"] is not None):
        return False
    return state["started"] or state["first"] is None or len(state["first"]) < FIRST_ROWS


def _watched_rows(state: State) -> bool:
    if not state["started"]:
        return method(state["method"]).watch is not None
    watcher = restored(state["watcher"])
    return watcher.n_seen == state["n_seen"] >= state["capped"] and watcher.dim == len(state["theta"])


SGD_SCHEMA = Schema(
    None,
    None,
    _FIELDS,
    {"size": lambda s: s["dim"] + s["intercept"], "width": lambda s: s["dim"] + EXTRA_COLUMNS},
    (
        Relation("have the options of its family, and a positive scale where that is used", options_fit_loss),
        Relation("have either first rows or steps", _begun_or_not),
        Relation("have a watcher that saw every step", _watched_rows),
    ),
    title="state of engine 'sgd'",
    optional=_STARTED,
)


def learner_parts(learner: CappedSGD, scaling: Scaling) -> State:
    """What is saved of a learner that has started."""
    return {
        "column_centre": scaling.centre,
        "column_scale": scaling.scale,
        "ridges": np.asarray(learner.problem.params)[: learner.problem.dim],
        "theta_0": learner._theta_0,
        "theta": learner._theta.copy(),
        "total": learner._total.copy(),
        "n_seen": learner.n_seen,
        "capped": learner._capped,
        "watcher": learner.watchers[0].to_state(),
    }
