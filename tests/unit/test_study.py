"""Studies: same numbers whatever the workers, scores as defined, divergence counted, the contract's fields."""

import json

import numpy as np
import pytest

from halfwidth.errors import InputError, UnknownName
from halfwidth.problems import problem
from halfwidth.study import Spec, run_study
from halfwidth.study.replicate import Notes, run_replicate
from halfwidth.study.scores import score_rows

FIELDS = (
    "problem params method learner eta exponent level seed dim step replicates coverage coverage_se "
    "coverage_of_mean width mis mis_ratio bias_over_sd coverage_coordinates sigma_error truncations diverged us_per_row"
).split()
SMALL = Spec("seed-linear", {"dim": 2, "epsilon": 0.5}, steps=2_000, replicates=6, seed=3)


def without_times(rows):
    return [{key: value for key, value in row.items() if key != "us_per_row"} for row in rows]


def test_same_numbers_for_any_number_of_workers():
    assert without_times(run_study(SMALL, jobs=1)) == without_times(run_study(SMALL, jobs=2))


def test_rows_have_the_fields_of_the_contract_and_are_json():
    rows = run_study(SMALL, jobs=1)
    assert [list(row) for row in rows] == [FIELDS] * (2 * len(SMALL.checkpoints))
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows
    assert rows[0]["params"] == {"dim": 2, "epsilon": 0.5, "rho": 0.5, "noise": 1.0, "scale": 1.0}


def test_progress_is_told_of_every_replicate():
    told = []
    run_study(SMALL, jobs=1, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (6, 6)


def test_methods_see_the_same_data():
    notes = run_replicate(SMALL, 0)
    assert np.array_equal(notes["obm"].estimate, notes["obm-normal"].estimate)
    assert (notes["obm"].half_width > notes["obm-normal"].half_width).all()


def test_replicates_differ_and_depend_on_the_seed():
    first, second = run_replicate(SMALL, 0)["obm"], run_replicate(SMALL, 1)["obm"]
    other_seed = run_replicate(Spec("seed-linear", {"dim": 2}, steps=2_000, replicates=6, seed=4), 0)["obm"]
    assert not np.array_equal(first.estimate, second.estimate)
    assert not np.array_equal(first.estimate, other_seed.estimate)


def fake_notes(estimate, half_width):
    note = Notes.blank(1, 1)
    note.estimate[:] = estimate
    note.half_width[:] = half_width
    note.coordinates_covered[:] = 1.0
    return note


def test_scores_are_those_of_their_definitions():
    spec = Spec("iid-linear", {"dim": 2}, methods=("obm",), steps=10_000, replicates=4, checkpoints=(10_000,))
    world = problem("iid-linear", dim=2)  # v'theta* = 1, v'Sigma v = 2
    errors, half = np.array([-0.01, 0.0, 0.019, 0.051]), 0.02
    row = score_rows(spec, world, "obm", [fake_notes(1.0 + e, half) for e in errors], 1.0)[0]
    assert row["coverage"] == 0.75
    assert row["coverage_se"] == pytest.approx(np.sqrt(0.75 * 0.25 / 4))
    assert row["coverage_of_mean"] == 0.5  # the mean error is 0.015: only 0.0 and 0.019 lie within 0.02 of it
    assert row["width"] == pytest.approx(0.04)
    assert row["mis"] == pytest.approx(0.04 + (2 / 0.05) * 0.031 / 4)
    sd = np.sqrt(2 / 10_000)
    z = 1.959963984540054
    assert row["mis_ratio"] == pytest.approx(row["mis"] / (4 * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * sd / 0.05))
    assert row["bias_over_sd"] == pytest.approx(0.015 / sd)


def test_a_diverged_run_is_counted_and_is_a_miss():
    spec = Spec("iid-linear", {"dim": 2}, methods=("obm",), steps=10_000, replicates=4, checkpoints=(10_000,))
    notes = [fake_notes(1.0, 0.02)] * 3 + [Notes.blank(1, 1)]
    row = score_rows(spec, problem("iid-linear", dim=2), "obm", notes, 1.0)[0]
    assert (row["diverged"], row["coverage"], row["width"]) == (1, 0.75, pytest.approx(0.04))


def test_divergence_in_a_real_run_is_a_status_not_a_crash():
    spec = Spec("seed-linear", {"dim": 20, "scale": 2.0}, steps=1_000, replicates=2, learner="plain", eta=50.0)
    rows = run_study(spec, jobs=1)
    assert rows[-1]["diverged"] == 2
    assert rows[-1]["coverage"] == 0.0
    assert rows[-1]["width"] is None


def test_all_directions_are_the_coordinates():
    spec = Spec("iid-linear", {"dim": 3}, steps=2_000, replicates=4, direction="all")
    rows = run_study(spec, jobs=1)
    assert all(row["coverage"] == pytest.approx(row["coverage_coordinates"]) for row in rows)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"problem": "nothing"}, "no problem named 'nothing'"),
        ({"methods": ("obn",)}, "Did you mean 'obm'"),
        ({"methods": ("obm", "obm")}, "each once"),
        ({"learner": "quick"}, "no learner named 'quick'"),
        ({"direction": "up"}, "direction must be"),
        ({"level": 1.0}, "level must lie strictly between 0 and 1"),
        ({"steps": 10}, "steps must be an integer of at least 1000"),
        ({"replicates": 1}, "replicates must be"),
        ({"exponent": 0.5}, "1/2 < a < 1"),
        ({"settings": {"dimension": 3}}, "no setting 'dimension'"),
        ({"checkpoints": (500, 400)}, "checkpoints must increase"),
    ],
)
def test_bad_specifications_are_named(change, message):
    with pytest.raises((InputError, UnknownName), match=message.replace("(", r"\(")):
        Spec(**({"problem": "seed-linear", "steps": 2_000} | change))
