"""Simulators in Python and NumPy as problems, so that one set of checks serves all three kinds of worlds.

A problem's sampler gets its random numbers from outside; a simulator has its own, which `reset(seed)` starts afresh. So
the sampler resets it whenever it is handed another generator. The state of the problem is one number that is added to
the seed: a start that is moved is another seed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.own_worlds import ReplicatedWorld
from halfwidth.problems import Problem

Found = tuple[bool | None, str]


def as_problem(world: Any) -> Problem:
    """A `StepWorld` or a `ReplicatedWorld` as a problem in plain Python; of many replicates, the first one."""
    lacks = [name for name in ("dim", "gradient") if not hasattr(world, name)]
    lacks += [] if hasattr(world, "step") or hasattr(world, "draw") else ["step or draw"]
    if lacks:
        raise InputError(
            f"world must be a Problem, or an object with dim, gradient, and step or draw: no {', '.join(lacks)}"
        )
    if not callable(getattr(world, "reset", None)):
        raise InputError("world must have a method reset(seed), so that a seed fixes its rows; check_world calls it")
    step, gradient = _replicated(world) if hasattr(world, "draw") else (world.step, world.gradient)
    start = np.zeros(world.dim) if getattr(world, "theta_0", None) is None else np.asarray(world.theta_0)
    world.reset(0)
    row_size = np.size(step(start + 0.1))
    current: list[np.random.Generator] = []

    def sample(rng: np.random.Generator, theta: Vector, state: Vector, params: Vector, row: Vector) -> None:
        if not current or current[0] is not rng:
            current[:] = [rng]
            world.reset(int(rng.integers(2**31)) + int(state[0]))
        row[:] = step(theta)

    def write_gradient(theta: Vector, row: Vector, params: Vector, grad: Vector) -> None:
        grad[:] = gradient(theta, row)

    loss = getattr(world, "loss", None)
    return Problem(
        world.dim,
        write_gradient,
        sample,
        loss=None if loss is None else lambda theta, row, params: float(loss(theta, row)),
        row_size=row_size,
        theta_0=start,
        state_0=np.zeros(1),
        name=type(world).__name__,
        solve=getattr(world, "solve", None),
    )


def _replicated(world: ReplicatedWorld) -> tuple[Callable[[Vector], Any], Callable[[Vector, Vector], Any]]:
    """The first replicate, while all others deploy the same theta."""

    def step(theta: Vector) -> Vector:
        return np.array(world.draw(np.tile(theta, (world.replicates, 1)), 1)[0, 0], dtype=np.float64)

    def gradient(theta: Vector, row: Vector) -> Vector:
        shape = (world.replicates, 1, row.size)
        found = world.gradient(np.tile(theta, (world.replicates, 1)), np.broadcast_to(row, shape))
        return np.array(found[0, 0], dtype=np.float64)

    return step, gradient


def replicates_apart(world: Any, theta: Vector) -> Found:
    """Whether the rows of a replicate stay the same when all others deploy another theta."""
    if not hasattr(world, "draw"):
        return None, "one replicate"
    if world.replicates < 2:
        return None, "one replicate; give two or more to check that they do not see each other"
    same = np.tile(theta, (world.replicates, 1))
    other = same + 1.0
    other[0] = theta
    drawn = []
    for deployed in (same, other):
        world.reset(0)
        drawn.append([np.asarray(world.draw(deployed, 8)) for _ in range(4)][-1])
    rows = drawn[0]
    if rows.ndim != 3 or rows.shape[:2] != (world.replicates, 8):
        return False, f"draw must return rows of shape ({world.replicates}, 8, k); it returned {rows.shape}"
    gradients = np.asarray(world.gradient(same, rows))
    if gradients.shape != (world.replicates, 8, world.dim):
        return False, f"gradient must return shape ({world.replicates}, 8, {world.dim}); it returned {gradients.shape}"
    if np.array_equal(drawn[0][0], drawn[1][0]):
        return True, "a replicate sees its own theta only"
    return False, "another theta in the other replicates changes the rows of this one: check the axes"
