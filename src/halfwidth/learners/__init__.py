"""What owns theta and consumes rows."""

from __future__ import annotations

from halfwidth.learners.auto import Auto
from halfwidth.learners.base import Learner
from halfwidth.learners.newton.chunked import ChunkedNewton
from halfwidth.learners.own_worlds import ReplicatedWorld, StepWorld, learn_replicates, learn_world
from halfwidth.learners.replicas.higrad import HiGrad
from halfwidth.learners.replicas.local_sgd import LocalSGD
from halfwidth.learners.replicas.minibatch_bootstrap import MiniBatchBootstrap
from halfwidth.learners.replicas.multiplier_bootstrap import MultiplierBootstrap
from halfwidth.learners.replicas.parallel_runs import HullOfRuns, ParallelRuns
from halfwidth.learners.replicas.richardson_romberg import RichardsonRomberg
from halfwidth.learners.sgd.implicit import ImplicitSGD
from halfwidth.learners.sgd.one_step import OneStep
from halfwidth.learners.sgd.online_debiasing import OnlineDebiasing
from halfwidth.learners.sgd.plain import SGD, CappedSGD
from halfwidth.learners.sgd.plug_in import PlugIn
from halfwidth.learners.sgd.plus_minus import PlusMinus
from halfwidth.learners.sgd.trajectory_regression import TrajectoryRegression
from halfwidth.learners.sgd.truncated import TruncatedSGD
from halfwidth.learners.sgd.zeroth_order import ZerothOrderSGD

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
    "OnlineDebiasing",
    "ParallelRuns",
    "PlugIn",
    "PlusMinus",
    "ReplicatedWorld",
    "RichardsonRomberg",
    "StepWorld",
    "TrajectoryRegression",
    "TruncatedSGD",
    "ZerothOrderSGD",
    "learn_replicates",
    "learn_world",
]

LEARNERS: dict[str, type[Learner]] = {
    learner.name: learner for learner in (SGD, TruncatedSGD, CappedSGD, ImplicitSGD, ZerothOrderSGD, LocalSGD)
}
