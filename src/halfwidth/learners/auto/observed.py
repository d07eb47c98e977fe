"""The engine of `auto` for an optimiser of the user's own: it does not steer, and adds up the same equation.

Every call tells what was deployed, theta, and the sums over its rows of gradient and Hessian there: theta is its own
linearisation point. What expansions at a wandering theta leave out cannot be corrected for, so the first quarter of the
batches is left out of the result.

There is no dither to tell feedback from correlated noise: what least squares sees is corrected for, and never called
detected. Gradients are put back to the origin by the mean Hessian, as in `feedback`: each call's own one would make a
response of the bend of the loss. The response is fitted to all calls after the first four, whose theta may be anywhere.
The bend along the way from a far start looks like one, too: so, where late calls, those since the power of two that is
between an eighth and a quarter of all, say otherwise beyond chance, it is fitted to these alone.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from halfwidth.equation import BatchStore, Sums, restored_store
from halfwidth.errors import Diverged, InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto.absorb import follow
from halfwidth.learners.auto.engine_schemas import OBSERVED_SCHEMA, REMEMBERED
from halfwidth.learners.auto.feedback import Response, regress
from halfwidth.learners.auto.moments import FeedbackNotes, Moments
from halfwidth.learners.auto.slopes import share_of
from halfwidth.learners.auto.stores import most_means
from halfwidth.state.schema import validate

BATCH_CHUNKS, FEWEST_BATCHES = 4, 8
SKIPPED = 4
_LEFT_OUT = 0.25


class Seen(NamedTuple):
    """What a trajectory shows of the feedback."""

    response: Response
    spread: Vector
    """V, of the thetas in which it was looked for."""
    share: float = 0.0
    """k, if the response is -k H."""
    error: float = math.inf


class Observed:
    """The sums of the equation along somebody else's trajectory."""

    def __init__(self, theta: Vector, rows: int) -> None:
        dim = len(theta)
        self.m = rows
        self.origin = theta.copy()
        self.store = BatchStore(dim, BATCH_CHUNKS * rows, most_means(dim), deployed=True)
        self.notes = FeedbackNotes(dim)
        self.chunks = 0
        self.last, self.trace = theta.copy(), np.zeros(dim)
        self.products = np.zeros(2)  # of the offsets: with themselves, and with those of the chunk before
        self.total = np.zeros(dim)  # of the offsets
        self.before = np.zeros(
            (REMEMBERED, len(self._so_far()))
        )  # the sums after 4 calls, and after the last powers of 2

    @property
    def rows_needed(self) -> int:
        return FEWEST_BATCHES * BATCH_CHUNKS * self.m

    @np.errstate(over="ignore", invalid="ignore")  # `seen` refuses what is not finite
    def add(self, theta: Vector, rows: int, gradient: Vector, hessian: Vector) -> None:
        """So many rows came while theta was deployed; gradient and Hessian are sums over them, at theta."""
        if rows != self.m:
            raise InputError.of("gradients", f"come from the same number of rows with every call, {self.m}", rows)
        offset, store = theta - self.origin, self.store
        at = store.open
        store.sums.H[at] += hessian
        store.sums.b[at] += hessian @ offset - gradient
        store.sums.T[at] += rows * offset
        store.sums.U[at] += hessian @ offset
        store.sums.n[at] += rows
        store.note()
        page = self.notes.blank()
        page.gradient[0], page.offset[0], page.dither[0] = gradient, offset, 0.0
        follow(offset, 0.0, self.trace, page.lag[0])
        self.notes.note(np.zeros(1), np.zeros(len(theta)), np.zeros(len(theta)))
        self.products += (offset @ offset, offset @ (self.last - self.origin))
        self.total += offset
        self.last = theta.copy()
        self.chunks += 1
        if self.chunks & (self.chunks - 1) == 0:
            self.before[1:] = np.concatenate([self.before[2:], [self._so_far()]])
        if self.chunks == SKIPPED:
            self.before[0] = self._so_far()

    def _so_far(self) -> Vector:
        return np.concatenate([self.notes.moments().products.ravel(), self.products, self.total])

    def sums(self) -> Sums:
        """The batches that count."""
        batches = self.store.closed()
        first = int(_LEFT_OUT * len(batches.n))
        return Sums(*(array[first:] for array in batches))

    def moments(self, hessian: Vector, late: bool) -> Moments:
        """Sums over calls after the first four, or the late ones; theta is renewed as often as it decorrelates."""
        d, none = len(hessian), Moments.none(len(hessian))
        size = none.products.size
        since = self._so_far() - self.before[int(late)]
        back = np.eye(len(none.products))
        back[:d, d : 2 * d] = -self.m * hessian
        moments = replace(none, products=back @ since[:size].reshape(back.shape) @ back.T)
        total = since[size + 2 :]
        here, lagged = since[size : size + 2] - total @ total / max(moments.chunks, 1)
        share = 1.0 - lagged / here if here > 0.0 else 0.0
        return replace(moments, renewals=moments.chunks * float(np.clip(share, 0.0, 1.0)))

    @np.errstate(over="ignore", invalid="ignore")
    def seen(self, detect: bool) -> Seen:
        """The feedback as it is seen now, or only k where it is not looked for."""
        if not np.isfinite(self._so_far()).all():
            raise Diverged("the thetas and gradients that were told are too large for their squares; scale the columns")
        hessian = self.store.curvature() / self.store.rows
        moments = self.moments(hessian, late=False)
        response = Response(np.zeros_like(hessian), 0.0, 0.0)
        if detect:
            response = regress(moments, hessian, self.m)
        if response.suspected:
            left = regress(self.moments(hessian + response.J, late=True), hessian, self.m)
            if response.rejected or left.suspected:
                sums = self.sums()
                hessian = sums.H.sum(axis=0) / sums.n.sum()
                moments = self.moments(hessian, late=True)
                response = regress(moments, hessian, self.m)
        spread = moments.centred(self.m)[1]
        if moments.chunks < 2 * len(hessian) + 8:
            return Seen(response, spread)
        return Seen(response, spread, *share_of(moments, hessian, self.m))

    def to_state(self) -> dict[str, Any]:
        return {
            **OBSERVED_SCHEMA.head,
            "m": self.m,
            "origin": self.origin.copy(),
            "store": self.store.to_state(),
            "notes": self.notes.to_state(),
            "chunks": self.chunks,
            "last": self.last.copy(),
            "trace": self.trace.copy(),
            "products": self.products.copy(),
            "total": self.total.copy(),
            "before": self.before.copy(),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Observed:
        validate(state, OBSERVED_SCHEMA, "engine")
        engine = cls(np.array(state["origin"], dtype=np.float64), int(state["m"]))
        engine.store = restored_store(engine.store, state["store"], "engine.store")
        engine.notes.restore(state["notes"])
        engine.chunks = int(state["chunks"])
        engine.last[:], engine.trace[:] = state["last"], state["trace"]
        engine.products[:], engine.total[:], engine.before[:] = state["products"], state["total"], state["before"]
        return engine
