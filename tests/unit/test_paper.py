"""The pieces of the reproduction: scores with their errors, verdicts, arms, and the population of borrowers."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from halfwidth.errors import InputError, UnknownName
from halfwidth.methods import method
from halfwidth.paper import chosen_targets
from halfwidth.paper.arms import SCALES, boot, scale, synthetic_arm
from halfwidth.paper.choices import choices_table
from halfwidth.paper.comparisons import against, growth, last, log_ratio, sign, unchanged
from halfwidth.paper.paper_scores import Estimated, log_slope, mean_and_error, paper_fields
from halfwidth.problems import problem
from halfwidth.problems.strategic_credit import FEATURES, read_population
from halfwidth.streams.datasets.credit_agents import LABEL, credit_population
from halfwidth.study import Spec
from halfwidth.study.replicate import Notes

STEPS = (100, 300, 1_000, 3_000)


def test_the_slope_of_a_power_law_is_its_exponent():
    errors = np.outer([1.0, 2.0, 3.0], np.array(STEPS) ** -0.125)
    slope, error = log_slope(STEPS, errors)
    assert slope == pytest.approx(-0.125)
    assert error == pytest.approx(0.0, abs=1e-12)  # all replicates share the shape: only the level varies


def test_the_error_of_the_slope_is_the_spread_over_repetitions_of_the_study():
    rng = np.random.default_rng(0)
    common = rng.standard_normal((400, 60, 1))
    noise = 0.2 * common + 0.3 * rng.standard_normal((400, 60, len(STEPS)))
    fits = [log_slope(STEPS, np.exp(study) * np.array(STEPS) ** -0.2) for study in noise]
    spread = np.std([slope for slope, _ in fits])
    assert np.mean([error for _, error in fits]) == pytest.approx(spread, rel=0.1)


def test_the_paper_estimates_the_truth_from_runs_and_leaves_out_those_that_diverged():
    rng = np.random.default_rng(1)
    averages = np.vstack([rng.standard_normal((4_000, 2)) / 10, [[np.nan, 0.0]]])
    estimated = Estimated.of(averages, steps=100)
    assert estimated.theta == pytest.approx([0.0, 0.0], abs=0.01)
    assert estimated.sigma == pytest.approx(np.eye(2), abs=0.1)


def test_scores_by_both_conventions_are_those_of_their_definitions():
    spec = Spec("iid-linear", {"dim": 2}, methods=("obm",), steps=10_000, replicates=4, checkpoints=(10_000,))
    world = problem("iid-linear", dim=2)  # v'theta* = 1, Sigma = I
    notes = []
    for error in (-0.01, 0.001, 0.03, 0.039):
        note = Notes.blank(1, 1)
        note.estimate[:], note.half_width[:] = 1.0 + error, 0.02
        note.sigma_error[:], note.reference_error[:] = 1.0, 2.0
        notes.append(note)
    estimated = Estimated(world.theta_star + 0.01, 1.5 * np.eye(2))  # v'theta is 0.02 off
    (row,) = paper_fields(spec, world, estimated, notes)
    assert row["coverage_paper"] == 0.75  # within 0.02 of 1.02: errors 0.001, 0.03 and 0.039
    assert row["mis"] == pytest.approx(0.04 + 40 * (0.01 + 0.019) / 4)
    assert row["mis_paper"] == pytest.approx(0.04 + 40 * 0.01 / 4)
    assert row["estimate_bias_over_sd"] == pytest.approx(0.02 / math.sqrt(2 / 10_000))
    assert row["estimate_sigma_error"] == pytest.approx(0.5)
    assert (row["sigma_error"], row["sigma_error_paper"]) == (1.0, 2.0)


def test_means_come_with_their_error_and_without_values_with_none():
    assert mean_and_error(np.array([1.0, 3.0, np.nan])) == (2.0, pytest.approx(1.0))
    assert mean_and_error(np.array([np.nan, np.nan])) == (None, None)


@pytest.mark.parametrize(
    ("comparison", "verdict"),
    [
        (against("", "", 0.9, 0.06, 1.0), "agrees"),
        (against("", "", 0.8, 0.05, 1.0), "differs: -4.0 standard errors"),
        (sign("", "", -0.3, 0.1, negative=True), "agrees"),
        (sign("", "", 0.3, 0.1, negative=True), "the reverse"),
        (sign("", "", 0.1, 0.1, negative=True), "no difference visible"),
        (unchanged("", "", 0.3, 0.1), "differs: +3.0 standard errors"),
        (against("", "", 1.0, 0.0, 1.0), "agrees"),
    ],
)
def test_verdicts_follow_from_number_and_error(comparison, verdict):
    assert comparison.verdict == verdict


def arm_rows(power):
    return [
        {"model": "linear", "dim": dim, "name": "BM", "step": step, "sigma_error": dim**power, "sigma_error_se": 0.01}
        for dim in (2, 5, 50)
        for step in (10, 20)
    ]


def test_growth_is_the_power_of_the_dimension():
    comparison = growth(arm_rows(0.7), "here")
    assert comparison.ours == pytest.approx(0.7)
    assert comparison.verdict.startswith("differs")
    assert growth(arm_rows(0.5), "here").verdict == "agrees"


def test_last_picks_the_end_of_every_run():
    assert [(row["dim"], row["step"]) for row in last(arm_rows(0.5))] == [(2, 20), (5, 20), (50, 20)]
    assert log_ratio(*last(arm_rows(0.5))[1::-1], "sigma_error")[0] == pytest.approx(0.5 * math.log(2.5))


def test_arms_carry_the_papers_settings():
    spec = synthetic_arm(SCALES["paper"], 3, "linear", 30, boot(100), epsilon=0.9).spec
    assert (spec.eta, spec.exponent, spec.steps, spec.replicates, spec.seed) == (2.0, 0.5005, 50_000, 200, 3)
    assert spec.settings == {"dim": 30, "epsilon": 0.9, "scale": 2.0}
    assert (len(spec.checkpoints), spec.checkpoints[0], spec.checkpoints[-1]) == (12, 500, 50_000)


def test_unknown_scales_and_targets_are_named():
    with pytest.raises(UnknownName, match="no scale named 'papers'"):
        scale("papers")
    with pytest.raises(UnknownName, match="no target named 'bootstraps'"):
        chosen_targets("bootstraps")
    assert len(chosen_targets("all")) == 8


def test_a_method_may_carry_an_option():
    assert method("bootstrap:copies=7").name == "bootstrap:copies=7"
    world = problem("iid-linear", dim=2)
    learner = method("bootstrap:copies=7").learn(world, Spec("iid-linear").make_setting(), 0)
    assert learner._members.shape == (8, 2)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bootstrap:copy=7", "whole numbers for copies"),
        ("bootstrap:copies=many", "whole numbers for copies"),
        ("obm:copies=7", "have options to change"),
        ("boot:copies=7", "no method named 'boot'"),
    ],
)
def test_bad_options_of_methods_are_named(name, message):
    with pytest.raises(InputError, match=message):
        method(name)


def test_the_page_on_the_paper_holds_the_table_of_choices():
    page = Path(__file__).parents[2] / "docs" / "paper.md"
    assert choices_table() in page.read_text(encoding="utf-8")


def borrowers(rows):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(0, 10, (rows, len(FEATURES))).astype(float), columns=list(FEATURES))
    table.insert(0, LABEL, rng.integers(0, 2, rows))
    return table


def test_borrowers_are_cleaned_drawn_and_standardised(tmp_path, monkeypatch):
    monkeypatch.setenv("HALFWIDTH_CACHE", str(tmp_path / "cache"))
    table = borrowers(1_000)
    table.loc[0, "MonthlyIncome"] = np.nan
    table.loc[1, "NumberOfTimes90DaysLate"] = 98.0
    table.loc[2, "DebtRatio"] = 1e6
    table.to_csv(tmp_path / "own.csv", index=False)
    with pytest.raises(InputError, match="agents must be at most 997"):
        credit_population(tmp_path / "own.csv", agents=998)
    features, labels = read_population(credit_population(tmp_path / "own.csv", agents=500))
    assert features.shape == (500, 10)
    assert set(labels) == {0.0, 1.0}
    assert features.mean(axis=0) == pytest.approx(np.zeros(10), abs=1e-12)
    assert features.std(axis=0) == pytest.approx(np.ones(10))
    same = credit_population(tmp_path / "own.csv", agents=500)
    other = credit_population(tmp_path / "own.csv", agents=500, seed=1)
    assert same != other
    world = problem("strategic-credit", population=str(same), movers=20)
    assert world.settings["population"] == same.name
    assert world.theta_star.shape == (10,)


def test_a_table_of_something_else_is_refused(tmp_path):
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="be the GiveMeSomeCredit table, with a column 'SeriousDlqin2yrs'"):
        credit_population(tmp_path / "other.csv")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dim": 5}, "dim must be 10"),
        ({"movers": 0}, "movers must lie between 1 and the 9000 agents"),
        ({"population": "nowhere.npz"}, "population must be an .npz file with features and labels"),
    ],
)
def test_bad_settings_of_the_credit_example_are_named(settings, message):
    with pytest.raises(InputError, match=message):
        problem("strategic-credit", **settings)
