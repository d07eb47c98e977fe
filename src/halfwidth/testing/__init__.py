"""Checks for authors: what is wrong with a world of one's own."""

from halfwidth.testing.report import Finding, Report
from halfwidth.testing.world import check_world

__all__ = ["Finding", "Report", "check_world"]
