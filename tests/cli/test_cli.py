"""The command line as a user meets it: in a process of its own."""

import json
import os
import subprocess
import sys

import pytest
import typer

from halfwidth.cli.app import app


def halfwidth(*args, cwd=None):
    command = [sys.executable, "-c", "from halfwidth.cli import main; main()", *map(str, args)]
    environment = os.environ | {"COLUMNS": "160"}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, check=False)


def test_help_names_every_command():
    shown = halfwidth("--help").stdout
    assert all(name in shown for name in ("demo", "study", "problems", "methods"))


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["study", "sed-linear"], "no problem named 'sed-linear'"),
        (["study", "seed-linear", "--methods", "x"], "no method named 'x'"),
        (["study", "seed-linear", "--level", "95"], "level must lie strictly between 0 and 1"),
        (["study", "iid-linear", "--epsilon", "0.5"], "has no setting 'epsilon'"),
        (["study", "seed-linear", "--exponent", "0.4"], "1/2 < a < 1"),
        (["study", "seed-linear", "--jobs", "0"], "jobs must be -1 or at least 1"),
        (["demo", "--rows", "10"], "rows must be an integer of at least 5000"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(arguments, message):
    done = halfwidth(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


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
        "print(sum(l._draw._compiled.stats.cache_hits.values()))"
    )
    outputs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True) for _ in range(2)]
    assert outputs[1].stdout.strip() == "1"
