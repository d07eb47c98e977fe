"""What watches a trajectory and estimates its covariance: one estimator a file."""

from halfwidth.watchers.base import Watcher
from halfwidth.watchers.overlapping import OverlappingBatchMeans

__all__ = ["OverlappingBatchMeans", "Watcher"]
