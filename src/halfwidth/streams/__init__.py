"""Readers of files, tables and streams; bad rows; designs; checkpoints; example data sets."""

from halfwidth.streams.block import Chunk
from halfwidth.streams.datasets.fetch import dataset
from halfwidth.streams.datasets.frames import regression_file, regression_frame
from halfwidth.streams.design.specification import Specification
from halfwidth.streams.opening import open_stream
from halfwidth.streams.predictors import PredictorBlock, read_predictors
from halfwidth.streams.sources.reader_options import ReaderArguments
from halfwidth.streams.stream import Stream

__all__ = [
    "Chunk",
    "PredictorBlock",
    "ReaderArguments",
    "Specification",
    "Stream",
    "dataset",
    "open_stream",
    "read_predictors",
    "regression_file",
    "regression_frame",
]
