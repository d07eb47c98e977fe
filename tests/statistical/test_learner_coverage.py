"""Coverage of the methods with learners of their own, and the failures that theory predicts.

Every row: 160 replicates with fixed seeds, all five coordinates scored, which are independent to first order: 800
intervals. A valid method must cover its level within 3.5 binomial standard errors: 0.95 +- 0.027, and 0.969 +- 0.021
for the hull of six runs, whose level is 1 - 2^-5.

The negative controls must fall into the band of their failure: neither the naive plug-in nor independent multipliers
see that rows are correlated (they report lag-0 variances, 1/2.92 of the long-run one: P(|Z| < 1.96 / sqrt(2.92)) =
0.75), and both take the Hessian for the Jacobian where the data respond to theta.
"""

import numpy as np
import pytest

from halfwidth import CappedSGD, ChunkedNewton, OneStep, PowerStep, RichardsonRomberg
from halfwidth.equation import Equation
from halfwidth.inference.batch_result import batch_variance
from halfwidth.inference.student_law import StudentLaw
from halfwidth.methods import Setting, method
from halfwidth.problems import problem

REPLICATES = 160
DIM = 5


def coverage(name, world, n, setting=None):
    covered = []
    for seed in range(REPLICATES):
        learner = method(name).learn(world, setting or Setting(), np.random.SeedSequence(2026, spawn_key=(seed,)))
        covered.append(learner.run(n).result().interval().covers(world.theta_star))
    return float(np.mean(covered))


def within_band(share, level=0.95):
    return abs(share - level) < 3.5 * np.sqrt(level * (1.0 - level) / (REPLICATES * DIM))


@pytest.mark.parametrize(
    "name",
    [
        "bootstrap",
        "bootstrap-cheap",
        "plug-in",
        "plug-in-longrun",
        "one-step",
        "renewable-newton",
        "higrad",
        "parallel-runs",
        "trajectory-regression",
    ],
)
def test_methods_cover_with_independent_rows(name):
    assert within_band(coverage(name, problem("iid-linear", dim=DIM), 5_000))


@pytest.mark.parametrize("temperature", [0.0, 0.5])
def test_online_debiasing_covers_where_a_bandit_chose_the_rows(temperature):
    """A greedy bandit with two arms that nearly tie, and one that softens its choice."""
    theta = [1.0, 0.99, 0.5, 0.25, 0.0]
    world = problem("adaptive-linear", dim=DIM, temperature=temperature, explore=0.2, theta_r=theta)
    assert within_band(coverage("online-debiasing", world, 5_000, Setting(watched_rows=5_000)))


def test_plus_minus_is_conservative_for_a_likelihood_and_wrong_for_another_noise():
    """With gamma f of 2 and more the variance is at most 2/3 of gamma: 0.984 and more. Negative control: noise of
    standard deviation 2, where 1.96 becomes 0.98 sqrt(3/2) to 0.98 sqrt(2): a coverage of 0.77 to 0.83.
    """
    assert coverage("plus-minus", problem("iid-linear", dim=DIM), 5_000) > 0.975
    assert 0.7 < coverage("plus-minus", problem("iid-linear", dim=DIM, noise=2.0), 5_000) < 0.88


def test_the_hull_of_runs_has_its_own_level():
    assert within_band(coverage("hull", problem("iid-linear", dim=DIM), 5_000), level=1.0 - 2.0**-5)


@pytest.mark.parametrize("name", ["plug-in-longrun", "bootstrap-minibatch", "one-step", "renewable-newton"])
def test_long_run_methods_cover_with_correlated_rows(name):
    assert within_band(coverage(name, problem("ar-linear", dim=DIM), 5_000))


def test_block_weights_are_too_wide_with_few_rows():
    """Not a success: weights that double a whole block's steps make the copies noisier than the trajectory."""
    share = coverage("bootstrap-block", problem("ar-linear", dim=DIM), 5_000)
    assert share > 0.95
    assert not within_band(share)


@pytest.mark.parametrize("name", ["plug-in", "bootstrap"])
@pytest.mark.parametrize(("world", "low", "high"), [("ar-linear", 0.70, 0.82), ("performative-mean", 0.35, 0.55)])
def test_negative_control_naive_methods_fail_as_predicted(name, world, low, high):
    assert low < coverage(name, problem(world, dim=DIM), 5_000) < high


@pytest.mark.parametrize(
    ("name", "world", "n", "low", "high"),
    [
        ("one-step", problem("performative-mean", dim=DIM), 5_000, 0.86, 0.93),
        ("one-step", problem("swap-game", rho=0.9), 5_000, 0.65, 0.80),
        ("renewable-newton", problem("performative-mean", dim=DIM), 2_000, 0.0, 0.02),
    ],
)
def test_the_static_hessian_fails_under_feedback(name, world, n, low, high):
    """Few long batches nearly repair the one-step centre, unless feedback nearly cancels the Hessian; nothing repairs
    steps of 1/k, which forget the start as n^-1/2 here."""
    assert low <= coverage(name, world, n) <= high


def test_richardson_romberg_removes_the_bias_that_plain_averages_have():
    """In units of the limit's standard deviation; 40 replicates leave a standard error of 0.16."""
    world, n = problem("ar-logistic", dim=DIM), 20_000
    v = np.ones(DIM)
    sd = np.sqrt(v @ world.sigma @ v / n)
    biases = []
    for kind in (CappedSGD, RichardsonRomberg):
        errors = [
            v @ (kind(world, step=PowerStep(4.0, 0.505), burn_in=1_000, seed=seed).run(n).theta_bar - world.theta_star)
            for seed in range(40)
        ]
        biases.append(np.mean(errors) / sd)
    plain, combined = biases
    assert plain > 1.0
    assert abs(combined) < 0.5


@pytest.mark.parametrize("kind", [OneStep, ChunkedNewton])
def test_a_column_of_four_spells_is_covered_with_its_own_degrees_of_freedom(kind):
    """400 runs: 0.95 within 3.5 standard errors, 0.038. Negative control: batch means of the same batches, with as many
    degrees of freedom for every coefficient."""
    world, covered, control = problem("iid-linear", dim=2), [], []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        rows = np.column_stack([rng.standard_normal(2_048), np.zeros(2_048), rng.standard_normal(2_048)])
        for at in (112, 512, 1_208, 1_808):
            rows[at : at + 8, 1] = 1.0
        rows[:, 2] += rows[:, :2] @ [1.0, -1.0]
        learner = kind(world, step=PowerStep(0.5, 0.6)).consume(rows)
        result = learner.result()
        covered.append(result.interval([0.0, 1.0]).covers(-1.0))
        influences = Equation.of(learner._batches).solve()[1]
        std_error = np.sqrt(batch_variance(influences)[1])
        control.append(abs(result.params[1] + 1.0) < StudentLaw(len(influences) - 1.0).quantile(0.95) * std_error)
    assert np.mean(covered) == pytest.approx(0.95, abs=0.038)
    assert np.mean(control) < 0.88
