"""Run the arms of an experiment: first the paper's estimates of theta* and Sigma, then the scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from halfwidth.paper.arms import Arm, Scale, short_name
from halfwidth.paper.paper_scores import Estimated, Row, paper_fields
from halfwidth.study.backends import Backend
from halfwidth.study.run import collect
from halfwidth.study.scores import score_rows
from halfwidth.study.spec import Spec
from halfwidth.study.store import Store

_ESTIMATION_SEED = 1_000_003  # added to the seed, so that scores and estimates come from different runs
_AVERAGE = "fixed-batches"  # the cheapest method there is; only its average is read


@dataclass(frozen=True)
class Runner:
    """Where studies run, where they are kept, and who is told."""

    backend: Backend
    store: Store | None
    tell: Callable[[str], None]


def run_arms(arms: Sequence[Arm], size: Scale, runner: Runner) -> list[Row]:
    """All rows of an experiment, each with the labels of its arm."""
    rows: list[Row] = []
    for at, arm in enumerate(arms):
        rows += run_arm(arm, size, runner)
        named = ", ".join(f"{key} {value}" for key, value in arm.labels.items())
        runner.tell(f"{at + 1} of {len(arms)}: {named}")
    return rows


def run_arm(arm: Arm, size: Scale, runner: Runner) -> list[Row]:
    """The rows of one arm: scored against the exact truth and against the paper's estimate of it."""
    estimated = estimate_truth(arm.spec, size, runner)
    spec = replace(arm.spec, reference=tuple(map(tuple, estimated.sigma.tolist())))
    problem = spec.make_problem()
    collected = collect(spec, backend=runner.backend, store=runner.store)
    for reason in collected.refusals.values():
        runner.tell(f"no interval: {reason}")
    rows: list[Row] = []
    for method, notes in collected.notes.items():
        exact = {row["step"]: row for row in score_rows(spec, problem, method, notes, collected.times[method])}
        added = zip(spec.checkpoints, paper_fields(spec, problem, estimated, notes), strict=True)
        label = arm.labels | {"name": short_name(method), "reference_runs": size.reference_runs}
        rows += [label | exact[step] | fields for step, fields in added if step in exact]
    return rows


def estimate_truth(spec: Spec, size: Scale, runner: Runner) -> Estimated:
    """theta* and Sigma as the paper estimates them: from many runs of the same algorithm."""
    runs = replace(
        spec,
        methods=(_AVERAGE,),
        replicates=size.reference_runs,
        direction="all",
        seed=spec.seed + _ESTIMATION_SEED,
        checkpoints=(spec.steps,),
    )
    notes = collect(runs, backend=runner.backend, store=runner.store).notes[_AVERAGE]
    return Estimated.of(np.array([note.estimate[-1] for note in notes]), spec.steps)
