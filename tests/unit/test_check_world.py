"""check_world: every built-in problem passes, and each way to be wrong is found by the check that is meant for it."""

import numpy as np
import pytest

from halfwidth import Problem
from halfwidth.errors import InputError
from halfwidth.problems import PROBLEMS, Truth, problem
from halfwidth.testing import check_world

SLOW_TO_FORGET = {"troubled-linear", "troubled-logistic"}  # their state counts rows


@pytest.mark.parametrize("name", sorted(set(PROBLEMS) - SLOW_TO_FORGET))
def test_built_in_problems_pass(name):
    report = check_world(problem(name), rows=2_000)
    assert report.ok, str(report)
    assert len(report.findings) == 8


def sample(rng, theta, state, params, row):
    state[0] = 0.5 * state[0] + 0.5 * (1.0 + 0.5 * theta[0]) + rng.standard_normal()
    row[0] = state[0]


def gradient(theta, row, params, grad):
    grad[0] = theta[0] - row[0]


def world(**changes):
    parts = {
        "gradient": gradient,
        "sample": sample,
        "curvature": lambda theta, row, params: 1.0,
        "loss": lambda theta, row, params: 0.5 * (theta[0] - row[0]) ** 2,
        "row_size": 1,
        "state_0": [0.0],
        "solve": lambda: Truth(np.array([2.0]), np.array([[16.0]])),
    }
    return Problem(1, **{**parts, **changes})


def test_a_right_world_passes_every_check():
    report = check_world(world(), rows=4_000)
    assert report.ok, str(report)
    assert "nothing failed" in str(report)


def unwritten(theta, row, params, grad):
    pass


def no_forgetting(rng, theta, state, params, row):
    row[0] = state[0] + rng.standard_normal()


def own_random_numbers(rng, theta, state, params, row, other=np.random.default_rng()):  # noqa: B008
    row[0] = other.standard_normal()


def climbing(theta, row, params, grad):
    grad[0] = row[0] - theta[0]


def raising(theta, row, params, grad):
    raise ZeroDivisionError("no")


def meddling(theta, row, params, grad):
    theta[0] += 1.0
    grad[0] = 0.0


def wrong_hessian(theta, row, params, direction):
    direction[0] = 1.0
    return 2.0, 0.0


@pytest.mark.parametrize(
    ("changes", "check", "words"),
    [
        ({"gradient": unwritten}, "shapes", "gradient left element 0"),
        ({"gradient": raising}, "shapes", "gradient raised ZeroDivisionError"),
        ({"gradient": meddling}, "shapes", "gradient changed theta"),
        ({"loss": lambda theta, row, params: np.inf}, "shapes", "loss must return 1 finite number"),
        ({"sample": own_random_numbers}, "determinism", "draw every random number from the generator"),
        ({"loss": lambda theta, row, params: theta[0] ** 3}, "field and loss", "not the derivative of the loss"),
        ({"hessian": wrong_hessian}, "field and derivative", "the Hessian is not the derivative of the field"),
        ({"curvature": lambda theta, row, params: 0.1}, "curvature bound", "faster than the bound"),
        ({"sample": no_forgetting}, "forgets its start", "still moves the mean field"),
        ({"solve": lambda: Truth(np.array([2.5]), np.eye(1))}, "truth", "is not zero"),
        ({"gradient": climbing, "loss": None}, "stable steps", "sign right"),
    ],
)
def test_what_is_wrong_is_found_and_named(changes, check, words):
    report = check_world(world(**changes), rows=4_000)
    found = {finding.check: finding.detail for finding in report.failures}
    assert check in found, str(report)
    assert words in found[check]


def test_a_world_without_a_sampler_is_refused():
    with pytest.raises(InputError, match="must have a sampler"):
        check_world(world(sample=None))
