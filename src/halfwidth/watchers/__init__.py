"""What watches a trajectory and estimates its covariance: one estimator a file."""

from halfwidth.watchers.base import Watcher
from halfwidth.watchers.burn_in import BurnIn
from halfwidth.watchers.confidence_sequence import ConfidenceSequence
from halfwidth.watchers.equal_batches import EqualBatchMeans
from halfwidth.watchers.extrapolation import Extrapolated
from halfwidth.watchers.fixed_batches import FixedBatchMeans
from halfwidth.watchers.flat_top import FlatTopBatchMeans
from halfwidth.watchers.functional_scaling import FunctionalScaling
from halfwidth.watchers.increasing_batches import IncreasingBatchMeans
from halfwidth.watchers.overlapping_batches import OverlappingBatchMeans
from halfwidth.watchers.random_scaling import RandomScaling
from halfwidth.watchers.spectral_variance import SpectralVariance

__all__ = [
    "BurnIn",
    "ConfidenceSequence",
    "EqualBatchMeans",
    "Extrapolated",
    "FixedBatchMeans",
    "FlatTopBatchMeans",
    "FunctionalScaling",
    "IncreasingBatchMeans",
    "OverlappingBatchMeans",
    "RandomScaling",
    "SpectralVariance",
    "Watcher",
]
