"""The command line as a user meets it: in a process of its own."""

import json
import subprocess
import sys

import pytest
import typer

from command_line import assert_refused, halfwidth, refused
from halfwidth.cli.app import app
from halfwidth.cli.params import read_params


def test_help_names_every_command():
    shown = halfwidth("--help").stdout
    assert all(name in shown for name in ("demo", "study", "problems", "methods"))


def test_the_package_runs_as_a_module():
    shown = subprocess.run(
        [sys.executable, "-m", "halfwidth", "methods", "--json", "-"], capture_output=True, check=True
    )
    assert json.loads(shown.stdout) == json.loads(halfwidth("methods", "--json", "-").stdout)


@pytest.mark.parametrize("kind", ["problems", "methods"])
def test_lists_come_as_a_table_and_as_json(kind):
    rows = json.loads(halfwidth(kind, "--json", "-").stdout)
    table = halfwidth(kind).stdout
    assert rows
    assert all(row["name"] in table for row in rows)


def test_every_option_that_writes_says_that_folders_are_made_and_makes_them(tmp_path):
    for name, command in typer.main.get_command(app).commands.items():
        for option in command.params:
            if option.name in ("json", "plot", "out") and option.metavar != "DIR":
                assert "Missing folders are made." in option.help, (name, option.name)
    assert halfwidth("problems", "--json", tmp_path / "a" / "b" / "problems.json").returncode == 0
    assert json.loads((tmp_path / "a" / "b" / "problems.json").read_text())


def test_study_prints_a_table_and_writes_json_and_picture(tmp_path):
    arguments = "seed-linear --dim 2 --steps 2000 --replicates 4 --jobs 1 --epsilon 0 --learner truncated".split()
    done = halfwidth("study", *arguments, "--json", tmp_path / "rows.json", "--plot", tmp_path / "study.png")
    assert done.returncode == 0, done.stderr
    assert "obm-normal" in done.stdout
    assert "replicates: 4 of 4" in done.stderr
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert {row["method"] for row in rows} == {"obm", "obm-normal"}
    assert rows[0]["learner"] == "truncated"
    assert rows[0]["params"]["epsilon"] == 0.0
    assert (tmp_path / "study.png").read_bytes().startswith(b"\x89PNG")


def test_study_json_on_stdout_is_nothing_but_json():
    done = halfwidth("study", "performative-mean", "--steps", 2000, "--replicates", 2, "--jobs", 1, "--json", "-")
    assert json.loads(done.stdout)[0]["problem"] == "performative-mean"


def test_parameters_of_a_problem_are_listed_and_can_be_set():
    listed = {row["name"]: row["settings"] for row in json.loads(halfwidth("problems", "--json", "-").stdout)}
    assert listed["swap-game"] == {"rho": 0.5, "theta_0": None}
    assert "rho=0.5, theta_0" in halfwidth("problems").stdout
    arguments = "study swap-game --param rho=0.9 --param theta_0=1,-1 --steps 2000 --replicates 2 --jobs 1 --json -"
    done = halfwidth(*arguments.split())
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["params"] == {"rho": 0.9, "theta_0": [1.0, -1.0]}


@pytest.mark.parametrize(
    ("problem", "texts", "settings"),
    [
        ("ar-linear", ["dim=3", "phi = 0.9", "theta_r=0,0.5,1"], {"dim": 3, "phi": 0.9, "theta_r": [0.0, 0.5, 1.0]}),
        ("performative-mean", ["rho=1", "epsilon=-1e-2"], {"rho": 1.0, "epsilon": -0.01}),
        ("strategic-credit", ["population=a=b.npz", "movers=20"], {"population": "a=b.npz", "movers": 20}),
    ],
)
def test_parameters_are_read_as_what_the_problem_expects(problem, texts, settings):
    found = read_params(problem, texts)
    assert found == settings
    assert [type(value) for value in found.values()] == [type(value) for value in settings.values()]


@refused(
    (["study", "sed-linear"], "no problem named 'sed-linear'"),
    (["study", "seed-linear", "--methods", "x"], "no method named 'x'"),
    (["study", "seed-linear", "--level", "95"], "level must lie strictly between 0 and 1"),
    (["study", "iid-linear", "--epsilon", "0.5"], "has no setting 'epsilon'"),
    (["study", "swap-game", "--param", "roh=1"], "no parameter of swap-game named 'roh'; known: rho, theta_0"),
    (["study", "swap-game", "--param", "rho"], "param must read NAME=VALUE; got 'rho'"),
    (["study", "swap-game", "--param", "rho=1,2"], "param rho must be a number; got '1,2'"),
    (["study", "ar-linear", "--param", "dim=2.5"], "param dim must be a whole number; got '2.5'"),
    (["study", "ar-linear", "--param", "theta_r=up"], "param theta_r must read like 0,0.5,1; got 'up'"),
    (["study", "ar-linear", "--param", "phi=0", "--param", "phi=1"], "param phi is given twice"),
    (["study", "ar-linear", "--dim", "2", "--param", "dim=3"], "dim is given twice: as --dim and as --param"),
    (["study", "seed-linear", "--exponent", "0.4"], "1/2 < a < 1"),
    (["study", "seed-linear", "--jobs", "0"], "jobs must be -1 or at least 1"),
    (["study", "seed-linear", "--plot", "a.jpg"], "plot must end in .png, .svg or .pdf; got 'a.jpg'"),
    (["demo", "--rows", "10"], "rows must be an integer of at least 5000"),
)
def test_bad_input_is_one_clear_line_and_exit_code_2(arguments, message):
    assert_refused(halfwidth(*arguments), message)


def test_demo_without_a_terminal_prints_plain_lines_and_draws(tmp_path):
    done = halfwidth("demo", "--rows", 20_000, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "rows   " in done.stdout
    assert "truth" in done.stdout
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("heavy", ["numba", "scipy", "matplotlib", "sklearn", "pyarrow", "joblib", "pandas"])
def test_importing_the_package_and_the_command_line_loads_nothing_heavy(heavy):
    code = f"import sys, halfwidth, halfwidth.cli.app; sys.exit({heavy!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_kernels_of_built_in_problems_come_from_the_disk_the_second_time():
    code = (
        "import halfwidth as hw; l = hw.SGD(hw.problem('iid-linear', dim=2)); l.run(10);"
        "print(sum(l._drawing._compiled.stats.cache_hits.values()))"
    )
    outputs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True) for _ in range(2)]
    assert outputs[1].stdout.strip() == "1"
