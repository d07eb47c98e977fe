"""A run goes on with the rows it began with, or not at all: both sides are named."""

from __future__ import annotations

import io
import sys

import numpy as np
import pandas as pd
import pytest

import halfwidth
from halfwidth.errors import BadRow, InputError, Interrupted
from halfwidth.models import FitWarning
from halfwidth.state.checkpoint import read_checkpoint
from halfwidth.streams import open_stream


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"a": rng.standard_normal(6_000), "b": rng.standard_normal(6_000)})
    table["y"] = 1.0 + table["a"] - table["b"] + rng.standard_normal(6_000)
    return table


WRITERS = {
    "csv": lambda table, path: table.to_csv(path, index=False),
    "ndjson": lambda table, path: table.to_json(path, orient="records", lines=True, double_precision=15),
    "parquet": lambda table, path: table.to_parquet(path, row_group_size=1_000),
    "arrow": lambda table, path: table.to_feather(path, chunksize=1_000),
}


def learn(path, checkpoint, **options):
    return halfwidth.fit(path, **{"target": "y", "checkpoint": checkpoint} | options)


@pytest.mark.parametrize("format", list(WRITERS))
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.assign(a=t["a"] + 1e-3), "is another one|shorter|other columns"),
        (lambda t: t[:3_000], "shorter|is another one"),
        (lambda t: t.rename(columns={"a": "b", "b": "a"}), "other columns|is another one"),
        (lambda t: t.sample(frac=1.0, random_state=0), "is another one|shorter|other columns"),
        (lambda t: t.iloc[:0], "shorter|is another one|other columns|at least 1 rows"),
    ],
)
def test_another_source_is_refused(frame, tmp_path, format, change, message):
    path, checkpoint = tmp_path / f"rows.{format}", tmp_path / "run.ck"
    WRITERS[format](frame, path)
    learn(path, checkpoint)
    WRITERS[format](change(frame), path)
    with pytest.raises(InputError, match=message):
        learn(path, checkpoint, resume=True)


@pytest.mark.parametrize("format", ["csv", "ndjson"])
def test_appended_rows_are_learned_as_if_they_had_been_there(frame, tmp_path, format):
    path, checkpoint = tmp_path / f"rows.{format}", tmp_path / "run.ck"
    WRITERS[format](frame[:4_000], path)
    learn(path, checkpoint)
    WRITERS[format](frame, path)
    grown = learn(path, checkpoint, resume=True)
    whole = halfwidth.fit(path, target="y")
    assert grown.n_seen_ == 6_000
    np.testing.assert_array_equal(grown.inference().bse, whole.inference().bse)


def test_a_last_row_that_has_grown_is_refused(frame, tmp_path):
    path, checkpoint = tmp_path / "rows.csv", tmp_path / "run.ck"
    path.write_text(frame[:500].to_csv(index=False) + "1,1,2")
    learn(path, checkpoint)
    with open(path, "a") as file:
        file.write("5\n1,1,2\n")
    with pytest.raises(InputError, match="another last row"):
        learn(path, checkpoint, resume=True)


def test_new_files_in_a_folder_are_appended_and_missing_ones_are_noticed(frame, tmp_path):
    folder, checkpoint = tmp_path / "rows", tmp_path / "run.ck"
    folder.mkdir()
    for part in range(3):
        frame[part * 1_000 : (part + 1) * 1_000].to_csv(folder / f"part-{part}.csv", index=False)
    learn(folder, checkpoint)
    frame[3_000:4_000].to_csv(folder / "part-3.csv", index=False)
    assert learn(folder, checkpoint, resume=True).n_seen_ == 4_000
    (folder / "part-0.csv").unlink()
    with pytest.raises(InputError, match=r"source (is another one|is shorter|has fewer files).*part-"):
        learn(folder, checkpoint, resume=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "b"}, "target must stay 'y'"),
        ({"features": ["a"]}, "features must stay"),
        ({"family": "huber"}, r"family \(--family\) was linear; got huber"),
        ({"ridge": 0.5}, r"ridge \(--ridge\) was 0.0; got 0.5"),
        ({"weight": "a"}, "weight must stay None"),
    ],
)
def test_other_options_are_refused(frame, tmp_path, options, message):
    checkpoint = tmp_path / "run.ck"
    learn(frame, checkpoint)
    with pytest.raises(InputError, match=message):
        learn(frame, checkpoint, resume=True, **options)


def test_a_stored_formula_is_compared_and_never_used(frame, tmp_path):
    checkpoint = tmp_path / "run.ck"
    learn(frame, checkpoint, target=None, formula="y ~ a")
    with pytest.raises(InputError, match="give the formula again"):
        learn(frame, checkpoint, target=None, resume=True)
    with pytest.raises(InputError, match="formula must stay"):
        learn(frame, checkpoint, target=None, formula="y ~ b", resume=True)


@pytest.mark.parametrize("change", [lambda t: t.assign(a=t["a"] * 2), lambda t: t.astype({"a": "float32"})])
def test_another_table_is_refused(frame, tmp_path, change):
    checkpoint = tmp_path / "run.ck"
    learn(frame, checkpoint)
    with pytest.raises(InputError, match=r"source (is another one|has other columns)"):
        learn(change(frame), checkpoint, resume=True)


def test_a_table_is_no_file(frame, tmp_path):
    checkpoint, path = tmp_path / "run.ck", tmp_path / "rows.csv"
    frame.to_csv(path, index=False)
    learn(frame, checkpoint)
    with pytest.raises(InputError, match=r"it was 'rows'.*is now 'files'"):
        learn(path, checkpoint, resume=True)


@pytest.mark.parametrize(("resume_at", "given"), [(1, 0), (21, 20), (11, 10)])
def test_a_source_that_is_read_once_needs_the_callers_word(monkeypatch, resume_at, given):
    lines = [f"{i},{i}\n" for i in range(50)]

    def stdin(first):
        text = "a,y\n" + "".join(lines[first:])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    stdin(0)
    stream = open_stream("-", target="y", chunk_rows=20)
    next(iter(stream))
    state = stream.to_state()
    stdin(given)
    with pytest.raises(InputError, match=r"give resume_at \(--resume-at\), 21 if it goes on"):
        open_stream("-", state=state)
    with pytest.raises(InputError, match="resume_at must lie between 1 and 21"):
        open_stream("-", state=state, resume_at=22)
    rest = [y for chunk in open_stream("-", state=state, resume_at=resume_at) for y in chunk.y.tolist()]
    assert rest == [float(i) for i in range(20, 50)]


def test_a_fresh_run_keeps_the_checkpoint_of_a_finished_one(frame, tmp_path):
    checkpoint, aside = tmp_path / "run.ck", tmp_path / "run.ck.replaced"
    learn(frame, checkpoint)
    learn(frame, checkpoint, resume=True)
    assert (tmp_path / "run.ck.previous").exists()
    assert read_checkpoint(checkpoint)["finished"]
    with pytest.warns(FitWarning, match=r"held a finished run of 6,000 rows; it is kept as '.*run\.ck\.replaced'"):
        learn(frame, checkpoint, features=["a"])
    assert halfwidth.load(checkpoint).feature_names_in_.tolist() == ["a"]
    assert halfwidth.load(aside).feature_names_in_.tolist() == ["a", "b"]
    assert not (tmp_path / "run.ck.previous").exists()
    learn(frame, checkpoint, features=["a"], resume=True)
    aside.replace(checkpoint)
    assert learn(frame, checkpoint, resume=True).n_seen_ == 6_000  # renamed back, it goes on


def test_a_fresh_run_that_fails_leaves_the_checkpoint_in_place(frame, tmp_path):
    checkpoint = tmp_path / "run.ck"
    learn(frame, checkpoint)
    bits = checkpoint.read_bytes()
    with pytest.raises(InputError, match="absent"):
        learn(frame, checkpoint, features=["absent"])
    assert checkpoint.read_bytes() == bits
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.ck"]


@pytest.mark.parametrize("errors", ["error", "warn"])
def test_a_fresh_run_refuses_to_replace_an_unfinished_one(frame, tmp_path, errors):
    path, checkpoint = tmp_path / "rows.csv", tmp_path / "run.ck"
    table = frame.astype({"a": object})
    table.loc[5_000, "a"] = "oops"
    table.to_csv(path, index=False)
    with pytest.raises(BadRow):
        learn(path, checkpoint, features=["a"])
    bits = checkpoint.read_bytes()
    words = r"with a run that stopped after 5,000 rows: go on with it by resume \(--resume\); to start again, remove"
    with pytest.raises(InputError, match=words):
        learn(path, checkpoint, features=["a"], checkpoint_errors=errors)
    assert checkpoint.read_bytes() == bits
    frame.to_csv(path, index=False)
    assert learn(path, checkpoint, features=["a"], resume=True).n_seen_ == 6_000


def test_a_run_interrupted_in_its_second_pass_is_unfinished(frame, tmp_path, monkeypatch):
    checkpoint, passed = tmp_path / "run.ck", []
    monkeypatch.setattr("halfwidth.models.run.CHECKPOINT_SECONDS", 0.0)

    def stop(rows):
        passed.append(rows)
        if len(passed) == 4:
            raise Interrupted("in the second pass", 15)

    table = pd.concat([frame.assign(y=(frame["y"] > 0.0).astype(float))] * 4)  # three chunks in a pass
    with pytest.raises(Interrupted):
        learn(table, checkpoint, family="logistic", passes=2, progress=stop)
    with pytest.raises(InputError, match="with a run that stopped after"):
        learn(table, checkpoint, family="logistic", passes=2)
    found = learn(table, checkpoint, family="logistic", passes=2, resume=True).inference()
    whole = halfwidth.fit(table, target="y", family="logistic", passes=2).inference()
    np.testing.assert_array_equal(found.bse, whole.bse)


def test_a_fresh_run_refuses_what_it_cannot_read_and_saved_models(frame, tmp_path):
    model, broken = tmp_path / "model", tmp_path / "broken"
    halfwidth.fit(frame, target="y").save(model)
    with pytest.raises(InputError, match="is there already, and holds a saved model; choose another place"):
        learn(frame, model)
    broken.write_bytes(model.read_bytes()[:-7])
    with pytest.raises(
        InputError, match=r"is there already, and this run cannot tell what it would replace \(.*cut short"
    ):
        learn(frame, broken)


def test_resume_at_comes_with_resume(frame, tmp_path):
    with pytest.raises(InputError, match=r"resume_at \(--resume-at\) needs resume \(--resume\)"):
        learn(frame, tmp_path / "run.ck", resume_at=5)
