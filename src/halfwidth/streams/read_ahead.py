"""Blocks read by a thread of its own, a few ahead of the one who takes them.

Arrow decodes files without Python's lock, so that reading and learning overlap. The blocks, their order and the error
that ends them are those of the iterator; how far the thread is ahead is bounded in bytes, whatever the width of a row.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator

from halfwidth.streams.block import Block

MOST_BYTES = 1 << 24


class _Reader:
    """The thread, the blocks that nobody has taken yet, and how the reading ended."""

    def __init__(self, blocks: Iterator[Block], most_bytes: int, prepare: Callable[[Block], Block]) -> None:
        self._source, self._most, self._prepare = blocks, most_bytes, prepare
        self._ready: deque[Block] = deque()
        self._bytes = 0
        self._ended = self._stopped = False
        self._error: BaseException | None = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._read, name="halfwidth-reader", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _read(self) -> None:
        error: BaseException | None = None
        try:
            for block in self._source:
                if not self._put(self._prepare(block)):
                    break
        except BaseException as raised:  # whatever it is, it belongs to the one who takes the blocks
            error = raised
        with self._changed:
            self._ended, self._error = True, error
            self._changed.notify_all()

    def _put(self, block: Block) -> bool:
        """Wait until there is space, and hand the block over; False if nobody wants any more."""
        size = int(block.batch.nbytes)
        with self._changed:
            while self._ready and self._bytes + size > self._most and not self._stopped:
                self._changed.wait()
            self._ready.append(block)
            self._bytes += size
            self._changed.notify_all()
            return not self._stopped

    def take(self) -> Block | None:
        """The next block; None at the end; the error in front of which the blocks ended."""
        with self._changed:
            while not self._ready and not self._ended:
                self._changed.wait()
            if self._ready:
                block = self._ready.popleft()
                self._bytes -= int(block.batch.nbytes)
                self._changed.notify_all()
                return block
            if self._error is not None:
                raise self._error
            return None

    def stop(self) -> None:
        """Let the thread end, and close what it read from."""
        with self._changed:
            self._stopped = True
            self._ready.clear()
            self._bytes = 0
            self._changed.notify_all()
        if threading.current_thread() is self._thread:  # a garbage collection may happen anywhere
            return
        self._thread.join()
        close = getattr(self._source, "close", None)
        if close is not None:
            close()


def read_ahead(
    blocks: Iterator[Block], most_bytes: int | None = None, prepare: Callable[[Block], Block] = lambda block: block
) -> Iterator[Block]:
    """The same blocks, read and prepared by a thread that is at most so many bytes, or one block, ahead."""
    reader = _Reader(blocks, MOST_BYTES if most_bytes is None else most_bytes, prepare)
    reader.start()
    try:
        while (block := reader.take()) is not None:
            yield block
    finally:
        reader.stop()
