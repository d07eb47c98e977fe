"""How rows reach `auto`, and the engine that adds them up: one for each way in which they can come."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from halfwidth.errors import BadState, InputError
from halfwidth.kernels.arrays import Indices, Vector
from halfwidth.kernels.compile import specialise
from halfwidth.kernels.rows import no_rows
from halfwidth.learners.auto.arguments import FINE, Source
from halfwidth.learners.auto.asking import NO_PROBLEM, Conversation, is_told
from halfwidth.learners.auto.chunks import with_derivative, with_differences
from halfwidth.learners.auto.engine_schemas import ENGINES, GIVEN_SCHEMA, OBSERVED_SCHEMA
from halfwidth.learners.auto.given import GivenRows
from halfwidth.learners.auto.observed import Observed
from halfwidth.learners.auto.row_derivatives import summing
from halfwidth.learners.auto.steered import Steered
from halfwidth.learners.learner_state import State
from halfwidth.learners.own_result import OwnResult
from halfwidth.learners.warm_start import collect_rows
from halfwidth.state.containers import Optional, Variant
from halfwidth.state.fields import Array, Fields, Text, Whole
from halfwidth.state.guard import guard_of
from halfwidth.state.schema import Relation

Declared = Literal["none", "detect"]
Mode = Literal["", "run", "consume", "ask", "observe"]

_BIG_DIM, _WIDE_DIM = 24, 256
_PIECE_NUMBERS, _ROWS_AT_ONCE = 262_144, 65_536
_MODES = {
    "run": "run(...)",
    "consume": "consume(...)",
    "ask": "ask() and tell(request, ...)",
    "observe": "tell(theta=...)",
}


def chunk_rows_for(dim: int) -> int:
    """64 rows, 128 above 24 dimensions, 512 above 256, where the matrices of a chunk would cost more than its rows."""
    if dim <= _BIG_DIM:
        return 64
    return 128 if dim <= _WIDE_DIM else 512


def _chunk_fits(state: State) -> bool:
    rows = state["settings"]["chunk_rows"] or chunk_rows_for(state["problem"]["dim"])
    return bool(len(state["parts"]["chunk"]) == state["kept"]["filled"] < rows)


def _engine_fits(state: State) -> bool:
    mode, engine, seen = state["parts"]["mode"], state["parts"]["engine"], state["n_seen"]
    if engine is None:
        return bool(seen == 0)
    if engine["kind"] == GIVEN_SCHEMA.kind:
        return bool(engine["store"]["n"].sum() + len(engine["chunk"]) == seen)
    if engine["kind"] == OBSERVED_SCHEMA.kind:
        return bool(mode == "observe" and engine["m"] * engine["chunks"] == seen)
    return bool(mode != "observe" and engine["store"]["n"].sum() <= seen)


class Engines(OwnResult):
    """A learner whose rows come in one of several ways, settled by the first of them."""

    gradient_only: bool
    feedback: Declared | None
    chunk_rows: int | None
    kept: ClassVar[Fields] = {"filled": Whole(doc="rows of the open chunk")}
    parts: ClassVar[Fields] = {
        "mode": Text(("", *_MODES), doc="how rows come"),
        "key": Whole(0, 1 << 62, doc="of the dithers"),
        "chunk": Array(("filled", "row_size"), doc="rows of the open chunk"),
        "engine": Optional(Variant("kind", lambda: ENGINES), doc="the sums"),
    }
    relations = (
        Relation("have `kept.filled` rows in `parts.chunk`", _chunk_fits),
        Relation("have the rows it has seen in its engine", _engine_fits),
    )

    def _prepare(self) -> None:
        problem = self.problem
        self.differences = self.gradient_only or problem.derivative is None
        self._m = self.chunk_rows or chunk_rows_for(problem.dim)
        size = max(self._m, _PIECE_NUMBERS // problem.dim)
        self._rows, self._thetas = np.empty((size, problem.row_size)), np.empty((size, problem.dim))
        self._chunk, self._filled = np.zeros((self._m, problem.row_size)), 0
        self._mode: Mode = ""
        self._key = int(self.rng.spawn(1)[0].integers(2**62))
        self._steered: Steered | None = None
        self._free: GivenRows | None = None
        self._observed: Observed | None = None
        self._conversation: Conversation | None = None

    def _enter(self, mode: Mode) -> None:
        """Settle how rows come."""
        self._check_way(mode)
        if not self._mode:
            self._mode = mode
            self._build()

    def _check_way(self, mode: Mode) -> None:
        if mode in ("run", "consume") and is_told(self.problem):
            raise InputError(NO_PROBLEM)
        if self._mode not in ("", mode):
            raise InputError(
                f"this learner was driven by {_MODES[self._mode]} and cannot go on by {_MODES[mode]}: what is "
                "computed differs, and so does whether data may respond to theta. Make a new learner"
            )

    @property
    def _detects(self) -> bool:
        return self.feedback == "detect" or (self.feedback is None and self._mode != "consume")

    def _build(self) -> None:
        """The engine for the mode; arrays of the trajectory become those of the engine."""
        if self._mode == "observe":
            return
        if not self._detects and self._mode != "ask":
            self._free = GivenRows(self.problem, self._theta_0, differences=self.differences)
            return
        differences = self.differences or self._mode == "ask"
        self._steered = engine = Steered(
            self._theta_0, self._m, differences=differences, detect=self._detects, key=self._key
        )
        self._theta, self._total = engine.moving.theta, engine.moving.total
        if self._mode == "ask":
            self._conversation = Conversation(engine)
            return
        loop = (with_differences,) if differences else (with_derivative, *summing(self.problem))
        self._drawing, self._given = (
            specialise(loop[0], source, self.problem.gradient, *loop[1:])
            for source in (self.problem.sample or no_rows, no_rows)
        )

    def _rows_at_once(self, rows: int) -> int:
        alone = self._free is not None and not self.watchers
        return _ROWS_AT_ONCE if alone else super()._rows_at_once(rows)

    def _walk(self, draw: bool, rows: Vector, thetas: Vector, k: Indices) -> None:
        if self._free is not None:
            self._follow_root(self._free, draw, rows, thetas)
            return
        assert self._steered is not None
        at, engine = 0, self._steered
        params = np.asarray(self.problem.params)
        while at < len(rows):
            plan = engine.plan()
            iterates = thetas[at:] if self.watchers else thetas[:0]
            used, self._filled, done, clipped, event = (self._drawing if draw else self._given)(
                self.rng if draw else None,
                Source(rows[at:], iterates, self._state, params, self._chunk),
                plan,
                engine.cursor(self._filled),
                engine.steering,
                engine.moving,
                engine.store.sums,
                engine.notes.blank(),
            )
            at += used
            if done:
                engine.advance(done, clipped, event)
            if done < len(plan.steps) and event == FINE:
                break  # the rows are used up

    def _follow_root(self, engine: GivenRows, draw: bool, rows: Vector, thetas: Vector) -> None:
        at = 0
        while at < len(rows):
            new = rows[at : at + engine.free_rows]
            if draw:
                collect_rows(self.problem, self.rng, self._theta, self._state, new)
            self._total += (len(new) - 1) * (self._theta - self._theta_0)
            if self.watchers:
                thetas[at : at + len(new)] = self._theta
            engine.take(new)
            at += len(new)
            self._theta[:] = engine.theta
            self._total += self._theta - self._theta_0
            if self.watchers:
                thetas[at - 1] = self._theta

    def _add_to_total(self, thetas: Vector) -> None:
        """The engines have done that."""

    def _steered_so_far(self) -> Steered | None:
        """The steered engine, with all that is due after the chunks that were told."""
        if self._conversation is not None and not self._conversation.settled:
            with guard_of(self):
                self._conversation.settle()
        return self._steered

    def _takes_steps(self) -> bool:
        """Whether theta takes steps, whose path a watcher can make an interval of."""
        return self._free is None and (self._steered is None or not self._steered.careful)

    def _facts(self) -> dict[str, Any]:
        engine = self._steered_so_far()
        return {} if engine is None else {"capped_share": engine.clipped / max(engine.chunks, 1)}

    def _parts(self) -> State:
        engine = self._free or self._steered_so_far() or self._observed
        chunk = self._chunk[: self._filled].copy()
        return {"mode": self._mode, "key": self._key, "chunk": chunk, "engine": engine and engine.to_state()}

    def _check_loop(self, state: State) -> None:
        """The loop of a steered engine was built for what its state says it needs."""
        for name in ("detect", "differences") if self._steered is not None else ():
            own, told = getattr(self._steered, name), self._mode == "ask" and name == "differences"
            if state.get(name) != own and not told:
                raise BadState.at(f"state.parts.engine.{name}", f"be {own} for this run", state.get(name))

    def _restore_parts(self, state: State) -> None:
        self._mode, self._key = state["mode"], int(state["key"])
        self._chunk[: self._filled] = state["chunk"]
        theta, total = self._theta, self._total
        if self._mode:
            self._build()
        if self._mode == "observe" and state["engine"] is not None:
            self._observed = Observed.from_state(state["engine"])
        elif state["engine"] is not None:
            engine = self._free or self._steered
            assert engine is not None
            self._check_loop(state["engine"])
            engine.restore(state["engine"])
            self._theta[:], self._total[:] = theta, total
