"""`check_world`: what is wrong with a problem of one's own, before any interval is read off it.

| check            | what it asks                                                                           |
|------------------|----------------------------------------------------------------------------------------|
| shapes           | every function writes all of what it must, nothing else, and only finite numbers       |
| replicates       | of many replicates at once, each sees its own theta only                               |
| determinism      | the same seed gives the same rows                                                      |
| field and loss   | the field is the gradient of the loss, by central differences                          |
| field and derivative | Hessian or Jacobian, against central differences of the field at fixed rows    |
| curvature bound  | no row's field changes faster than the stated bound                                    |
| forgets its start| two chains that start far apart give the same mean field                               |
| truth            | the mean field vanishes at the stated theta*                                           |
| stable steps     | capped SGD stays bounded                                                               |

The last three are in `halfwidth.testing.long_run`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from halfwidth.checks import check_count
from halfwidth.errors import InputError
from halfwidth.kernels.arrays import Vector
from halfwidth.learners.own_worlds import ReplicatedWorld, StepWorld
from halfwidth.problems import Problem
from halfwidth.testing.long_run import BATCHES, Found, draw, fields, memory, params, steps, truth
from halfwidth.testing.own_worlds import as_problem, replicates_apart
from halfwidth.testing.report import Report

_LOOKED_AT = 200
_STEP = 1e-5
_CLOSE = 1e-3


def check_world(
    world: Problem | StepWorld | ReplicatedWorld, *, rows: int = 20_000, seed: int = 0, theta: Vector | None = None
) -> Report:
    """Check a problem of one's own and say what is wrong with it.

    Parameters
    ----------
    world : Problem, StepWorld or ReplicatedWorld
        A problem with a sampler, or what `halfwidth.learn_world` or `halfwidth.learn_replicates` takes; these need
        `reset(seed)` too, and may have `loss(theta, row)`, `theta_0` and ``solve() -> Truth``.
    rows : int, default 20_000
        How many rows each statistical check draws.
    seed : int, default 0
        Of the rows.
    theta : array_like of shape (d,), optional
        Where functions are looked at; when None, the start moved by 0.1 in the first coordinate to 0.2 in the last.

    Returns
    -------
    Report
        One finding for each property; print it, or ask for `ok` and `failures`.

    Raises
    ------
    InputError
        If the problem has no sampler, or a simulator no `reset`.

    Examples
    --------
    >>> import halfwidth as hw
    >>> from halfwidth.testing import check_world
    >>> check_world(hw.problem("swap-game")).ok
    True
    """
    own, world = world, world if isinstance(world, Problem) else as_problem(world)
    if world.sample is None:
        raise InputError("world must have a sampler: Problem(..., sample=...)")
    check_count("rows", rows, at_least=20 * BATCHES)
    beside = np.asarray(world.theta_0, dtype=np.float64) + np.linspace(0.1, 0.2, world.dim)
    at = beside if theta is None else np.array(theta, dtype=np.float64)
    report = Report(f"problem {world.name!r}")
    if not _check_shapes(report, world, at, seed):
        return report
    if own is not world:
        report.add("replicates", *replicates_apart(own, at))
    drawn = draw(world, at, rows, seed)
    report.add("determinism", *_determinism(world, at, drawn, seed))
    some = drawn[-_LOOKED_AT:]
    report.add("field and loss", *_loss(world, at, some))
    report.add("field and derivative", *_derivative(world, at, some))
    report.add("curvature bound", *_curvature(world, at, some))
    report.add("forgets its start", *memory(world, at, rows, seed))
    report.add("truth", *truth(world, rows, seed))
    report.add("stable steps", *steps(world, rows, seed))
    return report


def _check_shapes(report: Report, world: Problem, theta: Vector, seed: int) -> bool:
    """Each function once, with its outputs filled with nan and its inputs compared afterwards."""
    rng, state = np.random.default_rng(seed), np.array(world.state_0, dtype=np.float64)
    row, grad = np.full(world.row_size, np.nan), np.full(world.dim, np.nan)
    calls: list[tuple[str, Callable[..., Any], tuple[Any, ...], Vector | None]] = []
    assert world.sample is not None
    calls.append(("sample", world.sample, (rng, theta, state, params(world), row), row))
    calls.append(("gradient", world.gradient, (theta, row, params(world), grad), grad))
    if world.derivative is not None:
        d = world.dim
        shapes: dict[str, list[tuple[int, ...]]] = {
            "hessian": [(d,)],
            "jacobian": [(d,), (d,)],
            "jacobian_matrix": [(d, d)],
        }
        outputs = [np.full(shape, np.nan) for shape in shapes[world.derivative]]
        derivative = getattr(world, world.derivative)
        calls += [(world.derivative, derivative, (theta, row, params(world), *outputs), out) for out in outputs]
    numbers = [name for name in ("curvature", "loss") if getattr(world, name) is not None]
    calls += [(name, getattr(world, name), (theta, row, params(world)), None) for name in numbers]
    before = theta.copy()
    for name, function, arguments, written in calls:
        fault = _call(name, function, arguments, written)
        if fault is None and not np.array_equal(theta, before):
            fault = f"{name} changed theta; it must only read it"
        if fault is not None:
            report.add("shapes", False, fault)
            return False
    report.add("shapes", True, f"{', '.join(name for name, *_ in calls)}: as they should be")
    return True


def _call(name: str, function: Callable[..., Any], arguments: tuple[Any, ...], written: Vector | None) -> str | None:
    try:
        value = function(*arguments)
    except Exception as error:
        return f"{name} raised {type(error).__name__}: {error}"
    if written is not None and not np.isfinite(written).all():
        place = int(np.flatnonzero(~np.isfinite(written))[0])
        return f"{name} left element {place} of its output unwritten or not finite"
    numbers = {"hessian": 2, "jacobian": 2, "curvature": 1, "loss": 1}.get(name, 0)
    if numbers and (np.size(value) != numbers or not np.isfinite(np.asarray(value, dtype=np.float64)).all()):
        return f"{name} must return {numbers} finite number{'s' * (numbers > 1)}; it returned {value!r}"
    return None


def _determinism(world: Problem, theta: Vector, drawn: Vector, seed: int) -> Found:
    if np.array_equal(draw(world, theta, len(drawn), seed), drawn):
        return True, "the same seed gives the same rows"
    return False, (
        "the same seed gives other rows: draw every random number from the generator that sample is given, and let "
        "reset(seed) start a simulator afresh, its memory included"
    )


def _loss(world: Problem, theta: Vector, rows: Vector) -> Found:
    if world.loss is None:
        return None, "no loss"
    stated = fields(world, theta, rows)
    slopes = np.empty_like(stated)
    for i, row in enumerate(rows):
        for j, e in enumerate(_STEP * np.eye(world.dim)):
            up, down = (world.loss(theta + sign * e, row, params(world)) for sign in (1.0, -1.0))
            slopes[i, j] = (up - down) / (2.0 * _STEP)
    return _agree(slopes, stated, "the gradient is not the derivative of the loss")


def _derivative(world: Problem, theta: Vector, rows: Vector) -> Found:
    if world.derivative is None:
        return None, "no Hessian or Jacobian"
    stated = np.array([stated_derivative(world, theta, row) for row in rows])
    found = np.empty_like(stated)
    for j, e in enumerate(_STEP * np.eye(world.dim)):
        found[:, :, j] = (fields(world, theta + e, rows) - fields(world, theta - e, rows)) / (2.0 * _STEP)
    name = "Hessian" if world.derivative == "hessian" else "Jacobian"
    return _agree(found, stated, f"the {name} is not the derivative of the field at fixed rows")


def stated_derivative(world: Problem, theta: Vector, row: Vector) -> Vector:
    """A row's Hessian or Jacobian at theta, as the world states it (d, d)."""
    left, right, matrix = np.empty(world.dim), np.empty(world.dim), np.zeros((world.dim, world.dim))
    if world.jacobian_matrix is not None:
        world.jacobian_matrix(theta, row, params(world), matrix)
        return matrix
    if world.jacobian is not None:
        w, c = world.jacobian(theta, row, params(world), left, right)
    else:
        assert world.hessian is not None
        w, c = world.hessian(theta, row, params(world), left)
        right = left
    return np.asarray(w * np.outer(left, right) + c * np.eye(world.dim))


def _agree(found: Vector, stated: Vector, fault: str) -> Found:
    """Row by row, up to a few rows at which a piecewise smooth function has a kink."""
    axes = tuple(range(1, found.ndim))
    gap = np.abs(found - stated).max(axis=axes) / np.maximum(np.abs(stated).max(axis=axes), 1.0)
    share = float((gap > _CLOSE).mean())
    if share <= 0.02:
        return True, f"agrees in {100 * (1 - share):.0f}% of {len(gap)} rows"
    worst = int(np.argmax(gap))
    return False, f"{fault} in {100 * share:.0f}% of {len(gap)} rows (relative difference up to {gap[worst]:.2g})"


def _curvature(world: Problem, theta: Vector, rows: Vector) -> Found:
    if world.curvature is None:
        return None, "no curvature bound; capped SGD and warm starts need one"
    bounds = np.array([world.curvature(theta, row, params(world)) for row in rows])
    rng = np.random.default_rng(0)
    for _ in range(5):
        step = rng.standard_normal(world.dim)
        step *= 1e-4 / np.linalg.norm(step)
        change = np.linalg.norm(fields(world, theta + step, rows) - fields(world, theta, rows), axis=1) / 1e-4
        beyond = float((change > 1.01 * bounds + _CLOSE).mean())
        if beyond > 0.02:
            return False, f"the field changes faster than the bound in {100 * beyond:.0f}% of the rows"
    return True, "holds"
