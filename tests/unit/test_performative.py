"""`hw.performative` and its command: the stable point, the optimum where it is declared, and the naive fit."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import halfwidth as hw
from halfwidth.cli.app import app
from halfwidth.errors import InputError

ROWS = 20_000


@pytest.fixture(scope="module")
def prices():
    return hw.performative(hw.problem("pricing", dim=2), rows=ROWS, seed=1)


def test_intervals_are_about_the_stable_point_and_naive_ones_about_another(prices):
    """With one theta deployed demand stays at mu = (4, 6): the naive fit is mu over the cost, 1."""
    world = hw.problem("pricing", dim=2)
    assert prices.status == "ok"
    np.testing.assert_array_equal(prices.exact, world.theta_star)
    np.testing.assert_array_equal(prices.optimum, world.truth.optimum)
    assert prices.stable.interval(level=0.999).covers(world.theta_star).all()
    assert prices.naive.interval(level=0.999).covers([4.0, 6.0]).all()
    assert not any(row["naive_covers"] for row in prices.rows())
    off = [(row["naive"] - row["exact"]) / row["naive_std_err"] for row in prices.rows()]
    np.testing.assert_allclose([row["naive_off"] for row in prices.rows()], off)
    assert min(off) > 20


def test_without_a_response_the_naive_fit_is_right():
    """The negative control of the count above, through the same function."""
    found = hw.performative(hw.problem("location-scale", dim=2, epsilon=0.0, scale=0.0), rows=ROWS, level=0.999)
    assert all(row["naive_covers"] for row in found.rows())
    np.testing.assert_allclose(found.optimum, found.exact)


@pytest.mark.parametrize("name", ["location-scale", "multi-player-game", "pricing"])
def test_the_command_prints_and_saves_the_same(name, tmp_path):
    out = tmp_path / "found.json"
    done = CliRunner().invoke(app, ["performative", name, "--param", "dim=2", "--rows", str(ROWS), "--json", str(out)])
    assert done.exit_code == 0, done.output
    found = hw.performative(hw.problem(name, dim=2), rows=ROWS)
    assert found.summary() in done.output
    assert json.loads(out.read_text()) == json.loads(json.dumps(found.to_dict()))
    assert all(row["optimum"] is not None for row in found.rows())


def test_what_a_problem_does_not_state_is_none():
    logistic = hw.performative(hw.problem("location-scale", dim=2, loss="logistic"), rows=ROWS)
    assert logistic.rows()[0]["optimum"] is None
    assert "none" in logistic.summary()

    def sample(rng, theta, state, params, row):
        row[0] = 1.0 + 0.5 * theta[0] + rng.standard_normal()

    def gradient(theta, row, params, grad):
        grad[0] = theta[0] - row[0]

    own = hw.performative(hw.Problem(1, gradient, sample, row_size=1, name="own"), rows=5_000)
    (row,) = own.rows()
    assert row["exact"] is None
    assert row["naive_off"] == pytest.approx((row["naive"] - row["stable"]) / row["naive_std_err"])
    assert own.summary().startswith("own, ")


def test_bad_arguments_are_named():
    world = hw.problem("pricing")
    with pytest.raises(InputError, match="rows must be"):
        hw.performative(world, rows=10)
    with pytest.raises(InputError, match="must have a sampler"):
        hw.performative(hw.Problem(1, world.gradient, row_size=1))


def test_something_else_than_a_problem_is_refused():
    with pytest.raises(InputError, match=r"problem must be a Problem, such as .*; got 'x'"):
        hw.performative("x")
