"""Readers of files, tables and streams; bad rows; designs; checkpoints; example data sets."""

from halfwidth.streams.block import Chunk
from halfwidth.streams.checkpoint import read_checkpoint, write_checkpoint
from halfwidth.streams.datasets import dataset
from halfwidth.streams.frames import beijing_frame, flights_frame, regression_file
from halfwidth.streams.stream import Stream, open_stream

__all__ = [
    "Chunk",
    "Stream",
    "beijing_frame",
    "dataset",
    "flights_frame",
    "open_stream",
    "read_checkpoint",
    "regression_file",
    "write_checkpoint",
]
