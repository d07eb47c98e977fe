"""`halfwidth reproduce all --scale smoke` gives the rows it gave when they were written down, and every file.

`python tests/golden/test_reproduce.py` writes the rows again: do so only when a change of the numbers is meant.
"""

import json
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from halfwidth.paper import TARGETS, reproduce
from halfwidth.paper.arms import SCALES
from halfwidth.paper.comparisons import last
from halfwidth.paper.run_arms import Runner
from halfwidth.paper.target import Order
from halfwidth.study.backends import LocalBackend
from halfwidth.study.store import Store

GOLDEN = Path(__file__).with_name("reproduce.json")
LABELS = ("variant", "model", "dim", "epsilon", "a", "movers", "name", "step")
SCORES = (
    "coverage coverage_paper width mis mis_paper mis_ratio sigma_error sigma_error_paper bias_over_sd "
    "estimate_bias_over_sd estimate_sigma_error truncations slope slope_se slope_paper"
).split()
RATE_SCORES = "sigma_error sigma_bias sigma_spread local_slope local_slope_se coverage width bias_over_sd".split()
PICTURES = (
    "synthetic-as-printed",
    "synthetic-as-printed-exact",
    "times",
    "rate",
    "rate-coverage",
    "rate-steps",
    "rate-dimension",
    "rate-auto",
)
WITHOUT_PAIRS = ("times", "rate")


def run_smoke(folder):
    store = Store(folder / "studies")
    reproduce(
        list(TARGETS.values()), Order(SCALES["smoke"], 0), Runner(LocalBackend(1), store, lambda text: None), folder
    )


def golden_rows(folder):
    """The last row of every arm of the paper's own methods, by target; times are no matter of gold."""
    found = {}
    for name in TARGETS:
        if name != "times":
            rows = [row for row in pq.read_table(folder / f"{name}.parquet").to_pylist() if row["name"] != "auto"]
            kept = last(rows) if name == "rate" else [row for row in rows if row["slope"] is not None]
            found[name] = [{key: row[key] for key in (*LABELS, *scores(name)) if key in row} for row in kept]
    return found


def scores(name):
    return RATE_SCORES if name == "rate" else SCORES


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reproduced")
    run_smoke(folder)
    return folder


def test_the_smoke_run_gives_its_golden_rows(smoke):
    golden, found = json.loads(GOLDEN.read_text(encoding="utf-8")), golden_rows(smoke)
    assert found.keys() == golden.keys()
    for target, expected in golden.items():
        assert len(found[target]) == len(expected)
        for row, gold in zip(found[target], expected, strict=True):
            assert {key: row.get(key) for key in LABELS} == {key: gold.get(key) for key in LABELS}
            measured = {key: row[key] for key in scores(target)}
            empty = {key for key in measured if gold[key] is None}
            assert {key for key in measured if measured[key] is None} == empty, (target, gold)
            numbers = {key: gold[key] for key in measured if key not in empty}
            found_numbers = {key: measured[key] for key in numbers}
            assert found_numbers == pytest.approx(numbers, rel=1e-6, abs=1e-9), (target, gold)


def test_every_target_leaves_rows_comparisons_pictures_and_a_page(smoke):
    pictures = {f"{name}{kind}" for name in TARGETS if name not in WITHOUT_PAIRS for kind in ("", "-exact")}
    pictures |= set(PICTURES)
    for name in pictures:
        assert (smoke / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (smoke / f"{name}.svg").read_text(encoding="utf-8")[:1000]
    for name in TARGETS:
        page = (smoke / f"{name}.md").read_text(encoding="utf-8")
        comparisons = pq.read_table(smoke / f"{name}-comparisons.parquet").to_pylist()
        assert all(row["where"] in page and row["verdict"] in page for row in comparisons)
        assert "![" in page


def test_the_stand_in_is_labelled_as_one(smoke):
    assert "synthetic stand-in, not GiveMeSomeCredit" in (smoke / "credit.md").read_text(encoding="utf-8")


def test_the_index_lists_targets_and_choices(smoke):
    index = (smoke / "index.md").read_text(encoding="utf-8")
    assert all(f"]({name}.md)" in index for name in TARGETS)
    assert "| the paper says | we chose | why |" in index


def test_every_time_of_the_papers_table_has_one_beside_it(smoke):
    rows = pq.read_table(smoke / "times.parquet").to_pylist()
    assert len(rows) == 24
    assert all(row["ms"] > 0 and row["ms_paper"] > 0 for row in rows)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        run_smoke(Path(name))
        GOLDEN.write_text(json.dumps(golden_rows(Path(name)), indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"{GOLDEN}\n")
