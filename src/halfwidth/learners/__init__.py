"""What owns theta and consumes rows."""

from __future__ import annotations

from halfwidth.learners.auto import Auto
from halfwidth.learners.base import Learner
from halfwidth.learners.bootstrap import MultiplierBootstrap
from halfwidth.learners.chunked import ChunkedNewton
from halfwidth.learners.higrad import HiGrad
from halfwidth.learners.implicit import ImplicitSGD
from halfwidth.learners.local import LocalSGD
from halfwidth.learners.minibatch import MiniBatchBootstrap
from halfwidth.learners.onestep import OneStep
from halfwidth.learners.parallel import HullOfRuns, ParallelRuns
from halfwidth.learners.plugin import PlugIn
from halfwidth.learners.regression import TrajectoryRegression
from halfwidth.learners.richardson import RichardsonRomberg
from halfwidth.learners.sgd import SGD, CappedSGD
from halfwidth.learners.truncated import TruncatedSGD
from halfwidth.learners.zeroth import ZerothOrderSGD

__all__ = [
    "LEARNERS",
    "SGD",
    "Auto",
    "CappedSGD",
    "ChunkedNewton",
    "HiGrad",
    "HullOfRuns",
    "ImplicitSGD",
    "Learner",
    "LocalSGD",
    "MiniBatchBootstrap",
    "MultiplierBootstrap",
    "OneStep",
    "ParallelRuns",
    "PlugIn",
    "RichardsonRomberg",
    "TrajectoryRegression",
    "TruncatedSGD",
    "ZerothOrderSGD",
]

LEARNERS: dict[str, type[Learner]] = {
    learner.name: learner for learner in (SGD, TruncatedSGD, CappedSGD, ImplicitSGD, ZerothOrderSGD, LocalSGD)
}
