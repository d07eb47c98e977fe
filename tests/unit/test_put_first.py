"""The first of several processes that prepare a file keeps its place."""

import os

import pytest

from halfwidth.streams.datasets.fetch import put_first


def test_a_file_that_is_there_already_stays(tmp_path):
    place, mine = tmp_path / "data", tmp_path / ".data.1"
    place.write_text("theirs")
    before = place.stat().st_ino
    mine.write_text("mine")
    put_first(mine, place)
    assert (place.read_text(), place.stat().st_ino) == ("theirs", before)
    assert not mine.exists()


@pytest.mark.parametrize("links", [True, False])
def test_the_first_file_takes_its_place(tmp_path, monkeypatch, links):
    def refuses(*paths):
        raise OSError("no hard links here")

    if not links:
        monkeypatch.setattr(os, "link", refuses)
    mine = tmp_path / ".data.1"
    mine.write_text("mine")
    put_first(mine, tmp_path / "data")
    assert (tmp_path / "data").read_text() == "mine"
    assert not mine.exists()
