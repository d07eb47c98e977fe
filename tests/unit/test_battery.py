"""The battery: its rows and keys, its stated setting, its fields, and refusals as a status."""

import json
from dataclasses import replace

import pytest

from halfwidth.errors import InputError, UnknownName
from halfwidth.methods import METHODS
from halfwidth.study.battery import BATTERY, BatteryRow, battery_rows, run_battery
from halfwidth.study.replicate import Notes
from halfwidth.study.scores import doubt_scores
from halfwidth.study.store import Store

FIELDS = (
    "row problem params method learner eta exponent level seed dim step replicates coverage coverage_se "
    "coverage_of_mean width mis mis_ratio bias_over_sd coverage_coordinates sigma_error truncations diverged "
    "us_per_row mis_ratio_se refused doubted coverage_ok burn_in status"
).split()
LONG = ("seed-logistic", "strategic-credit", "mixed-logistic")
SMOKE = (BatteryRow("iid-linear", {"dim": 2}, steps=1_000), BatteryRow("swap-game", {"rho": 0.5}, steps=1_000))


def keys(*prefixes):
    return [row.key for row in battery_rows(prefixes)]


def test_the_battery_has_the_rows_it_should():
    seed = [f"dim={dim}:epsilon=0.5" for dim in (2, 5, 10, 20, 30, 50)] + ["dim=5:epsilon=0.1", "dim=5:epsilon=0.9"]
    assert keys() == [
        *(f"iid-linear:dim={dim}" for dim in (5, 20, 50)),
        *(f"ar-linear:dim={dim}" for dim in (5, 20)),
        *(f"seed-linear:{end}" for end in seed),
        *(f"seed-logistic:{end}" for end in seed),
        *(f"ar-logistic:dim={dim}" for dim in (5, 20)),
        "performative-mean:dim=5",
        "swap-game:rho=0.5",
        "swap-game:rho=0.9",
        "strategic-logistic:dim=5",
        "strategic-credit:reach=0.5:speed=1.0",
        "location-scale:dim=5",
        "location-scale:dim=3:loss=logistic",
        "multi-player-game:dim=5",
        "pricing:dim=4",
        "missing-normal",
        "mixed-logistic:people=25",
        "adaptive-linear:dim=5",
        "garnet-td:dim=4:discount=0.9",
        "random-walk-td:dim=7:trace=0.5",
        "frozen-lake-td:given",
        "q-learning:states=4",
        "actor-critic",
    ]


def test_every_row_has_the_stated_setting():
    for row in BATTERY:
        spec = row.spec(("obm",), 10, 0)
        assert spec.steps == (125_000 if row.problem in LONG or "loss=logistic" in row.key else 50_000)
        assert spec.eta == (2.0 if "logistic" in row.key or row.problem == "strategic-credit" else 0.5)
        assert (spec.learner, spec.exponent, spec.burn_in) == ("capped", 0.505, 0.05)
        assert spec.checkpoints == (spec.steps,)


def test_whole_keys_and_beginnings_of_keys_are_understood():
    assert keys("seed-linear:dim=5:epsilon=0.9") == ["seed-linear:dim=5:epsilon=0.9"]
    assert len(keys("seed-linear")) == 8
    assert len(keys("seed")) == 16
    assert len(keys("seed-logistic:", "swap-game")) == 10


def test_a_number_is_not_the_beginning_of_a_longer_one():
    assert [key.split(":")[1] for key in keys("seed-linear:dim=5")] == ["dim=5"] * 3
    assert keys("iid-linear:dim=5") == ["iid-linear:dim=5"]


@pytest.mark.parametrize("bad", ["seed-liner", "seed-linear:dim=7", "s", "iid-linear:dim=5:epsilon=1"])
def test_an_unknown_key_is_an_error_that_names_the_known_ones(bad):
    with pytest.raises(UnknownName, match=r"no battery row named.*known: actor-critic, adaptive-linear:dim=5"):
        battery_rows([bad])


def test_rows_carry_the_fields_of_a_study_and_of_the_battery():
    told = []
    rows = run_battery(SMOKE, ("obm", "obm-normal"), replicates=4, jobs=1, progress=lambda *at: told.append(at))
    assert [list(row) for row in rows] == [FIELDS] * 4
    assert [(row["row"], row["method"]) for row in rows] == [
        (key, name) for key in ("iid-linear:dim=2", "swap-game:rho=0.5") for name in ("obm", "obm-normal")
    ]
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows
    assert {(row["status"], row["burn_in"], row["refused"], row["step"]) for row in rows} == {("ok", 0.05, 0, 1_000)}
    assert all(row["mis_ratio_se"] > 0 for row in rows)
    assert told[-1] == (8, 8)
    assert told == sorted(told)


def test_a_refusal_is_a_status_with_its_reason(monkeypatch):
    def choosy(dim, setting):
        raise InputError("choosy needs independent rows")

    monkeypatch.setitem(METHODS, "choosy", replace(METHODS["obm"], name="choosy", watch=choosy))
    good, refused = run_battery(SMOKE[:1], ("obm", "choosy"), replicates=2, jobs=1)
    assert good["status"] == "ok"
    assert refused["status"] == "choosy needs independent rows"
    assert list(refused) == FIELDS
    assert (refused["coverage"], refused["mis_ratio"], refused["replicates"]) == (None, None, 0)
    assert (refused["doubted"], refused["coverage_ok"]) == (None, None)


def test_doubted_replicates_are_counted_apart():
    """Two of four replicates carry a doubt, and theirs are the intervals that miss."""
    spec = SMOKE[0].spec(("obm",), 4, 0)
    world, notes = spec.make_problem(), []
    for doubt in (0.0, 1.0, 0.0, 1.0):
        note = Notes.blank(1, 1)
        note.estimate[:], note.half_width[:], note.doubted[:] = world.theta_star.sum() + doubt, 0.5, doubt
        notes.append(note)
    assert doubt_scores(spec, world, notes) == {"doubted": 2, "coverage_ok": 1.0}


def test_it_resumes_from_the_store(tmp_path, monkeypatch):
    first = run_battery(SMOKE, ("obm",), replicates=4, jobs=1, store=Store(tmp_path))
    monkeypatch.setattr("halfwidth.study.replicate.run_replicate", None)
    assert run_battery(SMOKE, ("obm",), replicates=4, jobs=1, store=Store(tmp_path)) == first
