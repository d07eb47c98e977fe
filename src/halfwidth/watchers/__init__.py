"""What watches a trajectory and estimates its covariance: one estimator a file."""

from halfwidth.watchers.base import Watcher
from halfwidth.watchers.burned import Burned
from halfwidth.watchers.equal import EqualBatchMeans
from halfwidth.watchers.extrapolated import Extrapolated
from halfwidth.watchers.fixed import FixedBatchMeans
from halfwidth.watchers.flattop import FlatTopBatchMeans
from halfwidth.watchers.functional import FunctionalScaling
from halfwidth.watchers.increasing import IncreasingBatchMeans
from halfwidth.watchers.overlapping import OverlappingBatchMeans
from halfwidth.watchers.scaling import RandomScaling
from halfwidth.watchers.sequence import ConfidenceSequence
from halfwidth.watchers.spectral import SpectralVariance

__all__ = [
    "Burned",
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
