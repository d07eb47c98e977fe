"""Bytes of a file or of standard input: decompressed, and checked against what the file was when it was found.

A file that is truncated, extended or replaced while it is read never ends quietly: the bytes up to there come out, and
then `ChangedFile`. Nothing is memory-mapped, because touching a mapped page behind a truncation kills the process.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import Any

from halfwidth.streams.block import need

BLOCK_BYTES = 1 << 20
LONGEST_ROW = 1 << 22
_PIECE_BYTES = 1 << 12
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}


class ChangedFile(OSError):
    """A file that is no longer what it was when reading began."""


@dataclass(frozen=True)
class Stamp:
    """What identifies the content of a regular file, as far as its directory entry tells."""

    device: int
    inode: int
    size: int
    modified: int

    @classmethod
    def of(cls, status: os.stat_result) -> Stamp | None:
        """The stamp of a regular file; None for a pipe or a device, which has none."""
        if not stat.S_ISREG(status.st_mode):
            return None
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)

    def check(self, status: os.stat_result) -> None:
        """Raise `ChangedFile` unless the file is still the same."""
        now = Stamp.of(status)
        if now == self:
            return
        if now is None or (now.device, now.inode) != (self.device, self.inode):
            raise ChangedFile("another file has taken its place since it was first opened")
        if now.size != self.size:
            verb = "grew" if now.size > self.size else "shrank"
            raise ChangedFile(f"it {verb} from {self.size:,} to {now.size:,} bytes while it was read")
        raise ChangedFile("it was written to while it was read")


class CheckedFile:
    """A regular file opened for reading in order, whose end is checked against its stamp."""

    def __init__(self, name: str, stamp: Stamp | None) -> None:
        self.raw = open(name, "rb", buffering=0)  # noqa: SIM115 (closed by `close`)
        self._stamp = stamp or Stamp.of(os.fstat(self.raw.fileno()))
        self._left = None if self._stamp is None else self._stamp.size
        try:
            self.check()
        except ChangedFile:
            self.close()
            raise

    def read(self, size: int) -> bytes:
        """At most `size` bytes, none beyond the size that the file had at first; the end is checked."""
        wanted = size if self._left is None else min(size, self._left)
        piece = self.raw.read(wanted) if wanted else b""
        if self._left is not None:
            self._left -= len(piece)
            if not piece:
                self.check()
        return piece

    @property
    def done(self) -> int:
        """How many bytes were read, of those that it had at first."""
        return 0 if self._stamp is None or self._left is None else self._stamp.size - self._left

    def check(self) -> None:
        """Raise `ChangedFile` unless the file is what it was."""
        if self._stamp is not None:
            self._stamp.check(os.fstat(self.raw.fileno()))

    def close(self) -> None:
        """Close the file."""
        self.raw.close()


class _Readable:
    """What Arrow's decompressor asks of a Python file."""

    closed = False

    def __init__(self, source: Any) -> None:
        self.read = source.read

    def readable(self) -> bool:
        return True

    def flush(self) -> None:
        """Nothing is buffered here."""

    def close(self) -> None:
        """The source is closed by whoever opened it."""


class ByteStream:
    """Blocks of bytes; a failure waits until what was read before it has come out.

    Compressed bytes are asked for in small pieces, because a decompressor that fails keeps nothing of the piece it was
    asked for. Nothing reads ahead on another thread, as Arrow's own CSV stream does: there a failure overtakes good
    rows, at random.

    Parameters
    ----------
    source
        Anything with `read(size)`.
    compression
        "gzip", "zstd", "bz2" or None; "sniff" finds out by the first bytes.
    """

    def __init__(self, source: Any, compression: str | None = None) -> None:
        self._source, self._front = source, b""
        self._failure: Exception | None = None
        if compression == "sniff":
            self._front = source.read(6)
            compression = next((kind for magic, kind in _MAGIC.items() if self._front.startswith(magic)), None)
        self._piece = BLOCK_BYTES
        if compression is not None:
            front, self._front = self._front, b""
            readable = _Readable(_Joined(front, source) if front else source)
            self._source = need("pyarrow").CompressedInputStream(
                need("pyarrow").PythonFile(readable, mode="r"), compression
            )
            self._piece = _PIECE_BYTES

    def push_back(self, front: bytes) -> None:
        """Let these bytes come out first at the next read."""
        self._front = front + self._front

    def read(self, size: int | None = None) -> bytes:
        """At most `size` bytes, or a block; empty at the end, or where the stream fails."""
        wanted = BLOCK_BYTES if size is None else size
        pieces, self._front = [self._front[:wanted]], self._front[wanted:]
        got = len(pieces[0])
        while got < wanted and self._failure is None:
            try:
                piece = bytes(self._source.read(min(self._piece, wanted - got)))
            except Exception as error:  # whatever a decompressor or a disk raises, after the rows before it
                self._failure = error
                break
            if not piece:
                break
            pieces.append(piece)
            got += len(piece)
        return b"".join(pieces)

    @property
    def failed(self) -> bool:
        """Whether the stream ended in a failure."""
        return self._failure is not None

    def finish(self) -> None:
        """Raise the failure that ended the stream, if one did."""
        if self._failure is not None:
            raise self._failure


class _Joined:
    """Bytes read ahead, then the rest."""

    def __init__(self, front: bytes, rest: Any) -> None:
        self._front, self._rest = front, rest

    def read(self, size: int) -> bytes:
        if not self._front:
            return bytes(self._rest.read(size))
        piece, self._front = self._front[:size], self._front[size:]
        return piece
