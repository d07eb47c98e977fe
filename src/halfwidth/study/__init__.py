"""Coverage studies: a specification in, rows of scores out."""

from halfwidth.study.run import run_study
from halfwidth.study.spec import Spec

__all__ = ["Spec", "run_study"]
