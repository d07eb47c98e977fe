"""The state of a learner: everything its next row depends on, besides the functions of its problem.

| field        | content                                                                                     |
|--------------|---------------------------------------------------------------------------------------------|
| `kind`       | the learner's name                                                                          |
| `problem`    | name, dimension, size of a row and parameters of the problem, for comparison                |
| `step`, `warm_start`, `burn_in`, `settings` | the arguments of the constructor                             |
| `n_seen`, `theta_0`, `theta`, `total`, `chain` | the trajectory, and the state of the problem's chain      |
| `buffer`     | rows collected for a warm start that is not finished                                        |
| `generators` | the random generators                                                                       |
| `kept`       | arrays and integers of this kind of learner (`Trajectory.kept`)                             |
| `parts`      | states of larger parts, such as a `BatchStore`                                              |
| `watchers`   | the states of the watchers                                                                  |

Functions are not part of a state: the caller brings the problem. A state is validated before anything is built, and
arrays must have the shapes and types that a fresh learner of the same configuration has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from halfwidth.errors import BadState, InputError
from halfwidth.learners.schedule_state import SCHEDULES, STEP_FIELD, schedule_from_state, schedule_to_state
from halfwidth.problems import Problem
from halfwidth.state.compare import first_difference
from halfwidth.state.containers import ListOf, Named, Nested, Row, Variant
from halfwidth.state.fields import Array, Text, Whole
from halfwidth.state.schema import Relation, Schema, build, validate
from halfwidth.watchers.kinds import restored, watcher_schemas

if TYPE_CHECKING:
    from halfwidth.learners.base import Learner

    SomeLearner = TypeVar("SomeLearner", bound=Learner)

State = dict[str, Any]

_PROBLEM = Schema(
    None,
    None,
    {
        "name": Text(doc="name of the problem"),
        "dim": Whole(1, doc="dimension of theta"),
        "row_size": Whole(1, doc="numbers in a row"),
        "params": Array(("params",), doc="parameters of the problem's functions"),
    },
    title="description of a problem",
)
_ARRAYS = ("theta_0", "theta", "total")
LONGEST_WARM_START = 1 << 20
"""A buffer for so many rows is made before the first."""


def _buffer_fits(state: State) -> bool:
    seen, wanted = state["n_seen"], state["warm_start"]
    return len(state["buffer"]) == (seen if seen < wanted else 0)


def _starts_empty(state: State) -> bool:
    return state["n_seen"] > state["warm_start"] + state["burn_in"] or not state["total"].any()


def batches_hold_iterates(state: State, waiting: int = 0) -> bool:
    """Whether the batches of a learner are over its iterates, but for so many that wait outside."""
    iterates = max(state["n_seen"] - state["warm_start"] - state["burn_in"], 0)
    return bool(state["parts"]["batches"]["n"].sum() + waiting == iterates)


def learner_schema(learner: type[Learner]) -> Schema:
    """The schema of the states of one kind of learner."""
    generator = Row((Text(("PCG64",)), Array((6,), "u")))
    return Schema(
        learner.name,
        learner.version,
        {
            "problem": Nested(_PROBLEM, doc="the problem of the run"),
            "step": STEP_FIELD,
            "warm_start": Whole(0, LONGEST_WARM_START, doc="rows that only find a start"),
            "burn_in": Whole(doc="iterates that are discarded"),
            "settings": Named(learner.settings, doc="arguments of this kind of learner"),
            "n_seen": Whole(doc="rows seen"),
            "theta_0": Array(("d",), doc="start of the trajectory"),
            "theta": Array(("d",), doc="current iterate"),
            "total": Array(("d",), doc="sum of theta - theta_0 over the iterates that count"),
            "chain": Array(("chain",), doc="state of the problem's chain"),
            "buffer": Array(("collected", "row_size"), doc="rows of an unfinished warm start"),
            "generators": Named(dict.fromkeys(learner.generators, generator), doc="random generators: kind and state"),
            "kept": Named(learner.kept, doc="arrays and integers of this kind of learner"),
            "parts": Named(learner.parts, doc="states of larger parts"),
            "watchers": ListOf(Variant("kind", watcher_schemas), doc="states of the watchers"),
        },
        {"row_size": lambda s: s["problem"]["row_size"], "d": lambda s: s["problem"]["dim"]},
        (
            Relation("have in its `buffer` the rows of an unfinished warm start", _buffer_fits),
            Relation("have a zero `total` before the first iterate that counts", _starts_empty),
            *learner.relations,
        ),
        title=f"state of the learner {learner.name!r}",
    )


def learner_state(learner: Learner) -> State:
    """The state of a learner, as plain numbers and arrays."""
    problem = learner.problem
    collecting = learner.n_seen < learner.warm_start
    return {
        "kind": type(learner).name,
        "version": learner.version,
        "problem": _described(problem),
        "step": schedule_to_state(learner.step, "step"),
        "warm_start": learner.warm_start,
        "burn_in": learner.burn_in,
        "settings": {name: _plain(name, getattr(learner, name)) for name in learner.settings},
        "n_seen": learner.n_seen,
        **{name: getattr(learner, f"_{name}").copy() for name in _ARRAYS},
        "chain": learner._state.copy(),
        "buffer": learner._buffer[: learner.n_seen if collecting else 0].copy(),
        "generators": {name: _generator_state(getattr(learner, name)) for name in learner.generators},
        "kept": {name: _copied(getattr(learner, f"_{name}")) for name in learner.kept},
        "parts": learner._parts(),
        "watchers": [watcher.to_state() for watcher in learner.watchers],
    }


def restored_learner(cls: type[SomeLearner], state: State, problem: Problem) -> SomeLearner:
    """The learner that `learner_state` described, on the problem of that run."""
    validate(state, learner_schema(cls))
    found, given = state["problem"], _described(problem)
    for name, value in given.items():
        if not np.array_equal(found[name], value):
            raise BadState.at(f"state.problem.{name}", f"be that of the problem given, {value!r}", found[name])
    learner = build(cls.name, lambda: _rebuilt(cls, state, problem))
    differs = first_difference(learner_state(learner), state)
    if differs is not None:
        raise BadState(f"{differs} must be what such a learner gives back; the one that was built has another value")
    return learner


def _rebuilt(cls: type[SomeLearner], state: State, problem: Problem) -> SomeLearner:
    options = {
        "step": schedule_from_state(state["step"]),
        "warm_start": int(state["warm_start"]),
        "burn_in": int(state["burn_in"]),
    }
    learner = cls(
        problem,
        watchers=[restored(watcher) for watcher in state["watchers"]],
        theta_0=state["theta_0"],
        **{name: options[name] for name in cls.options},
        **{name: _setting(value) for name, value in state["settings"].items()},
    )
    learner.n_seen = int(state["n_seen"])
    learner._theta[:], learner._total[:] = state["theta"], state["total"]
    _fill("chain", learner._state, state["chain"])
    if learner.n_seen < learner.warm_start:
        _fill("buffer", learner._buffer[: learner.n_seen], state["buffer"])
    else:
        learner._buffer = learner._buffer[:0].copy()
    for name in cls.generators:
        _set_generator(getattr(learner, name), state["generators"][name])
    for name, value in state["kept"].items():
        own = getattr(learner, f"_{name}")
        if isinstance(own, np.ndarray):
            _fill(f"kept.{name}", own, value)
        else:
            setattr(learner, f"_{name}", int(value))
    learner._restore_parts(state["parts"])
    return learner


def _described(problem: Problem) -> State:
    params = np.array(problem.params)
    return {"name": problem.name, "dim": problem.dim, "row_size": problem.row_size, "params": params}


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else int(value)


def _fill(name: str, own: Any, value: Any) -> None:
    """Take over an array of a state, which must be as a fresh learner has it."""
    if not isinstance(value, np.ndarray) or value.shape != own.shape or value.dtype != own.dtype:
        raise BadState.at(f"state.{name}", f"be an array of {own.dtype} of shape {own.shape}", value)
    if not np.isfinite(value).all():
        raise BadState(f"state.{name} must be finite")
    own[:] = value


def _plain(name: str, value: Any) -> Any:
    if type(value) in SCHEDULES.values() or callable(value):
        return schedule_to_state(value, name)
    return list(value) if isinstance(value, tuple) else value


def _setting(value: Any) -> Any:
    if isinstance(value, dict):
        return schedule_from_state(value)
    return tuple(value) if isinstance(value, list) else value


def _generator_state(rng: np.random.Generator) -> list[Any]:
    """A PCG64 generator, NumPy's default, as its name and six 64-bit words."""
    found = rng.bit_generator.state
    kind = found["bit_generator"]
    if kind != "PCG64":
        raise InputError.of("seed", "be an integer, a SeedSequence or a PCG64 generator to be kept in a state", kind)
    words = [half for value in (found["state"]["state"], found["state"]["inc"]) for half in divmod(value, 2**64)]
    return [kind, np.array([*words, found["has_uint32"], found["uinteger"]], dtype=np.uint64)]


def _set_generator(rng: np.random.Generator, state: list[Any]) -> None:
    kind, words = state[0], [int(word) for word in state[1]]
    rng.bit_generator.state = {
        "bit_generator": kind,
        "state": {"state": words[0] * 2**64 + words[1], "inc": words[2] * 2**64 + words[3]},
        "has_uint32": words[4],
        "uinteger": words[5],
    }
