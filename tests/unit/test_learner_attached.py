"""What is attached to a learner: its own watchers, once each; and functions that fail half way."""

import numpy as np
import pytest

import halfwidth as hw
from halfwidth.errors import HalfInterrupted, InputError
from halfwidth.problems.row_losses import LINEAR

WORLD = hw.problem("iid-linear", dim=2)


def watcher():
    return hw.OverlappingBatchMeans(2)


def test_a_watcher_of_another_learner_is_refused():
    other = watcher()
    hw.Auto(WORLD, watchers=[other], seed=1).run(5_000)
    own = hw.Auto(WORLD, watchers=[watcher()]).run(5_000)
    with pytest.raises(InputError, match="one of this learner's own watchers"):
        own.result(other)
    assert own.result(own.watchers[0]).params.shape == (2,)


@pytest.mark.parametrize("given", [5, None, [1], "ab", hw.OverlappingBatchMeans])
def test_what_is_no_sequence_of_watchers_is_refused(given):
    with pytest.raises(InputError, match="watchers must be a sequence of watchers"):
        hw.Auto(WORLD, watchers=given)


def test_a_watcher_is_given_once():
    one = watcher()
    with pytest.raises(InputError, match="once each"):
        hw.Auto(WORLD, watchers=[one, one])


def test_watchers_may_come_from_a_generator():
    learner = hw.Auto(WORLD, watchers=(one for one in [watcher(), watcher()]))
    assert len(learner.watchers) == 2


@pytest.mark.parametrize("learner", [hw.Auto, hw.SGD])
def test_a_gradient_that_raises_a_refusal_leaves_the_learner_broken(learner):
    """Its rows were learned in part: fed again they counted twice."""
    calls = []

    def gradient(theta, row, params, grad):
        calls.append(1)
        if len(calls) == 1_700:
            raise InputError("rows must be something else")
        grad[:] = (row[:2] @ theta - row[2]) * row[:2]

    rows = np.random.default_rng(0).standard_normal((2_000, 3))
    mine = learner(hw.Problem(2, gradient, row_size=3))
    with pytest.raises(InputError, match="something else"):
        mine.consume(rows)
    with pytest.raises(HalfInterrupted, match="half changed"):
        mine.consume(rows)


def test_a_refusal_of_rows_changes_nothing():
    mine = hw.SGD(hw.Problem(2, LINEAR.gradient, row_size=3, params=[1.0]))
    with pytest.raises(InputError):
        mine.consume(np.full((3, 3), np.nan))
    assert mine.consume(np.ones((3, 3))).n_seen == 3
