"""Runs of the paper's streams to many millions of rows: averages and Sigma_hat at every power of two.

All cases of a group of replicates run on the same innovations: drawn once, for the largest dimension, they serve the
streams of every dimension, epsilon, loss and step exponent. A group's numbers depend on the seed and its index only,
and are kept in the store as soon as the group is done.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfwidth.kernels.arrays import Vector
from halfwidth.kernels.compile import kernel
from halfwidth.paper.arms import Model
from halfwidth.paper.lanes import LANES, PIECE, Lanes, Rows, Stream, walk
from halfwidth.paper.run_arms import Runner
from halfwidth.problems import Problem, problem
from halfwidth.schedules import BlockPlan, PowerStep

ETA = 0.5
CHUNK = 1_024  # rows drawn at once; every checkpoint is a multiple


class Case(NamedTuple):
    """A stream with its loss, and the exponent of the steps."""

    model: Model
    dim: int
    epsilon: float
    """The strength of the feedback."""
    exponent: float = 0.505
    """a: steps are eta k^-a."""

    @property
    def problem(self) -> Problem:
        """The same stream for every other method, with its truth."""
        return _problem(f"seed-{self.model}", self.dim, self.epsilon)

    @property
    def plan(self) -> BlockPlan:
        return BlockPlan.for_step(self.exponent)

    def stream(self) -> Stream:
        world = self.problem
        ridge = world.settings.get("ridge", 0.0)
        theta_r = np.asarray(world.params)[3 : 3 + self.dim]
        return Stream(self.model == "logistic", self.epsilon, world.settings["rho"], ridge, theta_r, world.theta_star)


@lru_cache(maxsize=64)
def _problem(name: str, dim: int, epsilon: float) -> Problem:
    return problem(name, dim=dim, epsilon=epsilon)


@dataclass(frozen=True)
class Runs:
    """What the replicates of one case come to at the checkpoints."""

    averages: Vector  # (replicates, checkpoints, d)
    covariances: Vector  # (replicates, checkpoints, d, d)

    @classmethod
    def join(cls, parts: Sequence[Runs]) -> Runs:
        return cls(np.concatenate([p.averages for p in parts]), np.concatenate([p.covariances for p in parts]))


class _Run:
    """One case, LANES replicates at once."""

    def __init__(self, case: Case) -> None:
        self.case, self.stream, self.lanes = case, case.stream(), Lanes.start(case.dim)

    def read(self, n: int) -> tuple[Vector, Vector]:
        """theta_bar and Sigma_hat after n rows, replicates first."""
        dim, sums = self.case.dim, self.lanes
        ages = ages_up_to(self.case.plan, n)
        mean = ((sums.total + sums.block_sums[0]) / n).T
        scatter = np.empty((LANES, dim, dim))
        at = np.tril_indices(dim)
        scatter[:, at[0], at[1]] = scatter[:, at[1], at[0]] = sums.scatter.T
        mixed = sums.cross.T[:, :, None] * mean[:, None, :]
        squares = ages.age_squares * mean[:, :, None] * mean[:, None, :]
        covariance = (scatter - mixed - np.swapaxes(mixed, 1, 2) + squares) / ages.ages
        return np.asarray(self.stream.theta_star) + mean, covariance


@dataclass(frozen=True)
class AgeSums:
    """The sums of l and of l^2 over the first rows of a block plan."""

    ages: float
    age_squares: float


def ages_up_to(plan: BlockPlan, n: int) -> AgeSums:
    """The sums over rows 1 to n of the age in the block, and of its square."""
    lengths = [int(length) for length in np.diff(np.append(plan.starts_up_to(n), n + 1))]
    return AgeSums(
        float(sum(length * (length + 1) // 2 for length in lengths)),
        float(sum(length * (length + 1) * (2 * length + 1) // 6 for length in lengths)),
    )


def ages_at(k: NDArray[np.int64], starts: NDArray[np.int64]) -> Vector:
    """The age of the block that each row belongs to."""
    begun = starts[np.searchsorted(starts, k, "right") - 1]
    return (k - begun + 1).astype(np.float64)


@kernel
def fill_normals(rng: np.random.Generator, normals: Vector) -> None:
    """Fill an array with standard normal numbers, in order."""
    flat = normals.reshape(-1)
    for i in range(flat.shape[0]):
        flat[i] = rng.standard_normal()


def run_group(cases: Sequence[Case], checkpoints: Sequence[int], seed: int, group: int) -> list[Runs]:
    """The runs of one group of replicates, case by case."""
    rng = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(group,))))
    normals = np.empty((CHUNK, 2 + max(case.dim for case in cases), LANES))
    uniforms = np.empty((CHUNK, LANES))
    runs = [_Run(case) for case in cases]
    starts = {case.exponent: case.plan.starts_up_to(checkpoints[-1]) for case in cases}
    read: list[list[tuple[Vector, Vector]]] = [[] for _ in cases]
    for first in range(1, checkpoints[-1] + 1, CHUNK):
        k = np.arange(first, first + CHUNK)
        fill_normals(rng, normals)
        rng.random(out=uniforms)
        rows = {a: Rows(normals, uniforms, PowerStep(ETA, a)(k), ages_at(k, begun)) for a, begun in starts.items()}
        for run in runs:
            walk(rows[run.case.exponent], run.stream, run.lanes)
        if k[-1] in checkpoints:
            for run, found in zip(runs, read, strict=True):
                found.append(run.read(int(k[-1])))
    return [
        Runs(np.stack([mean for mean, _ in found], axis=1), np.stack([cov for _, cov in found], axis=1))
        for found in read
    ]


def run_groups(cases: Sequence[Case], checkpoints: Sequence[int], seed: int, groups: int, runner: Runner) -> list[Runs]:
    """The runs of every case over all groups, LANES replicates each."""
    key = _key(cases, checkpoints, seed)
    found: dict[int, list[Runs]] = {}
    for group in range(groups):
        kept = None if runner.store is None else runner.store.load_arrays(key, _name(group))
        if kept is not None:
            found[group] = [Runs(kept[f"averages-{i}"], kept[f"covariances-{i}"]) for i in range(len(cases))]
    missing = [group for group in range(groups) if group not in found]
    tasks = [(cases, checkpoints, seed, group) for group in missing]
    with closing(runner.backend.map(run_group, tasks)) as results:
        for group, runs in zip(missing, results, strict=True):
            found[group] = runs
            if runner.store is not None:
                arrays = {f"averages-{i}": run.averages for i, run in enumerate(runs)}
                arrays |= {f"covariances-{i}": run.covariances for i, run in enumerate(runs)}
                runner.store.save_arrays(key, _name(group), arrays)
            runner.tell(f"{LANES * len(found)} of {LANES * groups} replicates to {checkpoints[-1]:,} rows")
    return [Runs.join([found[group][i] for group in range(groups)]) for i in range(len(cases))]


def _name(group: int) -> str:
    return f"{group:04d}"


def _key(cases: Sequence[Case], checkpoints: Sequence[int], seed: int) -> str:
    """Everything the numbers of a group depend on, as JSON: streams, steps, blocks, and the code of the loop."""
    code: tuple[Any, ...] = (walk.python, fill_normals.python, run_group, _Run, ages_at, ages_up_to)
    content = {
        "sizes": [LANES, PIECE, CHUNK, ETA],
        "streams": [[np.asarray(value).tolist() for value in case.stream()] for case in cases],
        "models": [case.model for case in cases],
        "exponents": [case.exponent for case in cases],
        "blocks": [case.plan.starts_up_to(checkpoints[-1]).tolist() for case in cases],
        "checkpoints": list(checkpoints),
        "seed": seed,
        "code": [hashlib.sha256(inspect.getsource(function).encode()).hexdigest() for function in code],
    }
    return json.dumps(content, indent=1)
