"""The notebook of examples/ runs from the first cell to the last, and is kept without outputs."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "examples" / "regression.ipynb"


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    folder = tmp_path_factory.mktemp("notebook")
    NotebookClient(
        notebook, timeout=300, coalesce_streams=True, resources={"metadata": {"path": str(folder)}}
    ).execute()
    assert list(folder.iterdir()) == [], "a notebook leaves nothing behind"
    return notebook


def outputs(notebook, word):
    """The outputs of the cell that contains the word."""
    (cell,) = [cell for cell in notebook.cells if cell.cell_type == "code" and word in cell.source]
    return cell.outputs


def test_the_fit_shows_progress_and_a_table(ran):
    progress, summary = outputs(ran, "progress=True")
    assert "rows/s, " in progress["data"]["text/plain"]
    assert "100%" in progress["data"]["text/plain"]
    assert "<table>" in summary["data"]["text/html"]
    assert "day[T.weekend]" in summary["data"]["text/plain"]


def test_the_picture_is_shown(ran):
    (picture,) = outputs(ran, "result.plot()")
    assert len(picture["data"]["image/png"]) > 50_000


def test_predictions_tests_and_comparison_say_what_the_prose_says(ran):
    (frame,) = outputs(ran, "summary_frame")
    assert "obs_ci_lower" in frame["data"]["text/plain"]
    (said,) = outputs(ran, "result.compare(")
    assert "differs: ['day[T.weekend]: difference']" in said["text"]
    (same,) = outputs(ran, "model.save(")
    assert same["text"] == "True\n"


def test_the_notebook_is_kept_without_outputs():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(cells) == 8
    assert all(cell.outputs == [] and cell.execution_count is None for cell in cells)
