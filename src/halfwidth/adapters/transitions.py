"""Blocks of transitions of one or several copies of a chain, and the rows of TD(lambda) that they are.

A block holds, in time order, the observations of E copies, the rewards, and how each step ended. A step is one of

| step         | c | next features                  | trace after it |
|--------------|---|--------------------------------|----------------|
| within       | 1 | of the next observation        | decays         |
| terminated   | 0 | none: nothing follows          | starts afresh  |
| truncated    | 1 | of the episode's last observation | starts afresh |
| not a step   | - | a reset; it is left out        | starts afresh  |

and gives the row (z, phi - gamma c phi', r) of `halfwidth.problems.control.temporal_difference`. A time limit is no
part of the process: what would have followed a truncation has a value, and the end of an episode has none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.compile import kernel

BLOCK_ROWS = 2_048

Features = Callable[[NDArray[Any]], Any]


@kernel
def add_traces(phi: Vector, keeps: Vector, decay: float, trace: Vector, z: Vector) -> None:
    """z_t = decay keeps_(t-1) z_(t-1) + phi_t for every copy (T, E, d); `trace` is decay keeps z of the last step."""
    for t in range(phi.shape[0]):
        for e in range(phi.shape[1]):
            for j in range(phi.shape[2]):
                z[t, e, j] = trace[e, j] + phi[t, e, j]
                trace[e, j] = decay * keeps[t, e] * z[t, e, j]


class Block:
    """Space for T steps of E copies, whose observations have this shape each."""

    def __init__(self, observation: NDArray[Any], copies: int, shape: tuple[int, ...]) -> None:
        self.copies, self.steps, self.shape = copies, max(BLOCK_ROWS // copies, 1), shape
        self.observations = np.empty((self.steps + 1, *observation.shape), dtype=observation.dtype)
        self.rewards = np.zeros((self.steps, copies))
        self.terminated = np.zeros((self.steps, copies), dtype=np.bool_)
        self.truncated = np.zeros((self.steps, copies), dtype=np.bool_)
        self.skipped = np.zeros((self.steps, copies), dtype=np.bool_)
        self.lasts: dict[tuple[int, int], Any] = {}
        self.filled = 0
        self.observations[0] = observation

    def restart(self) -> None:
        """Begin the next block at the last observation of this one."""
        self.observations[0] = self.observations[self.filled]
        for ends in (self.terminated, self.truncated, self.skipped):
            ends[: self.filled] = False
        self.lasts.clear()
        self.filled = 0


class RowMaker:
    """Turns blocks into rows; it remembers the traces."""

    def __init__(self, features: Features, discount: float, trace: float) -> None:
        self.features, self.discount, self.trace = features, discount, trace
        self.dim: int | None = None
        self._traces: Vector | None = None

    def start(self) -> None:
        """Every copy begins an episode: no trace is left."""
        self._traces = None

    def phi(self, observations: NDArray[Any]) -> Vector:
        """Checked features (n, d) of a batch of observations; those that are not finite are the caller's to find."""
        found = np.asarray(self.features(observations), dtype=np.float64)
        n = len(observations)
        if found.ndim != 2 or len(found) != n or found.shape[1] != (self.dim or found.shape[1]) or not found.shape[1]:
            width = "d" if self.dim is None else str(self.dim)
            raise InputError.of(
                "features", f"return an array of shape ({n}, {width}) for {n} observations", found.shape
            )
        self.dim = found.shape[1]
        return found

    def rows(self, block: Block) -> Vector:
        """The rows of the block's steps, in time order, resets left out."""
        T, E = block.filled, block.copies
        phi = self.phi(block.observations[: T + 1].reshape((T + 1) * E, *block.shape)).reshape(T + 1, E, -1)
        following = phi[1:].copy()
        lasts = list(block.lasts)
        if lasts:
            steps, copies = np.array(lasts).T
            following[steps, copies] = self.phi(np.array([block.lasts[at] for at in lasts]))
        ended = block.terminated[:T] | block.truncated[:T] | block.skipped[:T]
        c = np.where(block.terminated[:T], 0.0, 1.0)
        if self._traces is None:
            self._traces = np.zeros((E, phi.shape[2]))
        z = phi[:-1]
        if self.trace > 0.0:
            z = np.empty_like(following)
            now = np.ascontiguousarray(phi[:-1])
            add_traces(now, (~ended).astype(np.float64), self.discount * self.trace, self._traces, z)
        # A value that nothing follows must not be looked at: 0 times nan is nan.
        with np.errstate(invalid="ignore"):  # who takes the rows looks for what is not finite
            after = np.where(c[:, :, None] > 0.0, self.discount * following, 0.0)
            rows = np.concatenate([z, phi[:-1] - after, block.rewards[:T, :, None]], axis=2)
        return np.ascontiguousarray(rows[~block.skipped[:T]])
