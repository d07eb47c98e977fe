"""`hw.strategic` and its command: what the population of a table does to its classifier."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from typer.testing import CliRunner

import halfwidth as hw
from halfwidth.cli.app import app
from halfwidth.errors import InputError, UnknownName

RIDGE, REACH, COST = 0.01, 1.0, [1.0, 2.0]


def loans(agents=400):
    rng = np.random.default_rng(5)
    table = pd.DataFrame({"savings": rng.gamma(2.0, 500.0, agents), "age": rng.integers(20, 80, agents)})
    table["visits"] = rng.poisson(4.0, agents)
    eta = 1.2 + (table["savings"] - 1000) / 600 + 0.03 * (table["age"] - 50) + 0.2 * (table["visits"] - 4)
    table["repaid"] = np.where(rng.random(agents) < expit(eta), "yes", "no")
    return table


ARGUMENTS = {"target": "repaid", "modifiable": ["savings", "visits"], "reach": REACH, "cost": COST}


@pytest.fixture(scope="module")
def found():
    return hw.strategic(loans(), **ARGUMENTS, rows=100_000, seed=1)


def test_an_estimate_far_from_the_exact_equilibrium_is_doubted(found):
    far = replace(found, exact=found.exact + 5 * found.result.bse)
    assert (found.status, far.status) == ("ok", "unsettled")
    assert far.to_dict()["warnings"][0].startswith("warning (unsettled)")
    assert "give more rows" in far.summary()


def standardised(table):
    raw = table[["savings", "age", "visits"]].to_numpy(dtype=float)
    X = np.column_stack([np.ones(len(raw)), (raw - raw.mean(axis=0)) / raw.std(axis=0)])
    return X, (table["repaid"] == "yes").to_numpy(dtype=float)


def retrained(table, lengths, rounds):
    """The slow twin: fit, let everybody respond, fit again; with no rounds of response the naive fit."""
    X, y = standardised(table)
    theta = np.zeros(4)
    for _ in range(rounds):
        moved = X + lengths * theta
        for _ in range(25):
            s = expit(moved @ theta)
            hessian = (moved.T * (s * (1 - s))) @ moved / len(y) + RIDGE * np.eye(4)
            theta = theta - np.linalg.solve(hessian, moved.T @ (s - y) / len(y) + RIDGE * theta)
    return theta


def test_exact_values_are_those_of_retraining(found):
    lengths = np.array([0.0, REACH / 1.0, 0.0, REACH / 2.0])
    np.testing.assert_allclose(found.exact, retrained(loans(), lengths, 400), atol=1e-9)
    np.testing.assert_allclose(found.naive_exact, retrained(loans(), 0.0 * lengths, 1), atol=1e-9)
    np.testing.assert_allclose(found.moved, lengths * found.exact)


def test_intervals_are_about_their_own_targets(found):
    """Eight intervals of 95%, on one seed: all within four standard errors, and the naive intercept is far off."""
    assert found.status == found.naive.status == "ok"
    assert (np.abs(found.result.params - found.exact) < 4 * found.result.bse).all()
    assert (np.abs(found.naive.params - found.naive_exact) < 4 * found.naive.bse).all()
    assert abs(found.rows()[0]["naive_off"]) > 8
    assert not found.rows()[0]["naive_covers"]


def test_the_equilibrium_is_better_for_those_who_respond_to_it(found):
    loss = found.losses()
    assert loss["equilibrium_after"] < loss["naive_after"]
    X, y = standardised(loans())
    score = expit(X @ found.naive_exact)
    assert loss["naive_before"] == pytest.approx(-np.mean(np.log(np.where(y == 1, score, 1 - score))))


def test_the_command_prints_and_saves_the_same(found, tmp_path):
    table = tmp_path / "loans.csv"
    loans().to_csv(table, index=False)
    options = ["--target", "repaid", "--modifiable", "savings,visits", "--reach", str(REACH), "--cost", "1,2"]
    outputs = ["--json", str(tmp_path / "a.json"), "--plot", str(tmp_path / "a.png")]
    done = CliRunner().invoke(app, ["strategic", str(table), *options, "--rows", "100000", "--seed", "1", *outputs])
    assert done.exit_code == 0, done.output
    assert found.summary() in done.output
    assert json.loads((tmp_path / "a.json").read_text()) == json.loads(json.dumps(found.to_dict()))
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_the_summary_reads_like_a_table(found):
    lines = found.summary().splitlines()
    assert lines[0].startswith("400 agents, ")
    assert lines[1].split()[:2] == ["equilibrium", "95%"]
    assert lines[2].startswith("Intercept ")
    assert lines[3].startswith("savings ")
    assert "penalty: ridge = 0.01, also on the intercept; equilibrium and naive fit are the penalised ones" in lines
    assert found.to_dict()["ridge"] == RIDGE
    assert "penalty" not in replace(found, ridge=0.0).summary()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"response": "slow"}, InputError, "response must be 'ascent' or 'best'"),
        ({"modifiable": ["income"]}, UnknownName, "income"),
        ({"modifiable": "savings"}, InputError, "modifiable must be a list"),
        ({"modifiable": []}, InputError, "modifiable must be a list"),
        ({"movers": 0.0}, InputError, "share must satisfy"),
        ({"cost": [1.0]}, InputError, "cost must be 2 positive numbers"),
        ({"rows": 10}, InputError, "rows must"),
        ({"target": "age"}, InputError, "age"),
        ({"reach": float("nan")}, InputError, "reach lambda must be finite"),
    ],
)
def test_bad_arguments_are_named(change, error, message):
    with pytest.raises(error, match=message):
        hw.strategic(loans(), **(ARGUMENTS | change))


def test_a_constant_column_is_named():
    with pytest.raises(InputError, match=r"vary over the table.*'country'"):
        hw.strategic(loans().assign(country=1.0), **ARGUMENTS)
