"""What is handed over is numbers: no mask, imaginary part or date gets lost, and a refusal costs nothing."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import halfwidth as hw
from halfwidth.checks import check_real, check_seed
from halfwidth.errors import InputError
from halfwidth.models import LinearRegression

ROWS = np.random.default_rng(0).standard_normal((400, 3))
MASKED = np.ma.masked_greater(ROWS, 2.0)
NO_NUMBERS = {
    "masked": (MASKED, "masked"),
    "complex": (ROWS + 1j, "complex128"),
    "ragged": ([[1.0, 2.0, 3.0], [4.0]], "inhomogeneous"),
    "text": ("abc", "'abc'"),
    "generator": ((row for row in ROWS), "generator"),
    "dates": (np.zeros((4, 3), dtype="M8[D]"), "datetime64"),
    "beyond float64": ([[10**400, 0, 0]], "too large"),
}


def _linear() -> hw.Problem:
    return hw.problem("seed-linear", dim=2, epsilon=0.5)


@pytest.mark.parametrize("kind", NO_NUMBERS)
def test_rows_that_are_no_numbers_are_refused_by_name_and_leave_the_learner_as_it_was(kind):
    bad, word = NO_NUMBERS[kind]
    learner = hw.Auto(_linear(), seed=1).consume(ROWS)
    before = learner.result().params
    with pytest.raises(InputError, match=f"rows must .*{word}"):
        learner.consume(bad)
    assert learner.n_seen == len(ROWS)
    np.testing.assert_array_equal(learner.result().params, before)


def test_numbers_in_other_clothes_are_taken():
    for same in (np.ma.masked_greater(ROWS, 1e9), ROWS.tolist(), ROWS.astype(object), np.asfortranarray(ROWS)):
        np.testing.assert_array_equal(check_real("rows", same), ROWS)
    assert check_real("rows", ROWS) is ROWS
    np.testing.assert_array_equal(check_real("x", [Fraction(1, 4), True, 2]), [0.25, 1.0, 2.0])


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("theta_0", lambda bad: hw.Auto(_linear(), theta_0=bad)),
        ("theta_0", lambda bad: hw.Problem(2, lambda *_: None, row_size=1, theta_0=bad)),
        ("params", lambda bad: hw.Problem(2, lambda *_: None, row_size=1, params=bad)),
        ("thetas", lambda bad: hw.FixedBatchMeans(2).update_many(bad)),
        ("theta", lambda bad: hw.FixedBatchMeans(2).update(bad)),
        ("rows", lambda bad: hw.SGD(_linear()).consume(bad)),
        ("direction", lambda bad: hw.Auto(_linear()).consume(ROWS).result().interval(bad)),
        ("projection", lambda bad: hw.FixedBatchMeans(2, view="projection", projection=bad)),
        ("theta", lambda bad: hw.Auto(dim=2).tell(theta=bad, gradients=ROWS[:, :2], hessian=np.eye(2))),
        ("gradients", lambda bad: hw.Auto(dim=2).tell(theta=[0.0, 0.0], gradients=bad, hessian=np.eye(2))),
        ("hessian", lambda bad: hw.Auto(dim=2).tell(theta=[0.0, 0.0], gradients=ROWS[:, :2], hessian=bad)),
    ],
)
@pytest.mark.parametrize(
    "bad", [np.ma.masked_equal([[1.0, 2.0]], 2.0), np.array([[1.0, 2.0j]]), "ab", [[1.0], [1.0, 2.0]]], ids=repr
)
def test_every_way_in_refuses_by_name(name, call, bad):
    with pytest.raises(InputError, match=f"^{name} must (have no masked values|be an array of real numbers)"):
        call(bad)


@pytest.mark.parametrize("where", ["X", "y"])
def test_models_and_tables_refuse_a_mask(where):
    X, y = (MASKED[:, :2], ROWS[:, 2]) if where == "X" else (ROWS[:, :2], MASKED[:, 2])
    for learn in (LinearRegression().fit, lambda X, y: hw.fit((X, y))):
        with pytest.raises(InputError, match=rf"^{where}.* must have no masked values"):
            learn(X, y)
    if where == "X":
        with pytest.raises(InputError, match=r"^X must have no masked values"):
            LinearRegression().fit(ROWS[:, :2], ROWS[:, 2]).predict(X)


@pytest.mark.parametrize("seed", ["a", -1, 1.5])
def test_a_seed_that_is_none_is_refused(seed):
    with pytest.raises(InputError, match=r"^seed must"):
        hw.Auto(_linear(), seed=seed)


# ---- a refused tell costs nothing


def _refused_tells(request):
    p = len(request.points)
    good = np.ones((p, 2))
    return {
        "ragged": (request, [[1.0, 2.0], [3.0]]),
        "complex": (request, good * 1j),
        "masked": (request, [np.ma.masked_equal(np.zeros((request.rows, 2)), 0.0)] * p),
        "text": (request, "ab"),
        "hessian": (request, good, "x"),
        "not the request": ("x", good),
    }


@pytest.mark.parametrize("kind", ["ragged", "complex", "masked", "text", "hessian", "not the request"])
def test_a_refused_tell_leaves_the_learner_as_it_was(kind):
    def told(refused: bool):
        rng, learner = np.random.default_rng(2), hw.Auto(dim=2, seed=3)
        while learner.n_seen < 6_400:
            request = learner.ask()
            if refused:
                with pytest.raises(InputError):
                    learner.tell(*_refused_tells(request)[kind])
            rows = rng.standard_normal((request.rows, 2))
            learner.tell(request, [point - rows for point in request.points])
        return learner.result()

    np.testing.assert_array_equal(told(True).params, told(False).params)


def test_a_request_of_nobody_does_not_settle_how_rows_come():
    learner = hw.Auto(_linear(), seed=1)
    with pytest.raises(InputError, match="ask first"):
        learner.tell(hw.Auto(dim=2).ask(), [[0.0, 0.0]])
    assert learner.run(100).n_seen == 100


@pytest.mark.parametrize("lost", [np.complex128(1 + 2j), np.datetime64("2026-01-01"), np.timedelta64(3, "D")])
def test_objects_that_would_lose_something_are_refused(lost):
    with pytest.raises(InputError, match="real numbers"):
        check_real("x", np.array([1.0, lost], dtype=object))


def test_a_legacy_random_state_is_no_seed():
    with pytest.raises(InputError, match="seed must be an integer"):
        check_seed(np.random.RandomState(0))
