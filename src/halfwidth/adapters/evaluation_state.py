"""What the state of a policy evaluation must hold."""

from __future__ import annotations

from halfwidth.learners.auto import Auto
from halfwidth.learners.learner_state import learner_schema
from halfwidth.state.containers import Nested, Optional
from halfwidth.state.fields import Real, Whole
from halfwidth.state.schema import Schema

STATE_SCHEMA = Schema(
    "policy-evaluation",
    1,
    {
        "discount": Real(0.0, 1.0, doc="discount of the rewards"),
        "trace": Real(0.0, 1.0, doc="lambda of the trace"),
        "transitions": Whole(doc="transitions seen"),
        "episodes": Whole(doc="episodes that ended"),
        "learner": Optional(Nested(learner_schema(Auto)), doc="the learner, once there are features"),
    },
    title="state of a policy evaluation",
)
