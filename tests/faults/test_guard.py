"""A call is taken whole, or the object refuses to go on; two threads in one object raise."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
from functools import partial

import joblib
import numpy as np
import pytest

import halfwidth as hw
from halfwidth.errors import Busy, HalfInterrupted, InputError
from halfwidth.kernels.deferred_signals import DeferredSignals
from halfwidth.models import LinearRegression
from halfwidth.problems import PROBLEMS

RNG = np.random.default_rng(1)
X = RNG.standard_normal((4_000, 3))
Y = X @ [1.0, 2.0, 3.0] + RNG.standard_normal(4_000)


def fitted(rows=slice(0, 2_000)):
    return LinearRegression().partial_fit(X[rows], Y[rows])


class Interrupting:
    """An engine's consume that is interrupted halfway."""

    def __init__(self, consume, error):
        self.consume, self.error = consume, error

    def __call__(self, X, y, *rest):
        self.consume(X[: len(X) // 2], y[: len(y) // 2], *rest)
        raise self.error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError(), ZeroDivisionError()])
def test_an_interrupted_partial_fit_leaves_a_model_that_refuses(error, monkeypatch):
    model = fitted()
    monkeypatch.setattr(model._engine, "consume", Interrupting(model._engine.consume, error))
    with pytest.raises(type(error)):
        model.partial_fit(X[2_000:], Y[2_000:])
    monkeypatch.undo()
    for read in (model.inference, lambda: model.predict(X), lambda: model.coef_, model.to_state, model.report):
        with pytest.raises(HalfInterrupted, match=f"ended in {type(error).__name__}"):
            read()
    with pytest.raises(HalfInterrupted):
        model.partial_fit(X[2_000:], Y[2_000:])
    assert model.fit(X, Y).n_seen_ == 4_000  # fit starts anew


def test_refused_input_leaves_the_model_as_it_was():
    model = fitted()
    before = model.inference().bse
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(X[2_000:] * np.nan, Y[2_000:])
    with pytest.raises(InputError, match="group"):
        model.partial_fit(X[2_000:], Y[2_000:], groups=np.arange(2_000))
    np.testing.assert_array_equal(model.inference().bse, before)
    model.partial_fit(X[2_000:], Y[2_000:])
    np.testing.assert_array_equal(model.inference().bse, fitted(slice(0, 4_000)).inference().bse)


def test_an_interrupted_watcher_refuses():
    watcher = hw.FixedBatchMeans(3).update_many(X)
    take, calls = watcher._batches.take, []

    def interrupted(rows):
        take(rows[:10])
        calls.append(len(rows))
        raise KeyboardInterrupt

    watcher._batches.take = interrupted
    with pytest.raises(KeyboardInterrupt):
        watcher.update_many(X)
    watcher._batches.take = take
    assert calls == [4_000]
    for use in (watcher.result, watcher.to_state, lambda: watcher.update(X[0]), watcher.interval):
        with pytest.raises(HalfInterrupted):
            use()


def test_an_interrupted_learner_refuses():
    class Stops(hw.FixedBatchMeans):
        kind = "stops"

        def take(self, thetas):
            if self.n_seen:
                raise KeyboardInterrupt
            super().take(thetas)

    learner = hw.SGD(hw.problem("iid-linear", dim=2), watchers=[Stops(2)])
    with pytest.raises(KeyboardInterrupt):
        learner.run(100_000)
    for use in (learner.result, learner.to_state, lambda: learner.run(1)):
        with pytest.raises(HalfInterrupted):
            use()


def test_two_threads_in_one_model_raise_and_it_stays_as_it_was():
    model = fitted(slice(0, 1_000))
    inside, leave = threading.Event(), threading.Event()
    consume = model._engine.consume

    def slow(*rows):
        inside.set()
        leave.wait(20)
        consume(*rows)

    model._engine.consume = slow
    thread = threading.Thread(target=lambda: model.partial_fit(X[1_000:], Y[1_000:]))
    thread.start()
    assert inside.wait(20)
    for use in (lambda: model.partial_fit(X, Y), model.inference, lambda: model.fit(X, Y), lambda: pickle.dumps(model)):
        with pytest.raises(Busy, match="another thread"):
            use()
    leave.set()
    thread.join()
    del model._engine.consume
    np.testing.assert_array_equal(model.inference().bse, fitted(slice(0, 4_000)).inference().bse)


def _learn(model):
    return model.partial_fit(X[2_000:], Y[2_000:]).inference().bse


@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
def test_joblib_and_copies_work(backend):
    expected = fitted(slice(0, 4_000)).inference().bse
    models = [fitted(), copy.deepcopy(fitted()), pickle.loads(pickle.dumps(fitted()))]
    for bse in joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(_learn)(model) for model in models):
        np.testing.assert_array_equal(bse, expected)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_of_every_kind_learn_the_same(method):
    with multiprocessing.get_context(method).Pool(1) as pool:
        (bse,) = pool.map(_learn, [fitted()])
    np.testing.assert_array_equal(bse, fitted(slice(0, 4_000)).inference().bse)


def _watch(watcher):
    return watcher.update_many(X).interval().half_width


def _run(learner):
    return learner.run(2_000).result().interval().half_width


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_watchers_and_learners_go_to_workers_of_joblib(backend):
    def made():
        return hw.SGD(hw.problem("iid-linear", dim=2), watchers=[hw.FixedBatchMeans(2)], seed=4)

    tasks = [joblib.delayed(_watch)(hw.FixedBatchMeans(3)), joblib.delayed(_run)(made())]
    found = joblib.Parallel(n_jobs=2, backend=backend)(tasks)
    np.testing.assert_array_equal(found[0], _watch(hw.FixedBatchMeans(3)))
    np.testing.assert_array_equal(found[1], _run(made()))


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_learners_go_to_fresh_processes(method):
    def made():
        return hw.SGD(hw.problem("seed-linear", dim=2), watchers=[hw.FixedBatchMeans(2)], seed=4).run(500)

    with multiprocessing.get_context(method).Pool(1) as pool:
        (found,) = pool.map(_run, [made()])
    np.testing.assert_array_equal(found, _run(made()))


@pytest.mark.parametrize("name", PROBLEMS)
def test_built_in_problems_are_pickled_with_their_truth(name):
    world = hw.problem(name)
    copied = pickle.loads(pickle.dumps(world))
    for field in ("params", "theta_0", "state_0"):
        np.testing.assert_array_equal(getattr(copied, field), getattr(world, field))
    assert copied.sample is world.sample
    if name in ("iid-linear", "adaptive-linear", "q-learning", "pricing", "table-linear", "troubled-linear"):
        np.testing.assert_array_equal(copied.theta_star, world.theta_star)
        np.testing.assert_array_equal(copied.sigma, world.sigma)


STORM = """
import os, signal, sys, threading, time
import halfwidth as hw
world, armed, came = hw.problem("swap-game"), threading.Event(), 0
hw.SGD(world, seed=1).run(1_000)
def storm():
    while True:
        armed.wait()
        time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=storm, daemon=True).start()
while came < 1_000:
    try:
        learner = hw.SGD(world, seed=1)
        armed.set()
        while True:
            learner.run(50)
    except KeyboardInterrupt:
        armed.clear()
        came += 1
        try:
            time.sleep(0.002)  # the last one of the storm may still be on its way
        except KeyboardInterrupt:
            pass
print(came)
"""


def test_interruptions_never_crash_a_kernel():
    """Numba reads what Python returned for a generator without a look at whether a signal's handler raised."""
    usual = partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    done = subprocess.run([sys.executable, "-c", STORM], capture_output=True, text=True, preexec_fn=usual)
    assert (done.returncode, done.stdout.strip()) == (0, "1000"), done.stderr


def test_signals_within_a_deferred_block_come_after_it():
    came = []
    before = signal.signal(signal.SIGUSR1, lambda *_: came.append("handled"))
    try:
        with DeferredSignals():
            os.kill(os.getpid(), signal.SIGUSR1)
            came.append("inside")
        assert came == ["inside", "handled"]
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        with DeferredSignals():
            os.kill(os.getpid(), signal.SIGUSR1)
        assert signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("kind", ["watcher", "learner"])
def test_two_threads_in_a_watcher_or_a_learner_raise(kind):
    inside, leave = threading.Event(), threading.Event()

    class Slow(hw.FixedBatchMeans):
        kind = "slow"

        def take(self, thetas):
            inside.set()
            leave.wait(20)
            super().take(thetas)

    watcher = Slow(2)
    learner = hw.SGD(hw.problem("iid-linear", dim=2), watchers=[watcher])
    first, uses = {
        "watcher": (lambda: watcher.update_many(X[:, :2]), (watcher.interval, lambda: watcher.update(X[0, :2]))),
        "learner": (lambda: learner.run(100), (learner.result, learner.to_state, lambda: learner.run(1))),
    }[kind]
    thread = threading.Thread(target=first)
    thread.start()
    assert inside.wait(20)
    for use in uses:
        with pytest.raises(Busy, match="another thread"):
            use()
    leave.set()
    thread.join()
    assert (watcher if kind == "watcher" else learner).n_seen == (4_000 if kind == "watcher" else 100)


def test_a_fork_within_a_call_gives_a_broken_copy_and_one_between_calls_a_whole_one():
    model = fitted()
    consume = model._engine.consume
    status = []

    def forking(*rows):
        child = os.fork()
        if child == 0:
            try:
                model.inference()
            except HalfInterrupted:
                os._exit(7)
            os._exit(1)
        status.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        consume(*rows)

    model._engine.consume = forking
    model.partial_fit(X[2_000:], Y[2_000:])
    del model._engine.consume
    assert status == [7]
    child = os.fork()
    if child == 0:
        os._exit(0 if model.inference().n == 4_000 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
