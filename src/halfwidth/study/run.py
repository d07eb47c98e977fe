"""Run a study over the cores of this machine; the numbers do not depend on their number.

With a store, replicates that are there are read, and new ones are kept span by span as they finish.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import groupby

from halfwidth.errors import InputError
from halfwidth.study.backends import Backend, LocalBackend
from halfwidth.study.replicate import EndedSpan, Notes, microseconds_per_row, run_replicates
from halfwidth.study.scores import Row, score_rows
from halfwidth.study.spec import Spec
from halfwidth.study.store import Replicates, Store

Progress = Callable[[int, int], None]

_LONGEST_SPAN = 20


@dataclass(frozen=True)
class Collected:
    """The replicates of a study, in order; methods that refused the problem are in `refusals` only."""

    notes: dict[str, list[Notes]]
    times: dict[str, float]
    refusals: dict[str, InputError]


def run_study(
    spec: Spec,
    *,
    jobs: int = -1,
    progress: Progress | None = None,
    store: Store | None = None,
    backend: Backend | None = None,
) -> list[Row]:
    """Run a coverage study: independent replicates of a problem with exact truth, scored method by method.

    Parameters
    ----------
    spec : Spec
        What is run; it determines all numbers.
    jobs : int, default -1
        The number of worker processes; -1 for all cores, 1 to stay in this process.
    progress : callable, optional
        ``progress(done, total)`` is called as replicates finish.
    store : Store, optional
        Where finished replicates are read from and kept.
    backend : Backend, optional
        Where replicates run instead of local processes, such as a Dask cluster.

    Returns
    -------
    list of dict
        One row of scores for each method and checkpoint. `coverage` is the share of intervals that contain the exact
        v'theta*, `coverage_se` its standard error, `width` the mean width, `mis_ratio` the mean interval score over
        that of the interval that knows Sigma, `bias_over_sd` the bias in standard deviations of the estimate,
        `sigma_error` the spectral norm of the error of the covariance. A checkpoint at which no replicate of a method
        had an interval yet gives no row.

    Raises
    ------
    InputError
        If a method refuses the problem, or has no interval at the end of any replicate: its own reason.

    Notes
    -----
    The interval score of an interval [l, u] at level 1 - alpha is u - l + (2/alpha) times the distance of the truth to
    the interval (T. Gneiting and A. E. Raftery, JASA 102, 2007): smaller is better, and both width and misses count.

    Examples
    --------
    >>> import halfwidth as hw
    >>> spec = hw.Spec("iid-linear", {"dim": 2}, methods=("fixed-batches",), steps=2_000, replicates=4)
    >>> rows = hw.run_study(spec, jobs=1)
    >>> rows[-1]["method"], rows[-1]["step"], rows[-1]["replicates"]
    ('fixed-batches', 2000, 4)
    """
    collected = collect(spec, store, LocalBackend(jobs) if backend is None else backend, progress)
    for refusal in collected.refusals.values():
        raise refusal
    problem = spec.make_problem()
    return [
        row
        for name in spec.methods
        for row in score_rows(spec, problem, name, collected.notes[name], collected.times[name])
    ]


def collect(spec: Spec, store: Store | None, backend: Backend, progress: Progress | None = None) -> Collected:
    """All replicates of a study, from the store where they are there."""
    times, refusals = _times(spec, store)
    if not times:
        return Collected({}, {}, refusals)
    able = replace(spec, methods=tuple(times))
    there: Replicates = {name: {} for name in times} if store is None else store.load(able)
    tasks = list(_missing(able, there))
    done = spec.replicates - len({index for _, indices in tasks for index in indices})
    if progress is not None:
        progress(done, spec.replicates)
    work = [(able, methods, indices) for methods, indices in tasks]
    try:
        with closing(backend.map(run_replicates, work)) as spans:
            for (_, indices), span in zip(tasks, spans, strict=True):
                if store is not None:
                    store.save(able, indices[0], span)
                for index, notes in zip(indices, span, strict=True):
                    for name, note in notes.items():
                        there[name][index] = note
                done += len(indices)
                if progress is not None:
                    progress(done, spec.replicates)
    except EndedSpan as ended:
        if store is not None and ended.finished:
            store.save(able, ended.first, ended.finished)
        raise ended.error from None
    ordered = {name: [there[name][index] for index in range(spec.replicates)] for name in times}
    for name, notes in list(ordered.items()):
        if all(note.refused[-1] for note in notes):
            refusals[name] = InputError(f"method {name!r}: {notes[0].reason}")
            del ordered[name], times[name]
    return Collected(ordered, times, refusals)


def _missing(spec: Spec, there: Replicates) -> Iterator[tuple[tuple[str, ...], range]]:
    """Consecutive replicates that lack the same methods, in spans that keep every worker busy."""
    length = max(1, min(_LONGEST_SPAN, spec.replicates // 8))

    def lacks(index: int) -> tuple[int, tuple[str, ...]]:
        return index // length, tuple(name for name in spec.methods if index not in there[name])

    for (_, methods), group in groupby(range(spec.replicates), lacks):
        if methods:
            indices = list(group)
            yield methods, range(indices[0], indices[-1] + 1)


def _times(spec: Spec, store: Store | None) -> tuple[dict[str, float], dict[str, InputError]]:
    """Microseconds per row of every method that takes the problem, and why the others refuse it."""
    known = {} if store is None else store.load_times(spec)
    times: dict[str, float] = {}
    refusals: dict[str, InputError] = {}
    for row in spec.make_methods():
        try:
            times[row.name] = known[row.name] if row.name in known else microseconds_per_row(spec, row)
        except InputError as refusal:
            refusals[row.name] = refusal
    new = {name: time for name, time in times.items() if name not in known and math.isfinite(time)}
    if store is not None and new:
        store.save_times(spec, new)
    return times, refusals
