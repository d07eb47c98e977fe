"""Watchers that read their covariance off equal batches (`halfwidth.watchers.dyadic_sums`), whenever they are asked.

Time per row and memory are O(dim); nothing of size dim^2 is kept before a full covariance is asked for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.kernels.arrays import Vector
from halfwidth.state.fields import Field
from halfwidth.state.schema import Relation, Schema
from halfwidth.watchers.base import State
from halfwidth.watchers.dyadic_sums import DyadicBatches, batch_fields, batch_relations
from halfwidth.watchers.student_watcher import StudentWatcher, student_schema
from halfwidth.watchers.view import ViewName


def scatter_of(rows: Vector, diagonal: bool) -> Vector:
    """sum s s' over rows s, or its diagonal; exactly symmetric."""
    if diagonal:
        return np.asarray(np.einsum("ij,ij->j", rows, rows))
    product = rows.T @ rows
    return np.asarray(0.5 * (product + product.T))


def dyadic_schema(kind: str, version: int, settings: dict[str, Field], *relations: Relation) -> Schema:
    """The schema of a watcher over `DyadicBatches`."""

    def empty_if_pooled(state: State) -> bool:
        return not state["pooled"] or state["counts"][3] == 0

    pooled = Relation("have no batches of its own when it is pooled", empty_if_pooled)
    return student_schema(kind, version, settings, batch_fields(), (*batch_relations(), pooled, *relations))


class DyadicWatcher(StudentWatcher):
    """A watcher over equal batches of a stream of unknown length."""

    def __init__(self, dim: int, view: ViewName, projection: ArrayLike | None) -> None:
        super().__init__(dim, view, projection)
        self._batches = DyadicBatches(self._view.size)

    def _rows(self) -> int:
        return self._batches.n_seen

    def _take(self, seen: Vector) -> None:
        self._batches.take(seen)

    def _average(self) -> Vector:
        return self._batches.mean()

    def _spread(self) -> Vector:
        return self._batches.spread()

    def _store(self) -> State:
        return self._batches.to_state()

    def _restore(self, state: State) -> None:
        self._batches.restore(state)
