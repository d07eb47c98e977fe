"""Backends: a study gives the same numbers here and on a Dask cluster of two worker processes."""

import pytest
from distributed import LocalCluster

from halfwidth.errors import HalfwidthError, InputError
from halfwidth.study import Spec, run_study
from halfwidth.study.backends import DaskBackend, LocalBackend, make_backend
from halfwidth.study.store import Store

SPEC = Spec("seed-linear", {"dim": 3}, ("obm", "bootstrap:copies=7"), steps=2_000, replicates=8, seed=5)


def without_times(rows):
    return [{key: value for key, value in row.items() if key != "us_per_row"} for row in rows]


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as running:
        yield running


def test_a_cluster_of_two_processes_gives_the_numbers_of_this_one(cluster, tmp_path):
    backend = make_backend("dask", scheduler=cluster.scheduler_address)
    assert len(cluster.workers) == 2
    rows = run_study(SPEC, backend=backend, store=Store(tmp_path))
    backend.close()
    assert without_times(rows) == without_times(run_study(SPEC, jobs=1))
    kept = run_study(SPEC, backend=LocalBackend(1), store=Store(tmp_path))  # all of it comes from the store
    assert kept == rows


def test_results_come_in_the_order_of_the_tasks_and_work_is_spread(cluster):
    backend = DaskBackend(cluster.scheduler_address)
    assert list(backend.map(pow, [(base, 2) for base in range(20)])) == [base**2 for base in range(20)]
    backend.close()


def test_a_cluster_is_started_where_none_is_named():
    backend = DaskBackend(jobs=1)
    assert list(backend.map(divmod, [(7, 2)])) == [(3, 1)]
    backend.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "slurm"}, "backend must be 'local' or 'dask'"),
        ({"name": "local", "jobs": 0}, "jobs must be -1 or at least 1"),
        ({"name": "local", "scheduler": "tcp://x:1"}, "scheduler must be given with backend 'dask' only"),
    ],
)
def test_bad_backends_are_named(arguments, message):
    with pytest.raises(InputError, match=message):
        make_backend(**arguments)


def test_a_scheduler_that_does_not_answer_is_named():
    with pytest.raises(HalfwidthError, match="no Dask scheduler answers at 'nonsense://'"):
        DaskBackend("nonsense://")
