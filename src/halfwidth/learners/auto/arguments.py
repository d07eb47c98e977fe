"""What the loop over chunks works on, as named tuples: rows, plan, configuration, state.

A *chunk* is m rows that came while one theta was deployed. Its *request* is the list of points at which gradient sums
over those rows are wanted, in this order:

| place      | point                                  | for                                              |
|------------|----------------------------------------|--------------------------------------------------|
| 0          | theta, without its dither              | the step                                         |
| 1          | the linearisation point                | the equation                                     |
| next d     | point +- spacing_j e_j                 | the Hessian, on chunks that make differences     |
| next       | the previous point                     | what is not linear in the last move              |
| next       | point + (previous - point) / 10        | the same where there is no Hessian               |
| next two   | point +- dither                        | what is not linear along the dither (`careful`)  |
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from halfwidth.kernels.arrays import Vector

FINE, EXCURSION, APPEARED, NOT_FINITE = 0, 1, 2, 3
"""What a chunk can end in: nothing, theta far out, a direction that was never seen before, numbers that are none."""


class Source(NamedTuple):
    """Rows that are drawn into, or given; `thetas`, unless it is empty, takes the deployed iterates."""

    rows: Vector
    thetas: Vector
    state: Vector
    params: Vector
    chunk: Vector
    """(m, row_size): the rows of a chunk that is not full yet."""


class Plan(NamedTuple):
    """What is to happen on each of the next chunks, one row a chunk."""

    steps: Vector
    differences: Vector
    """The sign of the differences, 0 where none are made."""
    dithers: Vector
    """(chunks, d): what is added to theta while the chunk is drawn."""


class Cursor(NamedTuple):
    """Where the loop is: rows in the open chunk, the open batch and its length, whether a move is being weighed."""

    filled: int
    batch: int
    length: int
    weighing: bool
    probing: bool
    """Whether gradients are wanted on either side of the point, too, a dither away."""


class Steering(NamedTuple):
    """What stays as it is between refreshes."""

    point: Vector
    previous: Vector
    origin: Vector
    P: Vector
    """The preconditioner of the steps, (d, d); zero in directions that no row has shown."""
    J: Vector
    """The slope of the feedback that the steps allow for, (d, d)."""
    share: Vector
    """(1,): k, where the response is J = -k H on every chunk, and 0 otherwise."""
    Q: Vector
    """What the expansions leave out, per row."""
    spacing: Vector
    usual: Vector
    """The diagonal of a row's mean Hessian, where chunks are unlike each other and the loss may be curved; or zero."""


class Moving(NamedTuple):
    """What every chunk changes."""

    theta: Vector
    theta_0: Vector
    total: Vector
    """The sum over rows of the deployed theta less theta_0."""
    H: Vector
    """The last Hessian sum of a chunk."""
    D: Vector
    """What is not linear in the last move, summed over the chunks since."""
    spread: Vector
    """(1,): the sum over those chunks of the square of that, along the move."""
    guard: Vector
    """The usual size of a chunk's decrement, the last decrement, and how many there were."""
    trace: Vector
    """A moving average of the deployed theta; nan before the first chunk that is noted."""
    far_curvature: Vector
    far_score: Vector
    """What steep chunks say about the next points, in place of the equation (`probes`)."""
    swept: Vector
    """(3,): of chunks with a Hessian, x = theta - l: x'H x, x'(g(l + x) - g(l)), how many (`curved_response`)."""
    probed: Vector
    """(4,): of chunks with a dither, lately: z'H z, z'(g(l + z) - g(l - z)) / 2, |H z|^2 and |R|^2 by P (`probes`)."""


def steering_from(theta_0: Vector, spacing: Vector) -> Steering:
    """Before anything is known."""
    dim = len(theta_0)
    P, J = np.zeros((2, dim, dim))
    Q, usual = np.zeros((2, dim))
    return Steering(theta_0.copy(), theta_0.copy(), theta_0.copy(), P, J, np.zeros(1), Q, spacing, usual)


def moving_from(theta_0: Vector) -> Moving:
    """At theta_0, before the first chunk."""
    dim = len(theta_0)
    H, far_curvature = np.zeros((2, dim, dim))
    total, D, far_score = np.zeros((3, dim))
    return Moving(
        theta_0.copy(),
        theta_0.copy(),
        total,
        H,
        D,
        spread=np.zeros(1),
        guard=np.zeros(3),
        trace=np.full(dim, np.nan),
        far_curvature=far_curvature,
        far_score=far_score,
        swept=np.zeros(3),
        probed=np.zeros(4),
    )


class Notes(NamedTuple):
    """For the regression of the feedback, one row a chunk."""

    gradient: Vector
    """At the linearisation point."""
    offset: Vector
    """The deployed theta less the point."""
    dither: Vector
    lag: Vector
    """The trace of the deployed theta less itself (`moments`)."""
    bend: Vector
    """The chunk's own Hessian times its offset."""
    diagonal: Vector
    """Of that Hessian."""


class Told(NamedTuple):
    """A request and its response: points (p, d), how many of them count, and the gradient sums there."""

    points: Vector
    gradients: Vector


def told_for(dim: int) -> Told:
    """Arrays for the longest request."""
    return Told(np.empty((dim + 4, dim)), np.empty((dim + 4, dim)))
