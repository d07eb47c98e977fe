"""The state of a model, as `save` writes it: its fields and what holds between them."""

from __future__ import annotations

from typing import Any

from halfwidth.models.newton_engine import NewtonEngine
from halfwidth.models.sgd_engine import SGDEngine
from halfwidth.state.containers import ListOf, MapOf, Nested, Optional, Variant
from halfwidth.state.fields import Array, Bool, Field, Real, State, Text, Whole
from halfwidth.state.schema import Relation, Schema
from halfwidth.streams.stream_state import SPECIFICATION_SCHEMA

CLASSES = {
    "LinearRegression": "linear",
    "LogisticRegression": "logistic",
    "MultinomialRegression": "multinomial",
    "PoissonRegressor": "poisson",
    "GammaRegressor": "gamma",
    "NegativeBinomialRegressor": "negative-binomial",
    "QuantileRegressor": "quantile",
    "HuberRegressor": "huber",
}

OPTIONS = ("quantile", "alpha")
"""Parameters that belong to some families only; one that is None is not given."""
OPTIONS_OF = {"quantile": {"quantile"}, "negative-binomial": {"alpha"}}
MOST_PASSES = 10
"""No more than this many passes over a source."""

_PARAMS = Schema(
    None,
    None,
    {
        "fit_intercept": Bool(),
        "ridge": Real(0.0),
        "method": Text(),
        "engine": Text(("auto", "newton", "sgd")),
        "quantile": Real(0.0, 1.0, strict=True),
        "alpha": Optional(Real(0.0, strict=True)),
    },
    title="set of parameters",
    optional=OPTIONS,
)
_FACT_FIELDS: dict[str, Field] = {
    "files": Text(),
    "columns_left_out": Text(),
    "skipped_rows": MapOf(Whole()),
    "skipped_rows_by_column": MapOf(Whole()),
    "rows_of_level_other": MapOf(Whole()),
    "reference_levels": MapOf(Text()),
    "late_levels": MapOf(Text()),
    "csv": Text(),
    "constants_of_the_first_rows": Text(),
    "passes": Text(),
    "spacing": Text(),
}
_FACTS = Schema(None, None, _FACT_FIELDS, title="set of facts of the stream", optional=tuple(_FACT_FIELDS))


def _engines() -> dict[str, Schema]:
    return {NewtonEngine.name: NewtonEngine.SCHEMA, SGDEngine.name: SGDEngine.SCHEMA}


FIELDS: dict[str, Field] = {
    "class": Text(tuple(CLASSES), doc="the class of the model"),
    "params": Nested(_PARAMS, doc="its parameters"),
    "n_features": Whole(0, doc="columns"),
    "feature_names": Optional(ListOf(Text()), doc="their names, where they have any"),
    "passes": Whole(1, MOST_PASSES, doc="which pass over the rows it is in, or has ended"),
    "stream_facts": Nested(_FACTS, doc="what the stream did to its rows, for the summary"),
    "engine": Variant("engine", _engines, doc="what was learned"),
    "specification": Optional(Nested(SPECIFICATION_SCHEMA), doc="from raw columns to X, for predictions"),
    "classes": Array(("labels",), "biufU", any_width=True, doc="the labels, for a classifier"),
}


def core_of(engine: State) -> dict[str, Any]:
    """The part of an engine's state that knows dim, loss, options, intercept and ridge."""
    return engine["learner"] if engine["engine"] == NewtonEngine.name else engine


def _engine_fits_model(state: State) -> bool:
    core, params = core_of(state["engine"]), state["params"]
    family = CLASSES[state["class"]]
    options = {name: params[name] for name in OPTIONS if params.get(name) is not None}
    count = len(state.get("classes", ()))
    if family == "multinomial":
        family, options = ("logistic", {}) if count == 2 else (family, {"classes": count})
    known = {name for name in OPTIONS if name in params}
    if known != OPTIONS_OF.get(family, set()) or core["loss"] != family or core["options"] != options:
        return False
    intercept = params["fit_intercept"] or not core["intercept"]
    return bool(core["dim"] == state["n_features"] and core["ridge"] == params["ridge"] and intercept)


def _named_columns(state: State) -> bool:
    names = state["feature_names"]
    return names is None or len(names) == state["n_features"]


def _specification_fits(state: State) -> bool:
    known = state["specification"]
    if known is None:
        return True
    design = known["design"]
    columns = design["features"] if design["kind"] == "columns" else design["cells"]
    return bool(len(columns) == state["n_features"])


def _classes_of_classifier(state: State) -> bool:
    labels = state["classes"].tolist() if "classes" in state else []
    if state["class"] == "MultinomialRegression":
        return len(set(labels)) == len(labels) >= 2
    return len(set(labels)) == len(labels) == (2 if state["class"] == "LogisticRegression" else 0)


MODEL_SCHEMA = Schema(
    "model",
    4,
    FIELDS,
    relations=(
        Relation("have an engine for its class, parameters and columns", _engine_fits_model),
        Relation("have a name for every column, or none", _named_columns),
        Relation("have a specification of its columns", _specification_fits),
        Relation("have classes, each once, exactly when it is a classifier", _classes_of_classifier),
    ),
    title="model",
    optional=("classes",),
)
