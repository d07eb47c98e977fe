"""Worlds of one's own that are no `Problem`: a simulator in plain Python, or many replicates of one in NumPy.

Both drive `Auto` by ask and tell. A request holds one theta for 64 rows (128 above 24 dimensions): the world is asked
for these rows while theta is deployed, and for gradients on them at the points that the request names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from halfwidth.checks import check_count, check_real
from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.auto import Auto


class StepWorld(Protocol):
    """A simulator in plain Python.

    Attributes
    ----------
    dim : int
        The number of coefficients d.
    """

    dim: int

    def step(self, theta: Vector) -> ArrayLike:
        """Move on by one row while theta is deployed.

        Parameters
        ----------
        theta : ndarray of shape (d,)
            What is deployed; not to be changed.

        Returns
        -------
        array_like of shape (k,)
            The row.
        """
        ...

    def gradient(self, theta: Vector, row: Vector) -> ArrayLike:
        """Return the stochastic gradient, or the field where there is no loss.

        Parameters
        ----------
        theta : ndarray of shape (d,)
            Where; not only where the row was drawn.
        row : ndarray of shape (k,)
            The row.

        Returns
        -------
        array_like of shape (d,)
            The gradient.
        """
        ...


class ReplicatedWorld(Protocol):
    """Many replicates of a simulator at once, in NumPy; replicate r sees its own theta only.

    Attributes
    ----------
    dim : int
        The number of coefficients d.
    replicates : int
        The number of replicates R.
    """

    dim: int
    replicates: int

    def draw(self, theta: Vector, rows: int) -> Vector:
        """Move every replicate on by so many rows.

        Parameters
        ----------
        theta : ndarray of shape (R, d)
            What is deployed meanwhile.
        rows : int
            How many rows.

        Returns
        -------
        ndarray of shape (R, rows, k)
            The rows.
        """
        ...

    def gradient(self, theta: Vector, rows: Vector) -> Vector:
        """Return the stochastic gradients of all rows.

        Parameters
        ----------
        theta : ndarray of shape (R, d)
            Where.
        rows : ndarray of shape (R, m, k)
            The rows.

        Returns
        -------
        ndarray of shape (R, m, d)
            The gradients.
        """
        ...


def learn_world(
    world: StepWorld, rows: int, *, seed: int = 0, theta_0: ArrayLike | None = None, learner: Auto | None = None
) -> Auto:
    """Learn from a simulator in plain Python, with intervals by `Auto`.

    Parameters
    ----------
    world : StepWorld
        An object with `dim`, `step(theta) -> row` and `gradient(theta, row)`.
    rows : int
        How many rows to draw at least; the last request is finished.
    seed : int, default 0
        Of the learner; the world has its own.
    theta_0 : array_like of shape (d,), optional
        Where to start; the world's own `theta_0` if it has one, zero otherwise.
    learner : Auto, optional
        An ``Auto(dim=d)`` to go on with, which keeps what it learned if the world raises.

    Returns
    -------
    Auto
        The learner; `result` gives the intervals.

    Raises
    ------
    InputError
        If the world lacks a part, or a gradient has the wrong shape or is not finite.

    Examples
    --------
    >>> import halfwidth as hw
    >>> class Market:
    ...     dim = 1
    ...     rng = np.random.default_rng(0)
    ...     def step(self, theta):
    ...         return [3.0 + 0.5 * theta[0] + self.rng.standard_normal()]
    ...     def gradient(self, theta, row):
    ...         return theta - row
    >>> hw.learn_world(Market(), 20_000).result().interval().covers([6.0])
    array([ True])
    """
    check_count("rows", rows)
    _check_parts(world, "dim", "step", "gradient")
    start = getattr(world, "theta_0", None) if theta_0 is None else theta_0
    auto = Auto(dim=world.dim, seed=seed, theta_0=start) if learner is None else learner
    while auto.n_seen < rows:
        request = auto.ask()
        drawn = [check_real("step", world.step(request.theta)) for _ in range(request.rows)]
        sums = [sum(_checked(world.gradient(point, row), world.dim) for row in drawn) for point in request.points]
        auto.tell(request, np.asarray(sums))
    return auto


def _check_parts(world: object, *names: str) -> None:
    lacking = [name for name in names if not hasattr(world, name)]
    if lacking:
        raise InputError(f"world must have {', '.join(names)}; {world!r} lacks {', '.join(lacking)}")


def _checked(gradient: ArrayLike, dim: int) -> Vector:
    array = check_real("gradient", gradient)
    if array.shape != (dim,) or not np.isfinite(array).all():
        raise InputError.of("gradient", f"return {dim} finite numbers", array)
    return array


def learn_replicates(
    world: ReplicatedWorld, rows: int, *, seeds: Sequence[int] | None = None, theta_0: ArrayLike | None = None
) -> list[Auto]:
    """Learn from many replicates of a simulator at once, each with an `Auto` of its own.

    Parameters
    ----------
    world : ReplicatedWorld
        An object with `dim`, `replicates`, `draw(theta, rows)` and `gradient(theta, rows)`.
    rows : int
        How many rows each replicate draws at least.
    seeds : sequence of int, optional
        The seeds of the learners; 0 to R - 1 otherwise. The world has its own.
    theta_0 : array_like of shape (d,), optional
        Where to start; the world's own `theta_0` if it has one, zero otherwise.

    Returns
    -------
    list of Auto
        One learner for each replicate.

    Raises
    ------
    InputError
        If the world lacks a part, or rows or gradients have the wrong shape, or are not finite.

    Examples
    --------
    >>> import halfwidth as hw
    >>> class Markets:
    ...     dim, replicates = 1, 3
    ...     rng = np.random.default_rng(0)
    ...     def draw(self, theta, rows):
    ...         return 3.0 + 0.5 * theta[:, None] + self.rng.standard_normal((3, rows, 1))
    ...     def gradient(self, theta, rows):
    ...         return theta[:, None] - rows
    >>> learners = hw.learn_replicates(Markets(), 20_000)
    >>> round(float(np.mean([learner.result().params[0] for learner in learners])), 1)
    6.0
    """
    check_count("rows", rows)
    _check_parts(world, "dim", "replicates", "draw", "gradient")
    count = check_count("replicates", world.replicates)
    chosen = range(count) if seeds is None else seeds
    if len(chosen) != count:
        raise InputError.of("seeds", f"be {count} numbers, one for each replicate", len(chosen))
    start = getattr(world, "theta_0", None) if theta_0 is None else theta_0
    learners = [Auto(dim=world.dim, seed=seed, theta_0=start) for seed in chosen]
    while learners[0].n_seen < rows:
        requests = [learner.ask() for learner in learners]
        length = requests[0].rows
        drawn = check_real("draw", world.draw(np.stack([request.theta for request in requests]), length))
        if drawn.ndim != 3 or drawn.shape[:2] != (count, length):
            raise InputError.of("draw", f"return rows of shape ({count}, {length}, k)", drawn.shape)
        sums = []
        for at in range(max(len(request.points) for request in requests)):
            # A request may name fewer points than another: its last one stands in, and is not told.
            points = np.stack([request.points[min(at, len(request.points) - 1)] for request in requests])
            gradients = check_real("gradient", world.gradient(points, drawn))
            if gradients.shape != (count, length, world.dim):
                rule = f"return an array of shape ({count}, {length}, {world.dim})"
                raise InputError.of("gradient", rule, gradients.shape)
            sums.append(gradients.sum(axis=1))
        for r, (learner, request) in enumerate(zip(learners, requests, strict=True)):
            learner.tell(request, np.stack([each[r] for each in sums[: len(request.points)]]))
    return learners
