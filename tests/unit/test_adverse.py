"""The adverse battery: its worlds and what they do, and the outcomes of made-up runs."""

import numpy as np
import pytest

from halfwidth.errors import InputError, UnknownName
from halfwidth.learners.auto import Auto
from halfwidth.learners.warm_start import collect_rows
from halfwidth.problems import problem
from halfwidth.study.adverse import ADVERSE, FAR, OUTCOMES, AdverseRow, adverse_rows, outcomes
from halfwidth.study.battery import run_battery
from halfwidth.study.replicate import DrawnRows, Notes
from halfwidth.study.spec import Spec

TROUBLES_OF_A_TABLE = ("scales", "absent-column", "rare-column", "jump", "first-rows")


def rows_of(world, count, seed=0, theta=None):
    rows = np.empty((count, world.row_size))
    theta = np.array(world.theta_0 if theta is None else theta, dtype=float)
    collect_rows(world, np.random.default_rng(seed), theta, np.array(world.state_0), rows)
    return rows


def noted(estimate, half_width, *, standard_error=1.0, doubted=0.0, refused=0.0, status_ok=1.0):
    note = Notes.blank(1, 1)
    note.status_ok[:] = status_ok
    note.estimate[:], note.half_width[:], note.standard_error[:] = estimate, half_width, standard_error
    note.doubted[:], note.refused[:] = doubted, refused
    return note


@pytest.mark.parametrize(
    ("note", "truth", "outcome"),
    [
        (noted(1.0, 2.0), 0.0, "covered"),
        (noted(3.0, 2.0), 0.0, "missed_by_chance"),
        (noted(FAR, 2.0), 0.0, "missed_by_chance"),
        (noted(FAR + 0.1, 2.0), 0.0, "silently_wrong"),
        (noted(0.0, 2.0, doubted=1.0), 0.0, "doubted"),
        (noted(9.0, 2.0, doubted=1.0), 0.0, "doubted"),
        (noted(np.nan, np.nan), 0.0, "refused"),
        (noted(0.0, np.inf), 0.0, "refused"),
        (noted(0.0, 2.0), np.nan, "silently_wrong"),  # there is no truth: status ok is wrong whatever is said
        (noted(0.0, 2.0), np.inf, "silently_wrong"),
        (noted(1.0, 0.0, standard_error=0.0), 0.0, "silently_wrong"),
        (noted(1.0, np.nan, standard_error=np.nan, doubted=1.0), np.nan, "refused"),
    ],
)
def test_a_coefficient_ends_in_one_outcome(note, truth, outcome):
    found = outcomes([note], np.array([truth]))
    assert [name for name in OUTCOMES if found[name]] == [outcome]


def test_coverage_is_among_the_coefficients_with_status_ok():
    notes = [noted(0.0, 1.0), noted(2.0, 1.0), noted(2.0, 1.0, doubted=1.0), noted(np.nan, np.nan, status_ok=0.0)]
    found = outcomes(notes, np.zeros(1))
    assert found["coverage_ok"] == 0.5
    assert found["ok_coefficients"] == 2
    assert (found["ok"], found["ok_runs"], found["status_ok"]) == (0.5, 0.5, 0.75)
    assert sum(found[name] for name in OUTCOMES) == 1.0


def test_a_coefficient_without_an_interval_leaves_the_others_theirs():
    """A column that is zero in every row: nothing is known of its coefficient, and all of the others'."""
    world = problem("iid-linear", dim=3)
    rows = rows_of(world, 4_000)
    rows[:, 1] = 0.0
    result = Auto(world, seed=0).consume(rows).result()
    notes = Notes.blank(1, 3)
    notes.take(0, result, world, Spec("iid-linear", {"dim": 3}, methods=("auto",), direction="all"))
    assert np.isnan(notes.half_width[0]).tolist() == [False, True, False]
    found = outcomes([notes], world.theta_star)
    assert found["refused"] == pytest.approx(1 / 3)
    assert (found["ok_runs"], found["status_ok"]) == (0.0, float(result.status == "ok"))


def test_no_run_at_all_is_a_refusal():
    found = outcomes([], np.zeros(3))
    assert found["refused"] == 1.0
    assert found["coverage_ok"] is None


def test_keys_are_unique_and_hopeless_rows_say_why():
    keys = [row.key for row in ADVERSE]
    assert len(set(keys)) == len(keys)
    assert {row.problem for row in ADVERSE if row.hopeless} == {
        "performative-mean",
        "ar-linear",
        "troubled-linear",
        "troubled-logistic",
    }
    assert [row.key for row in adverse_rows(["rotating-game:strength=5.0"])] == ["rotating-game:strength=5.0"]


def test_an_unknown_row_is_named():
    with pytest.raises(UnknownName, match="rotating-gam"):
        adverse_rows(["rotating-gam"])


def test_given_rows_are_the_same_whatever_is_learned_from_them():
    world = problem("troubled-linear", trouble="none")
    seed = np.random.SeedSequence(3)
    whole = DrawnRows(world, seed).next(50)
    cut = DrawnRows(world, seed)
    np.testing.assert_array_equal(np.vstack([cut.next(20), cut.next(30)]), whole)


def test_a_row_of_the_battery_runs_from_end_to_end():
    rows = (
        AdverseRow("troubled-linear", {"trouble": "none"}, steps=4_000, given=True),
        AdverseRow("rotating-game", {"strength": 0.5}, steps=4_000),
    )
    scored = run_battery(rows, ["renewable-newton", "fixed-batches"], replicates=4, jobs=1)
    assert [(row["row"], row["method"]) for row in scored] == [
        ("troubled-linear:trouble=none:given", "renewable-newton"),
        ("troubled-linear:trouble=none:given", "fixed-batches"),
        ("rotating-game:strength=0.5", "renewable-newton"),
        ("rotating-game:strength=0.5", "fixed-batches"),
    ]
    for row in scored:
        assert sum(row[name] for name in OUTCOMES) == pytest.approx(1.0)


@pytest.mark.parametrize("trouble", TROUBLES_OF_A_TABLE)
@pytest.mark.parametrize("loss", ["linear", "logistic"])
def test_the_trouble_happens_and_the_truth_is_the_root_all_the_same(loss, trouble):
    """Null: at theta* the sum of the gradients is zero, within four standard errors where there is a truth."""
    amount = {"absent-column": 1_000, "rare-column": 0.01, "jump": 10_000, "first-rows": 100, "scales": 0}[trouble]
    world = problem(f"troubled-{loss}", trouble=trouble, amount=amount)
    rows = rows_of(world, 20_000)
    X, last = rows[:, :-1], rows[:, -2]
    happened = {
        "scales": X[:, 1].std() < 2e-6 and X[:, 2].std() > 5e5 and X[:, 3].min() > 9e5,
        "absent-column": not last[:1_000].any() and last[1_000:].all(),
        "rare-column": set(np.unique(last)) == {0.0, 1.0} and 120 < last.sum() < 280,
        "jump": np.isnan(world.theta_star[-1]) and np.isfinite(world.theta_star[:-1]).all(),
        "first-rows": X[:100, 1].std() > 50 and X[100:, 1].std() < 2,
    }
    assert happened[trouble]
    star = np.nan_to_num(world.theta_star)
    grads = np.empty_like(X)
    for row, grad in zip(rows, grads, strict=True):
        world.gradient(star, row, world.params, grad)
    z = np.abs(grads.sum(axis=0)) / np.sqrt((grads**2).sum(axis=0))
    if trouble == "jump":
        assert z[-1] > 10.0  # the negative control: no value is the root there
        z = z[:0]
    assert (z < 4.0).all()


def test_labels_are_separated_by_the_last_column():
    rows = rows_of(problem("troubled-logistic", trouble="separated"), 1_000)
    assert ((rows[:, -2] > 0) == (rows[:, -1] == 1.0)).all()


@pytest.mark.parametrize("loss", ["linear", "logistic", "poisson"])
@pytest.mark.parametrize(("psi", "epsilon"), [(0.0, 0.0), (0.9, 0.5)])
def test_responses_to_a_table_have_theta_r_as_their_root(loss, psi, epsilon):
    """At theta* nothing shifts, whatever epsilon is; away from it the response does."""
    world = problem(f"table-{loss}", psi=psi, epsilon=epsilon)
    star = world.theta_star
    means = []
    for seed in range(12):
        rows = rows_of(world, 20_000, seed, star)
        grads = np.empty((len(rows), world.dim))
        for row, grad in zip(rows, grads, strict=True):
            world.gradient(star, row, world.params, grad)
        means.append(grads.mean(axis=0))
    means = np.array(means)
    t = means.mean(axis=0) / (means.std(axis=0, ddof=1) / np.sqrt(len(means)))
    assert (np.abs(t) < 5.0).all()  # t with 11 degrees of freedom, 6 coefficients: by chance in 0.3%
    away = rows_of(world, 20_000, 0, star + 1.0)[:, -1].mean() - rows_of(world, 20_000, 0, star)[:, -1].mean()
    assert (abs(away) > 0.05) == (epsilon > 0.0)


def test_a_table_comes_from_a_file(tmp_path):
    features = np.column_stack([np.ones(30), np.arange(30.0)])
    np.savez(tmp_path / "mine.npz", features=features)
    world = problem("table-linear", table=str(tmp_path / "mine.npz"))
    rows = rows_of(world, 45)
    np.testing.assert_array_equal(rows[:30, :2], features)
    np.testing.assert_array_equal(rows[30:, :2], features[:15])  # from the beginning again
    assert world.settings["table"] == "mine"
    with pytest.raises(InputError, match=r"table must be an \.npz file"):
        problem("table-linear", table=str(tmp_path / "none.npz"))


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("troubled-linear", {"trouble": "separated"}, "this one is troubled-logistic's"),
        ("troubled-linear", {"dim": 3}, "dim must be an integer of at least 4"),
        ("troubled-logistic", {"trouble": "jmp"}, "no trouble named 'jmp'"),
        ("troubled-linear", {"amount": -1.0}, "amount must be finite and at least 0"),
        ("performative-ar", {"memory": 0.5}, "memory must be at least 1 row"),
        ("performative-ar", {"epsilon": 1.0}, "epsilon must be below 1"),
        ("rotating-game", {"strength": np.inf}, "strength must be finite"),
        ("quantile-linear", {"tau": 1.0}, "tau must lie strictly between 0 and 1"),
        ("table-poisson", {"psi": 1.0}, "psi must lie strictly between -1 and 1"),
    ],
)
def test_bad_settings_are_named(name, settings, message):
    with pytest.raises(InputError, match=message):
        problem(name, **settings)
