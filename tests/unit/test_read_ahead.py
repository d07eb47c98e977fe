"""Blocks read ahead by a thread are the blocks, in order, and an early end stops the thread."""

import threading

import numpy as np
import pyarrow as pa
import pytest

from halfwidth.errors import BadRow
from halfwidth.streams import open_stream
from halfwidth.streams.block import Block
from halfwidth.streams.read_ahead import read_ahead


def blocks(count, log, failure=None):
    try:
        for j in range(count):
            log.append(j)
            yield Block(pa.record_batch({"x": np.full(100, float(j))}), "file", 100 * j)
        if failure is not None:
            raise failure
    finally:
        log.append("closed")


def readers():
    return [thread for thread in threading.enumerate() if thread.name == "halfwidth-reader"]


def test_the_same_blocks_in_the_same_order():
    log = []
    found = [block.before for block in read_ahead(blocks(50, log), 1_000)]
    assert found == [100 * j for j in range(50)]
    assert log[-1] == "closed"
    assert not readers()


def test_an_error_comes_after_the_blocks_before_it():
    wanted = BadRow.at("file", 501, "x", "why", "detail", "advice")
    taken = read_ahead(blocks(5, [], wanted))
    assert [next(taken).before for _ in range(5)] == [0, 100, 200, 300, 400]
    with pytest.raises(BadRow) as caught:
        next(taken)
    assert caught.value is wanted


def test_who_stops_early_ends_the_thread_and_closes_the_source():
    log = []
    taken = read_ahead(blocks(10_000, log), 4_000)
    for _ in range(3):
        next(taken)
    taken.close()
    assert not readers()
    assert log[-1] == "closed"
    assert len(log) < 20  # 800 bytes each: five fit, one is in hand


def test_a_block_larger_than_the_bound_passes_alone():
    assert len(list(read_ahead(blocks(5, []), 1))) == 5


def test_a_bad_row_in_the_middle_of_a_file_ends_the_thread(tmp_path):
    path = tmp_path / "rows.csv"
    rows = [f"{j},{j % 7}" for j in range(300_000)]
    rows[20_000] = "1,none"
    path.write_text("y,x\n" + "\n".join(rows) + "\n")
    with pytest.raises(BadRow, match="row 20001") as caught:  # whose traceback keeps the frames of the stream
        list(open_stream(path, target="y"))
    assert not readers(), caught


def test_the_thread_prepares_every_block():
    found = list(read_ahead(blocks(5, []), prepare=lambda block: block.cut(0, block.before // 100)))
    assert [block.rows for block in found] == [0, 1, 2, 3, 4]
