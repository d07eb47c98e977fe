"""Every script in examples/ runs, and says what its page says that it shows."""

import os
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SAYS = {
    "ask_and_tell.py": "equilibrium [1.688  1.2532]: [ True  True]",
    "auto_with_feedback.py": "the stable point is [2. 2.]",
    "cartpole_values.py": "upright: 17.7 +- 0.1 discounted steps",
    "checkpoint_and_resume.py": "the same bits: True",
    "fit_a_file.py": "standard errors for independent rows would be 2.1 times too small",
    "partial_fit_loop.py": "covered: [ True  True  True  True]",
    "study_your_own_problem.py": "plug-in        covers 0.",
    "watch_your_own_loop.py": "95% by equal-batch-means, n = 20,000",
}


@pytest.mark.parametrize("script", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_an_example_runs(script, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / script), run_name="__main__")
    assert SAYS[script] in capsys.readouterr().out
    assert os.listdir(tmp_path) == [], "an example leaves nothing behind"


def test_the_page_lists_every_example():
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert all(f"[{script}]({script})" in page for script in SAYS)
