"""Run a study over the cores of this machine; the numbers do not depend on how many there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from halfwidth.study.replicate import Notes, microseconds_per_row, run_replicate
from halfwidth.study.scores import Row, score_rows
from halfwidth.study.spec import Spec

Progress = Callable[[int, int], None]


def run_study(spec: Spec, *, jobs: int = -1, progress: Progress | None = None) -> list[Row]:
    """One row of scores for each method and checkpoint; `progress(done, total)` is told of finished replicates."""
    from joblib import Parallel, delayed

    problem = spec.make_problem()
    timings = {row.name: microseconds_per_row(spec, row) for row in spec.make_methods()}
    batch = max(1, min(20, spec.replicates // 8))
    spans = [range(at, min(at + batch, spec.replicates)) for at in range(0, spec.replicates, batch)]
    batches: Any = Parallel(n_jobs=jobs, return_as="generator")(delayed(_run_span)(spec, span) for span in spans)
    notes: list[dict[str, Notes]] = []
    for done in batches:
        notes += done
        if progress is not None:
            progress(len(notes), spec.replicates)
    return [
        row
        for name in spec.methods
        for row in score_rows(spec, problem, name, [note[name] for note in notes], timings[name])
    ]


def _run_span(spec: Spec, span: range) -> list[dict[str, Notes]]:
    return [run_replicate(spec, index) for index in span]
