"""`halfwidth reproduce` and `halfwidth data credit` as a user meets them."""

import pyarrow.parquet as pq

from command_line import assert_refused, halfwidth, refused


def test_a_run_that_is_resumed_repeats_nothing_and_gives_the_same_rows(tmp_path):
    arguments = ("reproduce", "dependence-linear", "--jobs", 1, "--seed", 3, "--out", tmp_path / "out")
    done = halfwidth(*arguments, cache=tmp_path)
    assert done.returncode == 0, done.stderr
    first = pq.read_table(tmp_path / "out" / "dependence-linear.parquet")
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "reproduce").rglob("*.span")}
    again = halfwidth(*arguments, "--resume", cache=tmp_path)
    assert again.returncode == 0, again.stderr
    assert pq.read_table(tmp_path / "out" / "dependence-linear.parquet") == first
    assert kept
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "reproduce").rglob("*.span")} == kept


@refused(
    (["reproduce", "bootstraps"], "no target named 'bootstraps'"),
    (["reproduce", "times", "--scale", "large"], "no scale named 'large'"),
    (["reproduce", "times", "--backend", "slurm"], "backend must be 'local' or 'dask'"),
    (["reproduce", "credit", "--path", "nowhere.csv"], "path must be the CSV file of the credit data"),
    (["reproduce", "credit"], "the credit data could not be fetched"),
    (["data", "credit"], "the credit data could not be fetched"),
)
def test_bad_input_is_one_clear_line_and_exit_code_2(arguments, message, tmp_path):
    assert_refused(halfwidth(*arguments, cache=tmp_path), message)
