"""The state of a run of `fit`: the model, the stream, and how many passes are done."""

from __future__ import annotations

from halfwidth.models.model_state import MODEL_SCHEMA, MOST_PASSES
from halfwidth.state.containers import Nested
from halfwidth.state.fields import Bool, State, Whole
from halfwidth.state.schema import Relation, Schema
from halfwidth.streams.stream_state import STREAM_SCHEMA


def _passes_agree(state: State) -> bool:
    return state["model"]["passes"] - state["passes_done"] in (0, 1)


def _ended(state: State) -> bool:
    return not state["finished"] or state["model"]["passes"] == state["passes_done"]


FIT_SCHEMA = Schema(
    "fit",
    3,
    {
        "model": Nested(MODEL_SCHEMA, doc="the model, with the rows it has put aside"),
        "stream": Nested(STREAM_SCHEMA, doc="the stream, and where it stood"),
        "passes_done": Whole(0, MOST_PASSES, doc="complete passes over the source"),
        "finished": Bool(doc="whether the run had come to its end"),
    },
    relations=(
        Relation("have a model that belongs to its pass", _passes_agree),
        Relation("have ended its pass where it is finished", _ended),
    ),
    title="checkpoint of fit",
)
