"""`auto`: a centre, an interval and steps that choose themselves, on any stream."""

from halfwidth.learners.auto.learner import Auto

__all__ = ["Auto"]
