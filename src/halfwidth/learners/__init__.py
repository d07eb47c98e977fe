"""What owns theta and consumes rows."""

from __future__ import annotations

from halfwidth.learners.base import Learner
from halfwidth.learners.sgd import SGD, CappedSGD
from halfwidth.learners.truncated import TruncatedSGD

__all__ = ["LEARNERS", "SGD", "CappedSGD", "Learner", "TruncatedSGD"]

LEARNERS: dict[str, type[Learner]] = {learner.name: learner for learner in (SGD, TruncatedSGD, CappedSGD)}
