"""The store: what is finished is never repeated, and the numbers are those of an uninterrupted study."""

import ast
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import halfwidth
from halfwidth.errors import InputError
from halfwidth.inference import Result
from halfwidth.methods import METHODS
from halfwidth.state.checkpoint import read_checkpoint, write_checkpoint
from halfwidth.study import Spec, replicate, run_study, store
from halfwidth.study.code_version import code_of
from halfwidth.study.store import Store
from halfwidth.watchers import OverlappingBatchMeans

SPEC = Spec("iid-linear", {"dim": 2}, steps=1_000, replicates=16, seed=5, checkpoints=(1_000,))


def without_times(rows):
    return [{key: value for key, value in row.items() if key != "us_per_row"} for row in rows]


@pytest.fixture
def ran(monkeypatch):
    """Every (methods, index) that is really run; index `stop` raises as an impatient user does."""
    calls, plain = [], replicate.run_replicate

    def counted(spec, index, problem=None):
        if index == counted.stop:
            raise KeyboardInterrupt
        calls.append((spec.methods, index))
        return plain(spec, index, problem)

    counted.stop = None
    monkeypatch.setattr(replicate, "run_replicate", counted)
    return calls, counted


def test_an_interrupted_study_resumes_and_ends_with_the_same_numbers(tmp_path, ran):
    calls, control = ran
    expected = without_times(run_study(SPEC, jobs=1))
    calls.clear()
    control.stop = 11
    with pytest.raises(KeyboardInterrupt):
        run_study(SPEC, jobs=1, store=Store(tmp_path))
    control.stop = None
    finished = len(calls)
    assert finished == 11
    told = []
    rows = run_study(SPEC, jobs=1, store=Store(tmp_path), progress=lambda *at: told.append(at))
    assert without_times(rows) == expected
    assert [index for _, index in calls[finished:]] == list(range(11, 16))  # of a span of two, the first was kept
    assert told[0] == (11, 16)
    assert told[-1] == (16, 16)


def test_a_finished_study_is_read_with_its_times_and_nothing_runs(tmp_path, ran, monkeypatch):
    calls, _ = ran
    first = run_study(SPEC, jobs=1, store=Store(tmp_path))
    calls.clear()
    monkeypatch.setattr("halfwidth.study.run.microseconds_per_row", None)
    assert run_study(SPEC, jobs=1, store=Store(tmp_path)) == first
    assert calls == []


def test_more_replicates_and_more_methods_run_only_what_is_missing(tmp_path, ran):
    calls, _ = ran
    kept = Store(tmp_path)
    run_study(replace(SPEC, methods=("obm",), replicates=8), jobs=1, store=kept)
    calls.clear()
    rows = run_study(SPEC, jobs=1, store=kept)
    assert sorted(calls) == sorted(
        [(("obm-normal",), index) for index in range(8)] + [(("obm-normal", "obm"), index) for index in range(8, 16)]
    )
    assert without_times(rows) == without_times(run_study(SPEC, jobs=1))


@pytest.mark.parametrize(
    "change",
    [{"seed": 6}, {"settings": {"dim": 3}}, {"eta": 0.6}, {"burn_in": 0.1}, {"level": 0.9}, {"learner": "plain"}],
)
def test_whatever_changes_the_numbers_changes_the_place(tmp_path, change):
    assert Store(tmp_path).place(SPEC) != Store(tmp_path).place(replace(SPEC, **change))


def test_methods_and_replicates_do_not_change_the_place_but_the_code_does(tmp_path, monkeypatch):
    place = Store(tmp_path).place(SPEC)
    assert Store(tmp_path).place(replace(SPEC, methods=("obm",), replicates=4)) == place
    monkeypatch.setattr(store, "code_version", lambda: "edited")
    assert Store(tmp_path).place(SPEC) != place


def test_the_default_place_is_in_the_users_cache(tmp_path, monkeypatch):
    monkeypatch.delenv("HALFWIDTH_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert Store().folder == tmp_path / "xdg" / "halfwidth" / "studies"
    monkeypatch.setenv("HALFWIDTH_CACHE", str(tmp_path / "own"))
    assert Store().folder == tmp_path / "own" / "studies"


def test_files_are_plain_arrays_and_json_and_a_broken_one_counts_as_not_there(tmp_path, ran):
    calls, _ = ran
    kept = Store(tmp_path)
    rows = run_study(SPEC, jobs=1, store=kept)
    place = kept.place(SPEC)
    assert json.loads((place / "spec.json").read_text())["problem"] == "iid-linear"
    spans = sorted(place.glob("*.span"))
    assert len(spans) == 8
    assert sorted(path.suffix for path in place.iterdir()) == [".json"] * 2 + [".span"] * 8
    assert read_checkpoint(spans[0])["methods"]["obm"]["estimate"].shape == (2, 1, 1)
    spans[3].write_bytes(spans[3].read_bytes()[:100])
    spans[5].write_bytes(spans[6].read_bytes())  # another span's numbers
    calls.clear()
    assert run_study(SPEC, jobs=1, store=kept) == rows
    assert [index for _, index in calls] == [6, 7, 10, 11]


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state | {"key": state["key"].replace("iid-linear", "ar-linear")},
        lambda state: state | {"first": 4},
        lambda state: state | {"count": 3},
        lambda state: state | {"methods": {"obm": state["methods"]["obm"] | {"estimate": np.zeros((2, 9, 1))}}},
        lambda state: state | {"version": 99},
    ],
)
def test_a_span_with_another_key_or_shape_is_computed_again(tmp_path, ran, change):
    calls, _ = ran
    kept = Store(tmp_path)
    rows = run_study(SPEC, jobs=1, store=kept)
    span = sorted(kept.place(SPEC).glob("*.span"))[0]
    write_checkpoint(span, change(read_checkpoint(span)))
    calls.clear()
    assert run_study(SPEC, jobs=1, store=kept) == rows
    assert {index for _, index in calls} == {0, 1}


def test_only_the_code_that_a_study_runs_counts(tmp_path):
    root = Path(halfwidth.__file__).parent
    reached = code_of(root, ("halfwidth.study.replicate",))
    assert {"halfwidth.watchers.overlapping_batches", "halfwidth.kernels.compile", "halfwidth.problems"} <= set(reached)
    assert not [name for name in reached if name.split(".")[1] in ("cli", "models", "plots", "paper")]
    package = tmp_path / "halfwidth"
    package.mkdir()
    (package / "a.py").write_text("from halfwidth.b import f\n")
    texts = ["def f():\n    return 1\n", "def f():\n    'Say.'\n    return 1  # why\n", "def f():\n    return 2\n"]
    dumps = []
    for text in texts:
        (package / "b.py").write_text(text)
        dumps.append(ast.dump(code_of(package, ("halfwidth.a",))["halfwidth.b"]))
    assert dumps[0] == dumps[1] != dumps[2]


def test_two_writers_at_once_end_with_one_whole_study(tmp_path):
    expected = without_times(run_study(SPEC, jobs=1))
    with ThreadPoolExecutor(2) as pool:
        rows = list(pool.map(lambda _: run_study(SPEC, jobs=1, store=Store(tmp_path)), range(2)))
    assert [without_times(each) for each in rows] == [expected, expected]


class Moody(OverlappingBatchMeans):
    """Gives an interval only when the average is on its good side."""

    def result(self, critical="calibrated") -> Result:
        if self.estimate()[0] > 0:
            raise InputError("not today")
        return super().result(critical)


def test_refusals_are_misses_not_divergences_and_survive_the_store(tmp_path, monkeypatch):
    moody = replace(METHODS["obm"], name="moody", watch=lambda dim, setting: Moody(dim, step_exponent=setting.exponent))
    monkeypatch.setitem(METHODS, "moody", moody)
    spec = replace(SPEC, methods=("obm", "moody"))
    kept = Store(tmp_path)
    first = run_study(spec, jobs=1, store=kept)
    assert run_study(spec, jobs=1, store=kept) == first
    calm, mood = first
    refused = sum(note.refused[-1] for note in kept.load(spec)["moody"].values())
    assert 0 < refused < 16
    assert {note.reason for note in kept.load(spec)["moody"].values()} == {"", "not today"}
    assert mood["diverged"] == 0
    assert mood["coverage"] <= calm["coverage"] - (refused - 2) / 16


def test_a_method_that_always_refuses_raises_its_reason(monkeypatch):
    def never(dim, setting):
        raise InputError("needs more than this")

    monkeypatch.setitem(METHODS, "never", replace(METHODS["obm"], name="never", watch=never))
    with pytest.raises(InputError, match="needs more than this"):
        run_study(replace(SPEC, methods=("never",)), jobs=1)


def test_checkpoints_without_any_interval_give_no_row():
    spec = Spec("iid-linear", {"dim": 2}, steps=2_000, replicates=2, checkpoints=(10, 2_000), burn_in=0.5)
    assert [row["step"] for row in run_study(spec, jobs=1)] == [2_000, 2_000]


def test_burn_in_hides_the_first_rows_from_watchers_unless_they_read_the_steps(monkeypatch):
    seen = {}

    class Seen(OverlappingBatchMeans):
        def take(self, thetas):
            seen[self.tag] = seen.get(self.tag, 0) + len(thetas)
            super().take(thetas)

    def watcher(tag):
        def make(dim, setting):
            made = Seen(dim, step_exponent=setting.exponent)
            made.tag = tag
            return made

        return make

    for name, burn_in in (("late", True), ("whole", False)):
        row = replace(METHODS["obm"], name=name, watch=watcher(name), supports_burn_in=burn_in)
        monkeypatch.setitem(METHODS, name, row)
    spec = replace(SPEC, methods=("late", "whole"), burn_in=0.25)
    replicate.run_replicate(spec, 0)
    assert seen == {"late": 750, "whole": 1_000}
    assert spec.make_setting().watched_rows == 750
