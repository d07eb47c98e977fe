"""`halfwidth fit` and `halfwidth data` as a person or a program calls them."""

import io
import json
import os
import sqlite3
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from halfwidth.cli.app import app
from halfwidth.cli.on_the_way import Lines
from halfwidth.errors import HalfwidthError

runner = CliRunner()


@pytest.fixture(scope="module")
def csv(tmp_path_factory):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((5000, 2)), columns=["a", "b"])
    frame["y"] = 1.0 + frame["a"] + rng.standard_normal(5000)
    frame["late"] = (frame["y"] > 1.0).astype(int)
    path = tmp_path_factory.mktemp("cli") / "rows.csv"
    frame.to_csv(path, index=False)
    return path


def run(*args, **options):
    result = runner.invoke(app, [str(arg) for arg in args], **options)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_summary_and_json(csv, tmp_path):
    out = tmp_path / "fit.json"
    shown = run("fit", csv, "--target", "y", "--feature", "a", "--feature", "b", "--json", out).stdout
    assert "Intercept" in shown
    assert "P>|t|" in shown
    report = json.loads(out.read_text())
    assert list(report) == ["schema", "n", "family", "method", "level", "status", "coefficients", "diagnostics"]
    assert report["n"] == 5000
    assert report["status"] == "ok"
    assert list(report["coefficients"][0]) == [
        "name", "coef", "std_err", "t", "p", "ci_lower", "ci_upper", "df", "status", "flags",
    ]  # fmt: skip
    assert [row["name"] for row in report["coefficients"]] == ["Intercept", "a", "b"]


def test_json_to_stdout_is_only_json(csv):
    result = run(
        "fit", csv, "--target", "late", "--family", "binomial", "--feature", "b", "--json", "-", "--every", 2000
    )
    report = json.loads(result.stdout)
    assert report["family"] == "logistic"


def test_every_prints_intervals_as_they_narrow(csv):
    arguments = ("fit", csv, "--formula", "y ~ a + b + I(a * b) + I(2 * b)", "--every", 1000)
    header, *lines = run(*arguments).stdout.splitlines()[:6]
    assert header.split() == ["rows", "a", "b", "I(a", "*", "b)", "I(2", "*", "b)"]
    assert [line.split()[0] for line in lines] == ["1,000", "2,000", "3,000", "4,000", "5,000"]
    assert {line[header.index(" a ") + 1 :].count("(unidentified)") for line in lines} == {2}
    at = [header.index(name) for name in (" a ", " b ", " I(a", " I(2")]
    assert {line[place] for line in lines for place in at} == {" "}  # columns stand below each other
    header, _ = run(*arguments, "--show", "Intercept").stdout.splitlines()[:2]
    assert header.split() == ["rows", "Intercept"]
    with pytest.raises(HalfwidthError, match="no coefficient named 'aa'"):
        run(*arguments, "--show", "aa")


def test_the_lines_of_every_mark_doubts_and_wait_for_late_levels():
    row = {"coef": 1.0, "std_err": 0.5, "ci_lower": 0.0, "ci_upper": 2.0, "status": "ok"}
    lines = Lines(["kind[T.v]", "x"])
    first = lines.add({"n": 10, "coefficients": [row | {"name": "x", "status": "rare"}]})
    assert first.splitlines()[1].split() == ["10", "-", "1", "[0,", "2]", "!"]
    later = lines.add({"n": 2_000, "coefficients": [row | {"name": name} for name in ("x", "kind[T.v]")]})
    assert later.split() == ["2,000", "1", "[0,", "2]", "1", "[0,", "2]"]


def test_a_fit_without_intervals_is_drawn_too(csv, tmp_path):
    done = run("fit", csv, "--formula", "y ~ 0 + a + I(2 * a)", "--plot", tmp_path / "none.png")
    assert done.exit_code == 1
    assert (tmp_path / "none.png").stat().st_size > 10_000


def test_plot_is_drawn(csv, tmp_path):
    run("fit", csv, "--target", "y", "--feature", "a", "--plot", tmp_path / "fit.png")
    assert (tmp_path / "fit.png").stat().st_size > 10_000


def test_checkpoint_and_resume(csv, tmp_path):
    checkpoint = tmp_path / "run.ck"
    arguments = ("fit", csv, "--target", "y", "--feature", "a", "--checkpoint", checkpoint, "--json", "-")
    first = run(*arguments).stdout
    assert checkpoint.exists()
    again = run(*arguments, "--resume")
    assert again.stdout == first
    assert again.stderr == ""


def test_resuming_without_a_checkpoint_says_that_it_starts_afresh(csv, tmp_path):
    checkpoint = tmp_path / "run.ck"
    arguments = ("fit", csv, "--target", "y", "--feature", "a", "--json", "-")
    done = run(*arguments, "--checkpoint", checkpoint, "--resume")
    assert done.stderr == f"no checkpoint at {checkpoint} yet: starting from row 1\n"
    assert done.stdout == run(*arguments).stdout
    assert checkpoint.exists()


def test_undetermined_coefficients_are_marked_and_exit_with_one_only_if_there_is_no_interval(csv):
    result = run("fit", csv, "--formula", "y ~ a + I(2 * a)")
    assert result.exit_code == 0
    assert "a ! unidentified" in result.stdout
    assert "! unidentified: the rows do not determine a, I(2 * a)" in result.stdout
    result = run("fit", csv, "--formula", "y ~ 0 + a + I(2 * a)")
    assert result.exit_code == 1
    assert "no standard errors: unidentified" in result.stdout


def test_two_passes_over_stdin_are_refused(csv):
    with pytest.raises(HalfwidthError, match="passes must be 1"):
        run("fit", "-", "--target", "y", "--passes", 2, input=csv.read_text())


def test_a_pipe_into_the_real_command(csv):
    command = [
        sys.executable,
        "-c",
        "from halfwidth.cli import main; main()",
        "fit",
        "-",
        "--target",
        "y",
        "--feature",
        "a",
    ]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    with csv.open() as rows:
        done = subprocess.run(command, stdin=rows, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert "n = 5,000" in done.stdout
    assert done.stderr == ""
    bad = subprocess.run(
        [*command[:-3], "nothing"], input="a,y\n1,2\n", capture_output=True, text=True, env=environment, check=False
    )
    assert bad.returncode == 2
    assert bad.stderr.startswith("error: ")


def test_an_unknown_data_set_is_refused_with_the_names_of_all():
    with pytest.raises(HalfwidthError, match="no data set named 'nope'; known: beijing, credit, flights"):
        run("data", "nope")


def test_data_writes_a_file_ready_to_fit(monkeypatch, tmp_path):
    import halfwidth.streams

    prepared = tmp_path / "prepared.parquet"
    pd.DataFrame({"late": [0.0, 1.0]}).to_parquet(prepared)
    monkeypatch.setattr(halfwidth.streams, "regression_file", lambda name, raw: prepared)
    shown = run("data", "flights", "--out", tmp_path / "out" / "flights.parquet").stdout
    assert (tmp_path / "out" / "flights.parquet").read_bytes() == prepared.read_bytes()
    assert "--target late --family logistic --time time" in shown


def test_a_saved_model_is_shown_and_predicts(csv, tmp_path):
    saved, out = tmp_path / "model.hw", tmp_path / "new" / "p.csv"
    shown = run("fit", csv, "--formula", "y ~ a + I(b**2)", "--save", saved).stdout
    again = run("show", saved).stdout
    assert shown.strip() in again
    assert "reads the columns a, b" in again
    assert json.loads(run("show", saved, "--json", "-").stdout)["n"] == 5000
    lines = run("predict", saved, csv, "--interval", "mean", "--level", 0.9).stdout.splitlines()
    assert lines[0] == "mean,mean_ci_lower,mean_ci_upper"
    assert len(lines) == 5001
    assert "5,000 predictions" in run("predict", saved, csv, "--out", out).stdout
    assert pd.read_csv(out)["mean"].tolist() == [float(line.split(",")[0]) for line in lines[1:]]
    run("predict", saved, csv, "--out", tmp_path / "p.parquet", "--interval", "observation")
    assert list(pd.read_parquet(tmp_path / "p.parquet")) == ["mean", "obs_ci_lower", "obs_ci_upper"]
    with pytest.raises(HalfwidthError, match=r"out must end in \.csv or \.parquet"):
        run("predict", saved, csv, "--out", tmp_path / "p.xlsx")
    with pytest.raises(HalfwidthError, match="could not be written: its folder is a file"):
        run("predict", saved, csv, "--out", csv / "p.csv")


@pytest.mark.parametrize(("family", "names"), [("linear", "mean"), ("multinomial", "p[0],p[1],p[2]")])
def test_predictions_of_no_rows_have_a_header(family, names, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.standard_normal(300), "y": rng.integers(0, 3, 300)})
    frame.to_csv(tmp_path / "x.csv", index=False)
    (tmp_path / "none.csv").write_text("a\n")
    saved = tmp_path / "model.hw"
    run("fit", tmp_path / "x.csv", "--target", "y", "--family", family, "--save", saved)
    for name in ("out.csv", "out.parquet"):
        assert "0 predictions" in run("predict", saved, tmp_path / "none.csv", "--out", tmp_path / name).stdout
    assert (tmp_path / "out.csv").read_text() == f"{names}\n"
    assert ",".join(pd.read_parquet(tmp_path / "out.parquet").columns) == names


def test_rows_without_a_prediction_are_counted_and_keep_their_line(tmp_path):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"x": rng.standard_normal(400), "kind": np.resize(["a", "b"], 400), "y": rng.random(400)})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    saved, new, out = tmp_path / "model.hw", tmp_path / "new.csv", tmp_path / "out.csv"
    run("fit", tmp_path / "rows.csv", "--formula", "y ~ x + kind", "--save", saved)
    frame.head(6).assign(kind=["a", "b", "new", "a", "b", "a"], x=[0.0, 1.0, 2.0, None, 4.0, 5.0]).to_csv(
        new, index=False
    )
    with pytest.raises(HalfwidthError, match=r"row 3, .*no coefficient for the level 'new'; .* --bad-rows skip"):
        run("predict", saved, new)
    told = run("predict", saved, new, "--bad-rows", "skip", "--out", out)
    assert "out.csv: 4 predictions" in told.stdout
    assert "2 of 6 rows have no prediction, their cells are empty: missing value 1, unknown level 1" in told.stderr
    assert np.isnan(pd.read_csv(out)["mean"]).tolist() == [False, False, True, True, False, False]
    run("fit", tmp_path / "rows.csv", "--formula", "y ~ x + kind", "--save", saved, "--unknown-level", "other")
    with pytest.raises(
        HalfwidthError, match=r"row 3, .*no coefficient for the level 'new'"
    ):  # the fit met no other level
        run("predict", saved, new)


def test_predictions_that_rest_on_a_refused_coefficient_have_no_interval(tmp_path):
    rng = np.random.default_rng(1)
    kind = np.resize(["a", "b"], 4_000)
    kind[50::100] = "c"
    frame = pd.DataFrame({"kind": kind, "y": np.where(kind == "c", 1, rng.random(4_000) < 0.4)})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    pd.DataFrame({"kind": ["a", "c", "b"]}).to_csv(tmp_path / "new.csv", index=False)
    saved = tmp_path / "model.hw"
    run("fit", tmp_path / "rows.csv", "--formula", "y ~ kind", "--family", "logistic", "--save", saved)
    told = run("predict", saved, tmp_path / "new.csv", "--interval", "mean")
    found = pd.read_csv(io.StringIO(told.stdout))
    assert (
        np.isnan(found["mean_ci_lower"]).tolist() == np.isnan(found["mean_ci_upper"]).tolist() == [False, True, False]
    )
    assert (
        "1 of 3 predictions rest on coefficients that have no interval (kind[T.c]), and have none either" in told.stderr
    )
    assert "1 of 3 predictions rest" in run("predict", saved, tmp_path / "new.csv").stderr
    frame["y"] = np.where(kind == "c", 2, frame["y"])
    frame.to_csv(tmp_path / "rows.csv", index=False)
    run("fit", tmp_path / "rows.csv", "--formula", "y ~ kind", "--family", "multinomial", "--save", saved)
    found = pd.read_csv(io.StringIO(run("predict", saved, tmp_path / "new.csv", "--interval", "mean").stdout))
    assert np.isnan(found["p[2]_ci_lower"]).tolist()[1]


def test_a_level_of_its_own_for_unknown_ones_predicts_them(tmp_path):
    rng = np.random.default_rng(4)
    kind = np.resize(["a", "b"], 12_000)
    kind[11_000:] = "c"
    frame = pd.DataFrame({"kind": kind, "y": (kind == "c") + rng.random(12_000)})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    saved = tmp_path / "model.hw"
    shown = run(
        "fit", tmp_path / "rows.csv", "--formula", "y ~ kind", "--unknown-level", "other", "--save", saved
    ).stdout
    assert "reference levels: kind = a" in shown
    pd.DataFrame({"kind": ["a", "never seen"]}).to_csv(tmp_path / "new.csv", index=False)
    low, high = pd.read_csv(io.StringIO(run("predict", saved, tmp_path / "new.csv").stdout))["mean"]
    assert (low, high) == (pytest.approx(0.5, abs=0.05), pytest.approx(1.5, abs=0.05))


def test_the_summary_says_which_class_and_which_levels(tmp_path):
    rng = np.random.default_rng(5)
    kind = np.resize(["a", "b"], 12_000)
    kind[11_000:] = "c"
    frame = pd.DataFrame({"kind": kind, "bought": np.where(rng.random(12_000) < 0.4, "yes", "no")})
    frame.to_parquet(tmp_path / "rows.parquet")
    arguments = ("fit", tmp_path / "rows.parquet", "--formula", "bought ~ kind", "--family", "logistic")
    shown = run(*arguments, "--save", tmp_path / "model.hw").stdout
    assert "log odds of yes against no\nreference levels: kind = a\nlate levels: kind = c\n" in shown
    assert shown in run("show", tmp_path / "model.hw").stdout
    facts = json.loads(run(*arguments, "--json", "-").stdout)["diagnostics"]
    assert (facts["modelled_class"], facts["baseline"]) == ("yes", "no")
    assert (facts["reference_levels"], facts["late_levels"]) == ({"kind": "a"}, {"kind": "c"})


def test_time_is_compared_within_groups(tmp_path):
    rng = np.random.default_rng(6)
    panel = pd.DataFrame({"id": np.repeat(np.arange(100), 120), "t": np.tile(np.arange(120), 100)})
    panel = panel.assign(x=rng.standard_normal(12_000), y=rng.standard_normal(12_000))
    panel.to_csv(tmp_path / "panel.csv", index=False)
    arguments = ("--target", "y", "--feature", "x", "--time", "t")
    assert "100 groups" in run("fit", tmp_path / "panel.csv", *arguments, "--group", "id").stdout
    with pytest.raises(HalfwidthError, match=r"row 121, .*earlier than that of a row before it; .*\(--group\)"):
        run("fit", tmp_path / "panel.csv", *arguments)
    panel.loc[8_192, "t"] = -1  # the first row of the second chunk, inside a group
    panel.to_csv(tmp_path / "panel.csv", index=False)
    with pytest.raises(HalfwidthError, match=r"row 8193, .*the row before it, which is of the same group"):
        run("fit", tmp_path / "panel.csv", *arguments, "--group", "id")


def test_separators_and_databases_on_the_command_line(csv, tmp_path):
    text = csv.read_text().replace(",", ";").replace(".", ",")
    (tmp_path / "german.csv").write_text(text)
    shown = run("fit", tmp_path / "german.csv", "--target", "y", "--feature", "a").stdout
    assert "csv: separator ';', decimal ','" in shown
    with sqlite3.connect(tmp_path / "x.db") as connection:
        pd.read_csv(csv).to_sql("t", connection, index=False)
    query = "select y, a from t order by rowid"
    other = run("fit", f"sqlite:///{tmp_path / 'x.db'}", "--query", query, "--target", "y", "--feature", "a").stdout
    assert [line for line in shown.splitlines() if line.startswith("a ")] == [
        line for line in other.splitlines() if line.startswith("a ")
    ]


def test_a_late_level_in_the_picture_and_on_the_way(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=16_000), "kind": np.where(np.arange(16_000) < 12_000, "u", "v")})
    frame["y"] = frame["a"] + (frame["kind"] == "v") + rng.normal(size=16_000)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    options = ["--plot", tmp_path / "fit.png", "--every", 7000, "--show", "kind[T.v]"]
    shown = run("fit", tmp_path / "rows.csv", "--formula", "y ~ a + kind", *options).stdout
    _, early, late = shown.splitlines()[:3]
    assert (early.split()[:2], late.split()[:2]) == (["7,000", "-"], ["14,000", late.split()[1]])
    assert "[" in late
    assert (tmp_path / "fit.png").stat().st_size > 10_000


def test_closed_standard_input_is_one_line_and_exit_code_2():
    code = "from halfwidth.cli import main; main()"
    command = f"exec {sys.executable} -c '{code}' fit - --target y <&-"
    result = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 2
    assert result.stderr == "error: source '-' needs standard input, which is closed; pipe rows into the command\n"
