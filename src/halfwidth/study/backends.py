"""Where the replicates of a study run: the cores of this machine, or a Dask cluster.

A backend maps a function over tasks and yields the results in the order of the tasks, as they come. A replicate's
numbers depend on the specification and its index only, so every backend gives the same.
"""

from __future__ import annotations

import signal
import warnings
from collections.abc import Callable, Generator, Sequence
from importlib import import_module
from typing import Any, Protocol

from halfwidth.errors import HalfwidthError, InputError, MissingExtra
from halfwidth.state.ending import SIGNALS

Results = Generator[Any, None, None]


class Backend(Protocol):
    """Something that runs tasks elsewhere."""

    def map(self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> Results:
        """`function(*task)` for every task, in order; closing it gives up the tasks that are left."""
        ...

    def close(self) -> None:
        """Give back what was taken."""
        ...


class LocalBackend:
    """Processes on this machine; -1 takes all cores, 1 stays in this process."""

    def __init__(self, jobs: int = -1) -> None:
        self.jobs = check_jobs(jobs)

    def map(self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> Results:
        from joblib import Parallel, delayed, effective_n_jobs

        if effective_n_jobs(self.jobs) == 1:
            for task in tasks:
                yield function(*task)
            return
        workers = Parallel(n_jobs=self.jobs, return_as="generator", initializer=_leave_signals_to_the_parent)
        results: Results = workers(delayed(function)(*task) for task in tasks)
        try:
            yield from results
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # joblib tells of tasks that it gives up
                results.close()

    def close(self) -> None:
        """Nothing is held."""


class DaskBackend:
    """The workers of a Dask cluster: that of the scheduler's address, or one started here for the purpose."""

    def __init__(self, scheduler: str | None = None, jobs: int = -1) -> None:
        check_jobs(jobs)
        try:
            distributed: Any = import_module("distributed")
        except ImportError:
            raise MissingExtra.named("dask[distributed]", "dask") from None
        self._cluster = None
        if scheduler is None:
            workers = None if jobs == -1 else jobs
            self._cluster = distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0")
        try:
            self._client = distributed.Client(scheduler if self._cluster is None else self._cluster)
        except (OSError, ValueError) as error:
            raise HalfwidthError(
                f"no Dask scheduler answers at {scheduler!r} ({error}); start one, or leave it out"
            ) from None

    def map(self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> Results:
        futures = [self._client.submit(function, *task, pure=False) for task in tasks]
        try:
            for future in futures:
                yield future.result()
        finally:
            self._client.cancel(futures)

    def close(self) -> None:
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()


def _leave_signals_to_the_parent() -> None:
    """Ctrl-C, or a terminal that closes, reaches every process of it; a worker goes on until its parent ends it."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def check_jobs(jobs: int) -> int:
    """Return a number of worker processes: -1 for all cores, or at least 1."""
    if jobs == 0 or jobs < -1:
        raise InputError.of("jobs", "be -1 or at least 1", jobs)
    return jobs


def make_backend(name: str, *, jobs: int = -1, scheduler: str | None = None) -> Backend:
    """The backend of that name: `local` or `dask`."""
    if name not in ("local", "dask"):
        raise InputError.of("backend", "be 'local' or 'dask'", name)
    if name == "dask":
        return DaskBackend(scheduler, jobs)
    if scheduler is not None:
        raise InputError.of("scheduler", "be given with backend 'dask' only", scheduler)
    return LocalBackend(jobs)
